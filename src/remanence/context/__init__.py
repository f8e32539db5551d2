"""Layout of the context of a model call, from a snapshot of a conversation."""
