"""Every Hypothesis strategy of the suite, sized so that they also run with compilation off."""
