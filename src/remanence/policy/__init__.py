"""Thresholds, their validation, and the schedule of observations and reflections."""
