"""The reconciler, and the engines that run it."""
