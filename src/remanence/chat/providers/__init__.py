"""The protocols that a chat speaks itself; each is loaded by name when a model is opened."""
