"""Tags of a fact for the thing that it is about, such as a home, of which a user has one."""

from collections.abc import Collection

UPDATE = "update"
"""The tag of a fact that says that something changed or ended."""
_PREFIX = "slot:"
_SINGLE = frozenset({"home", "work", "partner", "name"})
_ALWAYS_SINGLE = frozenset({"slot:home"})


def slot_tags(slot: str, *, updates: bool) -> tuple[str, ...]:
    """Return the tags of a fact about a slot; none for a slot that may have many values."""
    if slot not in _SINGLE:
        return ()
    return (f"{_PREFIX}{slot}", UPDATE) if updates else (f"{_PREFIX}{slot}",)


def is_same_slot(new: Collection[str], old: Collection[str]) -> bool:
    """Return whether the later of two facts, by its tags, replaces the earlier."""
    shared = {tag for tag in new if tag.startswith(_PREFIX) and tag in old}
    return bool(shared) and (UPDATE in new or bool(shared & _ALWAYS_SINGLE))
