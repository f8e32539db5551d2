"""The reconciler and where it runs."""
