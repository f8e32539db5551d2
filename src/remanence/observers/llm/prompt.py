"""Requests as text: prompts, and data in fences that it cannot close, under times and days."""

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from importlib.resources import files
from string import Template
from typing import NamedTuple

from remanence.notes.marks import indent_lines

OBSERVE_VERSION = "observe/3"
CONTINUED_VERSION = "observe-continued/3"
REFLECT_VERSION = "reflect/3"
"""Change the version with the prompt: each segment records the version that made it."""

PAUSE_SECONDS = 900.0
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MARKS = re.compile(r"data-([0-9]{1,9})", re.IGNORECASE)


class Entry(NamedTuple):
    """A piece of data with a head, such as a message with its number and speaker.

    Without a head the body is rendered verbatim; with one, its further lines are indented.
    """

    head: str
    body: str

    @property
    def text(self) -> str:
        """The entry as rendered in a request."""
        if not self.head:
            return self.body
        return f"{self.head} {indent_lines(self.body)}".rstrip()


class Section(NamedTuple):
    """Data of one kind."""

    kind: str
    entries: tuple[Entry, ...]


@functools.cache
def prompt(name: str, package: str = __package__) -> str:
    """Return a prompt of a package by its name."""
    return files(package).joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")


def fill_prompt(name: str, package: str = __package__, **values: object) -> str:
    """Return a prompt with its placeholders filled."""
    return Template(prompt(name, package)).substitute(values).strip()


def language_rule(language: str) -> str:
    """Return the sentence that sets the language of the notes."""
    name = "the language of the conversation" if language == "conversation" else language
    return fill_prompt("language", language=name)


def request_text(sections: Sequence[Section], task: str) -> str:
    """Return the data in fences, followed by the task.

    The fence gets the smallest number that does not occur in the data, not even as a prefix, so
    that no text can close it and the same data always yield the same text.
    """
    shown = [section for section in sections if section.entries]
    taken: set[str] = set()
    for text in (text for section in shown for entry in section.entries for text in entry):
        for digits in _MARKS.findall(text):
            taken.update(digits[:length] for length in range(1, len(digits) + 1))
    mark = next(f"data-{number}" for number in itertools.count(1) if str(number) not in taken)
    fenced = (
        "\n".join(
            [f"<{mark} {section.kind}>", *(entry.text for entry in section.entries), f"</{mark}>"]
        )
        for section in shown
    )
    return "\n\n".join([*fenced, task])


def below_times(items: Iterable[tuple[datetime | None, Entry]]) -> Iterator[Entry]:
    """Yield the entries with a heading at the start of each day and after each longer pause.

    Times are in the user's time zone. The first heading has the UTC offset, and so has each one where it changes.
    """
    earlier: datetime | None = None
    for at, entry in items:
        if at is not None:
            is_new_zone = earlier is None or earlier.utcoffset() != at.utcoffset()
            if earlier is None or is_new_zone or earlier.date() != at.date():
                offset = at.isoformat(timespec="minutes")[-6:] if at.utcoffset() else "UTC"
                zone = f" {offset}" if is_new_zone else ""
                yield Entry(f"{day_heading(at)} {at:%H:%M}{zone}", "")
            elif (at - earlier).total_seconds() >= PAUSE_SECONDS:
                yield Entry(f"{at:%H:%M}", "")
            earlier = at
        yield entry


def day_heading(at: datetime) -> str:
    """Return a heading such as `Fri 2026-05-08`."""
    return f"{_WEEKDAYS[at.weekday()]} {at.date().isoformat()}"
