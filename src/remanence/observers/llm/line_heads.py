"""The head of a line: the numbers of its source messages, its tag and its priority.

Prompts ask for the form `#12-14 [IMPORTANT Decision] text`. Because models vary it, a line that
does not begin with numbers may have the parts of its head in other shapes and in any order. A line
without a head is all text.
"""

import re
from typing import NamedTuple

from remanence.notes.marks import PRIORITIES, TAGS
from remanence.types import Priority, Tag

_TAG_NAMES = r"decision|preference|fact|issue|next[ _-]?step|outcome"

_MARK = r"(?:\*\*|__|`)?"
_END = rf"{_MARK}:?{_MARK}(?:\s+|$|(?=【))"
_HASH, _NUMBER, _BETWEEN = r"[#＃]", r"[0-9]{1,12}", r"\s?[-–—,;/&、，]\s?"
_TAGGED = rf"(?=[\])]?{_END}{_MARK}[\[(【](?i:critical|important|note|{_TAG_NAMES}))"
_NAMED = rf"(?=[\])]?{_END}[^:：\s]{{1,40}}(?:\s[^:：\s]{{1,40}})?[:：])"
_LIST = (
    rf"{_HASH}{_NUMBER}(?:{_BETWEEN}{_HASH}?{_NUMBER}|\s[^\W\d_]{{1,4}}\s{_HASH}{_NUMBER}{_TAGGED})"
    rf"{{1,50}}(?:{_TAGGED}|{_NAMED})"
    rf"|{_HASH}{_NUMBER}(?:[-–—]{_HASH}?{_NUMBER}|{_BETWEEN}{_HASH}{_NUMBER}){{0,50}}"
)
"""Numbers without their own `#`, and behind a short word, count only before a tag or a name."""

_NUMBERS = re.compile(rf"{_MARK}(?:[\[(]?({_LIST})[\])]?|\{{\s?({_LIST})\s?\}}){_END}")
_WORDS = r"([A-Za-z][A-Za-z ,/_-]{1,40})"
_BRACKET = re.compile(rf"{_MARK}(?:[\[(]{_WORDS}[\])]{_END}|【{_WORDS}】{_MARK}[:：]?\s*)")
_BARE_PRIORITY = re.compile(rf"{_MARK}(CRITICAL|IMPORTANT|NOTE){_MARK}:?\s+(?={_MARK}[\[(【])")

_ANY_NUMBERS = r"#?\s?[0-9]{1,12}(?:\s?(?:-|–|—|,|\.\.+|to)\s?#?[0-9]{1,12}){0,50}"
_LEAD, _TRAIL = r"\s*+(?:\*\*|__)?\s*+", r"(?:\*\*|__)?:?"
_DAY = r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
_TIME = r"(?:[ T,]+(?:[A-Z][a-z]{2,8},? )?([0-9]{1,2}:[0-9]{2})(?::[0-9]{2})?)"
_STAMP = re.compile(
    rf"{_LEAD}(?:[\[(]{_DAY}{_TIME}?(?:Z| ?UTC)?[\])]|{_DAY}{_TIME}(?:Z| ?UTC)?){_TRAIL}"
)
_PRIORITY = "critical|important|note"
_MARKED_PRIORITY = rf"(?i:[\[(]({_PRIORITY})[\])]{_TRAIL}|({_PRIORITY}):)"
_ANY_PRIORITY = re.compile(rf"{_LEAD}(?:({_PRIORITY.upper()})\b{_TRAIL}|{_MARKED_PRIORITY})")
_ANY_TAG = re.compile(rf"{_LEAD}(?i:[\[(]({_TAG_NAMES})s?[\])]{_TRAIL}|({_TAG_NAMES}):)")
_BRACED = rf"\{{\s?({_ANY_NUMBERS})\s?\}}|[\[(]\s?(?=#)({_ANY_NUMBERS})\s?[\])]"
_ANY_SOURCE = re.compile(rf"{_LEAD}(?:{_BRACED}){_TRAIL}")
_SOURCE_AT_END = re.compile(rf"(?<!\s)\s*+(?:{_BRACED})\.?$")


class Stamp(NamedTuple):
    """A day, an optional time, and the text they were read from."""

    day: str
    time: str | None
    text: str


class Head(NamedTuple):
    """The parts of a line's head; `rest` is the text after it. A line without a head is not `formed`."""

    rest: str
    numbers: tuple[int, ...] = ()
    priority: Priority | None = None
    tag: Tag | None = None
    stamp: Stamp | None = None

    @property
    def formed(self) -> bool:
        return bool(self.numbers or self.stamp or self.priority or self.tag)


