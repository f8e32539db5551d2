"""Numbers with nouns for texts."""


def quantity(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 message` or `1,200 messages`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
