"""The marks that rendered notes share, and the escapes that distinguish text from marks.

A backslash escapes text that would otherwise be parsed as a mark, which is rare: a heading that
looks like a list item or a date, a label with a slash between spaces, an earlier value with `(was`,
and in `prose` a line that is empty or a date. Continuation lines are indented by a tab.
"""

import re
from datetime import UTC, datetime
from typing import get_args

from remanence.types import Priority, Tag

UNDATED = "undated"
ESCAPE = "\\"
INDENT = "\t"
PRIORITY_MARKS: dict[Priority, str] = {"CRITICAL": "!! ", "IMPORTANT": "! ", "NOTE": "~ "}
MARKED_PRIORITIES: dict[str, Priority] = {mark: name for name, mark in PRIORITY_MARKS.items()}

MARK = re.compile(r"(?:!!?|~) ")
ITEM = re.compile(r"\s*(?:[-*•]|\d{1,3}[.)]) ")
PRIORITIES: dict[str, Priority] = {name.lower(): name for name in get_args(Priority)}
TAGS: dict[str, Tag] = {name.lower(): name for name in get_args(Tag)}
_TAG = re.compile(rf"\[({'|'.join(TAGS)})\] ", re.IGNORECASE)
_DATE_LINE = re.compile(
    r"(?:#+ |\*\*)?(?:date: )?(\d{4}-\d\d-\d\d)(?: \(\w{2,9}\))?:?(?:\*\*)?", re.IGNORECASE
)
_MAX_HEADING = 80
_SLASH = re.compile(r"(?<!\S)(\\*)/(?!\S)")
_ESCAPED_SLASH = re.compile(r"(?<!\S)\\(\\*)/(?!\S)")
_WAS = " (was: "
_WAS_WORD = re.compile(r"\((\\*)was")
_ESCAPED_WAS_WORD = re.compile(r"\(\\(\\*)was")


def one_line(text: str) -> str:
    """Return the text on one line, with runs of white space collapsed."""
    return " ".join(text.split())


def indent_lines(text: str) -> str:
    """Return the text with its further lines indented, so that none can pose as a head.

    Every kind of line break becomes a newline.
    """
    return "\n ".join(text.splitlines())


def day_of(at: datetime | None) -> str:
    """Return the day of a time in ISO 8601; empty if there is none."""
    return at.date().isoformat() if at else ""


def usual_priority(tag: Tag) -> Priority:
    """Return the default priority of a tag, which `compact` leaves out."""
    return "NOTE" if tag in ("Fact", "NextStep") else "IMPORTANT"


def without_item_mark(line: str) -> str:
    """Return the line without a leading list mark."""
    match = ITEM.match(line)
    return line[match.end() :] if match else line


def take_tag(text: str) -> tuple[Tag | None, str]:
    """Split a leading `[Tag] ` from a text."""
    match = _TAG.match(text)
    return (TAGS[match[1].lower()], text[match.end() :]) if match else (None, text)


def moment(day: str, time: str | None = None) -> datetime | None:
    """Parse a day and time of a rendered note, which has no offset, as UTC; None if invalid."""
    try:
        return datetime.fromisoformat(f"{day}T{time or '00:00'}").replace(tzinfo=UTC)
    except ValueError:
        return None


def date_of(line: str) -> datetime | None:
    """Return the day of a line that consists only of a date; None for any other line."""
    match = _DATE_LINE.fullmatch(line.strip())
    return moment(match[1]) if match else None


def is_date_heading(line: str) -> bool:
    """Return whether a line is the heading of a day, or of notes without one."""
    return line == UNDATED or date_of(line) is not None


def label_heading(speaker: str, topic: str) -> str:
    """Return the heading for the notes of a speaker, of a topic, or of both."""
    labels = [_SLASH.sub(r"\\\1/", label) for label in ((speaker, topic) if topic else (speaker,))]
    heading = f"{' / '.join(labels)}:".lstrip()
    return heading if _is_plain_heading(heading) else f"{ESCAPE}{heading}"


def labels_of(line: str) -> tuple[str, str] | None:
    """Return the speaker and topic of a `label_heading`; None if the line cannot be one."""
    if not line.endswith(":") or not (line.startswith(ESCAPE) or _is_plain_heading(line)):
        return None
    heading = line.removeprefix(ESCAPE)[:-1]
    slash = re.search(r"(?<!\S)/(?!\S)", heading)
    speaker, topic = (heading[: slash.start()], heading[slash.end() :]) if slash else (heading, "")
    return _unescape(speaker), _unescape(topic)


def _is_plain_heading(line: str) -> bool:
    return not (
        len(line) > _MAX_HEADING
        or line.startswith((ESCAPE, INDENT))
        or ITEM.match(line)
        or is_date_heading(line)
    )


def _unescape(label: str) -> str:
    return _ESCAPED_SLASH.sub(r"\1/", label.strip())


def with_was(text: str, supersedes: str | None) -> str:
    """Append the earlier value that the text replaces."""
    if supersedes:
        earlier = _WAS_WORD.sub(r"(\\\1was", supersedes)
        return f"{text}{_WAS}{earlier})"
    return f"{text}{_WAS})" if text.endswith(")") and _WAS in text else text


def take_was(text: str) -> tuple[str, str | None]:
    """Split the text from the earlier value that `with_was` appended."""
    at = text.rfind(_WAS) if text.endswith(")") else -1
    if at < 0:
        return text, None
    earlier = text[at + len(_WAS) : -1]
    return text[:at], _ESCAPED_WAS_WORD.sub(r"(\1was", earlier) or None