def read_head(line: str, seqs: range) -> Head:
    """Split a line about the messages *seqs* into its head and its text.

    `#3` without braces counts as a head only if message 3 exists or a tag or priority follows.
    """
    found = _NUMBERS.match(line)
    if found is not None:
        head = _with_brackets(Head(line[found.end() :], _numbers(found[1], found[2], seqs)))
        if head.formed:
            return head._replace(numbers=_all_numbers(found[1] or found[2]))
    bracketed = _with_brackets(Head(line))
    has_more = _ANY_SOURCE.match(bracketed.rest) or _STAMP.match(bracketed.rest)
    return bracketed if bracketed.formed and not has_more else _in_any_order(line, seqs)


def begins_with_head(text: str) -> bool:
    """Return whether a text behind numbers would be parsed as beginning with a tag or priority."""
    return _with_brackets(Head(text)).formed


def _with_brackets(head: Head) -> Head:
    """Read bracketed tags and priorities until both are known or another word appears."""
    while head.priority is None or head.tag is None:
        bare = _BARE_PRIORITY.match(head.rest)
        text = head.rest[bare.end() :] if bare else head.rest
        bracket = _BRACKET.match(text)
        if bracket is None:
            return head
        words = _words(f"{bare[1] if bare else ''} {bracket[1] or bracket[2]}")
        if words is None:
            return head
        priority, tag = words
        if (priority and head.priority) or (tag and head.tag):
            return head
        head = head._replace(
            rest=text[bracket.end() :], priority=head.priority or priority, tag=head.tag or tag
        )
    return head


def _words(text: str) -> tuple[Priority | None, Tag | None] | None:
    """Return a priority, a tag, or both; None if there is any other word, or two of a kind."""
    plain = re.sub(r"next[ _-]step", "nextstep", text.lower())
    words = re.split(r"[ ,/]+", plain.strip())
    priorities = [PRIORITIES[word] for word in words if word in PRIORITIES]
    tags = [TAGS[name] for word in words if (name := word.removesuffix("s")) in TAGS]
    if len(priorities) + len(tags) != len(words) or len(priorities) > 1 or len(tags) > 1:
        return None
    return next(iter(priorities), None), next(iter(tags), None)


def _numbers(plain: str | None, braced: str | None, seqs: range) -> tuple[int, ...]:
    """Return message numbers; without braces, only if at least one of them is in *seqs*."""
    numbers = _all_numbers(plain or braced or "")
    return numbers if braced or any(number in seqs for number in numbers) else ()


def _all_numbers(text: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"[0-9]+", text))


def _in_any_order(line: str, seqs: range) -> Head:
    """Return a head of another shape; it counts only if it has a source or a time."""
    head, before = Head(line), None
    while head != before:
        before = head
        for name, pattern in _PATTERNS.items():
            match = pattern.match(head.rest) if not getattr(head, name) else None
            if match and not (name == "priority" and _is_prose(head, match)):
                taken = _read_head(head, name, match, seqs)
                if taken != head:
                    head = taken._replace(rest=head.rest[match.end() :])
    match = _SOURCE_AT_END.search(head.rest) if not head.numbers else None
    if match and (numbers := _numbers(match[1] or match[2], None, seqs)):
        head = head._replace(rest=head.rest[: match.start()], numbers=numbers)
    return head._replace(rest=head.rest.strip()) if head.numbers or head.stamp else Head(line)


def _is_prose(head: Head, match: re.Match[str]) -> bool:
    """Return whether a bare word such as NOTE is text: no other part of a head is beside it."""
    following = match.string[match.end() :].lstrip()
    return bool(match[1]) and head.stamp is None and not following.startswith(("[", "(", "{"))


_PATTERNS = {"stamp": _STAMP, "priority": _ANY_PRIORITY, "tag": _ANY_TAG, "numbers": _ANY_SOURCE}


def _read_head(head: Head, name: str, match: re.Match[str], seqs: range) -> Head:
    match name:
        case "stamp":
            text = match[0].strip().strip("*_:")
            return head._replace(stamp=Stamp(match[1] or match[3], match[2] or match[4], text))
        case "priority":
            return head._replace(priority=PRIORITIES[(match[1] or match[2] or match[3]).lower()])
        case "tag":
            return head._replace(tag=TAGS[re.sub(r"[ _-]", "", match[1] or match[2]).lower()])
        case _:
            return head._replace(numbers=_numbers(match[2], match[1], seqs))
