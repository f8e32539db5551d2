"""Requests as text: the prompts of this package, and data that cannot break out of its fence."""

import functools
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from string import Template
from typing import NamedTuple

OBSERVE_VERSION = "observe/2"
CONTINUED_VERSION = "observe-continued/2"
REFLECT_VERSION = "reflect/2"
"""A changed prompt gets another version: it stands in each segment that was made by it."""

_MARKS = re.compile(r"data-([0-9]{1,9})", re.IGNORECASE)


class Entry(NamedTuple):
    """A piece of data that begins with a head, such as a message with its number and speaker.

    A body without a head is written as it is; below a head its further lines are indented.
    """

    head: str
    body: str

    @property
    def text(self) -> str:
        """The entry as a request shows it."""
        if not self.head:
            return self.body
        # Every kind of line break, so that no text can pose as the head of another entry.
        return " ".join([self.head, "\n ".join(self.body.splitlines())]).rstrip()


class Section(NamedTuple):
    """Data of one kind."""

    kind: str
    entries: tuple[Entry, ...]


@functools.cache
def prompt(name: str) -> str:
    """The text of a prompt of this package."""
    return files(__package__).joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")


def fill_prompt(name: str, **values: object) -> str:
    """A prompt with its placeholders filled."""
    return Template(prompt(name)).substitute(values).strip()


def language_rule(language: str) -> str:
    """The sentence that says in which language notes are written."""
    name = "the language of the conversation" if language == "conversation" else language
    return fill_prompt("language", language=name)


def request_text(sections: Sequence[Section], task: str) -> str:
    """The data in their fences, and after them what is to be done with them.

    The number of the fence is the smallest that nothing in the data begins to spell, so that the
    same data give the same text and no text can close the fence.
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
