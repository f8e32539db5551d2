"""Daily notes, and import and export of blocks as JSON Lines."""
