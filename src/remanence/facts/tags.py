"""Tags of the embedded extractor that decide what its facts replace."""

HOME = "slot:home"
"""A fact about where the user lives: the later of two replaces the earlier."""
UPDATE = "update"
"""A fact that says that something changed or ended: it replaces those whose topic it names."""
