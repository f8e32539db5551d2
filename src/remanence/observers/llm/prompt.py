"""Requests as text: the prompts of this package, and data in fences that it cannot close."""

import functools
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from string import Template
from typing import NamedTuple

OBSERVE_VERSION = "observe/2"
CONTINUED_VERSION = "observe-continued/2"
REFLECT_VERSION = "reflect/2"
"""Change the version with the prompt: each segment records the version that made it."""

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
        # Split at every kind of line break, so that no text can pose as the head of an entry.
        return " ".join([self.head, "\n ".join(self.body.splitlines())]).rstrip()


class Section(NamedTuple):
    """Data of one kind."""

    kind: str
    entries: tuple[Entry, ...]


@functools.cache
def prompt(name: str) -> str:
    """Return a prompt of this package by its name."""
    return files(__package__).joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")


def fill_prompt(name: str, **values: object) -> str:
    """Return a prompt with its placeholders filled."""
    return Template(prompt(name)).substitute(values).strip()


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
    mark = _free_mark(text for section in shown for entry in section.entries for text in entry)
    return "\n\n".join([*(_fence(section, mark) for section in shown), task])


def _free_mark(texts: Iterable[str]) -> str:
    taken: set[str] = set()
    for text in texts:
        for match in _MARKS.finditer(text):
            digits = match[1]
            taken.update(digits[:length] for length in range(1, len(digits) + 1))
    number = 1
    while str(number) in taken:
        number += 1
    return f"data-{number}"


def _fence(section: Section, mark: str) -> str:
    texts = (entry.text for entry in section.entries)
    return "\n".join([f"<{mark} {section.kind}>", *texts, f"</{mark}>"])
