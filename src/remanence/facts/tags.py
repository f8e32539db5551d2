"""Tags and makers of facts that decide how they are merged and shown."""

from remanence.types import Fact, FactDraft

HOME = "slot:home"
"""Tag of a fact about where the user lives: the later of two replaces the earlier."""
SPEAKER = "speaker:"
"""Beginning of the tag of a fact that somebody else said, whose name its summary begins with."""
CORRECTION = "correction"
"""Tag of a statement by which the user corrects what was said before; it ends no fact by itself."""
WISH = "wish"
"""Tag of what the user asks for in their own words; it counts only where an extraction gave it."""
SAVED = "saved"
"""Maker of facts that a program or the tool of a model saved."""
STATEMENTS = "extractive/"
"""Beginning of `made_by` of facts that are statements, in the words of the user."""


def speaker_of(said: Fact | FactDraft) -> str:
    """Return the name of the speaker of a fact; empty for the user."""
    names = (tag.removeprefix(SPEAKER) for tag in said.tags if tag.startswith(SPEAKER))
    return next(names, "")


def is_wish(fact: Fact) -> bool:
    """Return whether a fact is what the user asks for, in their own words."""
    return WISH in fact.tags and fact.made_by != SAVED
