"""Search over notes, messages and facts, by words and by vectors."""
