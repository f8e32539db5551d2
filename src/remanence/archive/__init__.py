"""Daily notes, blocks as JSON Lines and their exchange."""
