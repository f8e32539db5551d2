"""Bodies and problems, which the service and its client share."""
