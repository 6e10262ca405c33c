"""Run what was emitted and compare."""
