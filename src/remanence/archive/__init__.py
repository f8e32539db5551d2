"""Daily notes, and blocks as JSON Lines with their import and export."""
