"""When something is due: thresholds, their validation and the schedule."""
