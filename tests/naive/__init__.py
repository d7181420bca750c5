"""Slow twins: every fast routine again, written from its definition, one file per topic, sharing no code with src."""
