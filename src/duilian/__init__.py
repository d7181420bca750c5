"""duilian: one resource out of corpora annotated to different standards."""

__version__ = "0.1.0"
