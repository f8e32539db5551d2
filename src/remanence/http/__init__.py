"""Bodies and problems shared by the service and its client."""
