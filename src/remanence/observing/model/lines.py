"""Notes as the lines that a model reads and writes, and back.

`[2026-05-08 13:56] IMPORTANT (Decision) {#3-#5} Ana: text (was: earlier value)`; a line `## topic`
stands above the lines of a topic.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import NamedTuple, get_args

from remanence.observing.notes import one_line
from remanence.observing.secrets import scrubbed
from remanence.types import Note, Priority, Tag

_PRIORITIES: dict[str, Priority] = {name.lower(): name for name in get_args(Priority)}
_TAGS: dict[str, Tag] = {name.lower(): name for name in get_args(Tag)}
_TAG_NAMES = r"decision|preference|fact|issue|next[ _-]?step|outcome"
_NUMBERS = r"#?\s?[0-9]{1,12}(?:\s?(?:-|–|—|,|\.\.+|to)\s?#?[0-9]{1,12}){0,50}"

_ITEM = re.compile(r"\s*(?:[-*•–]|[0-9]{1,3}[.)])\s+")
_DAY = r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
_TIME = r"(?:[ T,]+(?:[A-Z][a-z]{2,8},? )?([0-9]{1,2}:[0-9]{2})(?::[0-9]{2})?)"
_LEAD, _TRAIL = r"\s*(?:\*\*|__)?\s*", r"(?:\*\*|__)?:?"
_STAMP = re.compile(
    rf"{_LEAD}(?:[\[(]{_DAY}{_TIME}?(?:Z| ?UTC)?[\])]|{_DAY}{_TIME}(?:Z| ?UTC)?){_TRAIL}"
)
_PRIORITY = re.compile(
    rf"{_LEAD}(?:(CRITICAL|IMPORTANT|NOTE)\b{_TRAIL}"
    rf"|(?i:[\[(](critical|important|note)[\])]{_TRAIL}|(critical|important|note):))"
)
_TAG = re.compile(rf"{_LEAD}(?i:[\[(]({_TAG_NAMES})s?[\])]{_TRAIL}|({_TAG_NAMES}):)")
_BRACED = rf"\{{\s?({_NUMBERS})\s?\}}|[\[(]\s?(?=#)({_NUMBERS})\s?[\])]"
_SOURCE = re.compile(rf"{_LEAD}(?:{_BRACED}){_TRAIL}")
_SOURCE_AT_END = re.compile(rf"\s*(?:{_BRACED})\.?$")
_WAS = re.compile(r"(.+?)\s*\(was:? ([^()]{1,200})\)\.?")
_TOPIC = re.compile(r"#{1,6}\s+(.{1,80}?)\s*:?|\*\*([^*]{1,80}?):?\*\*:?")
_WHO = re.compile(r"\*{0,2}([^:/*]{1,80}?)?(?:\s*/ ([^:/*]{1,80}?))?\*{0,2}:\*{0,2}\s+(.+)")
_ISO_DATE = re.compile(
    r"(?<![0-9-])[0-9]{4}-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12][0-9]|3[01]))?(?![0-9-])"
)
_PLAIN_TITLES = frozenset({"notes", "note", "observations", "reflections"})
_WORD = re.compile(r"\W*(?:NOTHING|SKIP)\W*", re.IGNORECASE)
_FENCES = ("```", "<data-", "</data-", "<notes", "</notes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What lines may refer to: message numbers with their times, and names of speakers."""

    first_seq: int
    last_seq: int
    times: Mapping[int, datetime]
    speakers: Mapping[str, str]


class ReadLine(NamedTuple):
    """A note, and whether its line had anything of the form that was asked for."""

    note: Note
    formed: bool


def written_line(note: Note) -> str:
    """The note as a line of the form that a model is asked to write."""
    stamp = f"[{note.observed_at.astimezone(UTC):%Y-%m-%d %H:%M}] " if note.observed_at else ""
    source = f"#{note.first_seq}"
    if note.last_seq != note.first_seq:
        source += f"-#{note.last_seq}"
    who = note.speaker or ""
    if note.topic:
        who += f" / {note.topic}"
    text = f"{who.strip()}: {note.text}" if who else note.text
    was = f" (was: {note.supersedes})" if note.supersedes else ""
    return f"{stamp}{note.priority} ({note.tag}) {{{source}}} {text}{was}"


def read_lines(text: str, origin: Origin) -> tuple[ReadLine, ...]:
    """The notes that an answer holds, in order of their days; never fails.

    What has no head is a note on the whole range, save an introduction (`Here are the notes:`)
    before the first line that has one. Secrets are taken out; a line that stands twice counts once.
    """
    lines = list(_lines(text, origin))
    first = next((index for index, line in enumerate(lines) if line.formed), len(lines))
    kept = dict.fromkeys(
        line
        for index, line in enumerate(lines)
        if index >= first or not line.note.text.endswith(":")
    )
    return tuple(sorted(kept, key=lambda line: _day(line.note.observed_at)))


def in_order(notes: Iterable[Note]) -> tuple[Note, ...]:
    """The notes by the day of their observation; those of one day keep their order."""
    return tuple(sorted(notes, key=lambda note: _day(note.observed_at)))


def _day(at: datetime | None) -> str:
    return at.astimezone(UTC).date().isoformat() if at else ""


def _lines(text: str, origin: Origin) -> Iterator[ReadLine]:
    topic: str | None = None
    for raw in text.splitlines():
        line = one_line(raw)
        if not line.strip("-*_=#|") or line.lower().startswith(_FENCES) or _WORD.fullmatch(line):
            continue
        if heading := _TOPIC.fullmatch(line):
            name = one_line(scrubbed(heading[1] or heading[2]))
            topic = None if name.lower() in _PLAIN_TITLES else name
            continue
        parser = _Line(_ITEM.sub("", line, count=1))
        note = parser.note(origin, topic)
        if note.text:
            yield ReadLine(note, parser.formed)


class _Line:
    """One line: what stands at its head is taken off it piece by piece, in any order."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.day: str | None = None
        self.time: str | None = None
        self.priority: Priority = "NOTE"
        self.tag: Tag = "Fact"
        self.numbers: tuple[int, ...] = ()
        self.formed = False
        self._take_heads()

    def note(self, origin: Origin, topic: str | None) -> Note:
        """The line as a note of *origin*."""
        first, last = self._range(origin)
        speaker, own_topic, text = _who(scrubbed(self.text), origin)
        text, supersedes = _was(text)
        observed_at, misplaced = self._observed(origin, first, last)
        note = Note(
            text=f"{misplaced}: {text}" if misplaced and text else text,
            first_seq=first,
            last_seq=last,
            observed_at=observed_at,
            priority=self.priority,
            tag=self.tag,
            speaker=speaker,
            topic=own_topic or topic,
            supersedes=supersedes,
        )
        return replace(note, referenced_at=_referenced(note))

    def _take_heads(self) -> None:
        pending = {
            "stamp": (_STAMP, self._stamp),
            "priority": (_PRIORITY, self._priority),
            "tag": (_TAG, self._tag),
            "source": (_SOURCE, self._source),
        }
        found = True
        while found:
            found = False
            for name, (pattern, take) in list(pending.items()):
                if match := pattern.match(self.text):
                    self.text = self.text[match.end() :]
                    take(match)
                    del pending[name]
                    self.formed = found = True
        if "source" in pending and (match := _SOURCE_AT_END.search(self.text)):
            self.text = self.text[: match.start()]
            self._source(match)
        self.text = self.text.strip()

    def _stamp(self, match: re.Match[str]) -> None:
        self.day, self.time = match[1] or match[3], match[2] or match[4]

    def _priority(self, match: re.Match[str]) -> None:
        self.priority = _PRIORITIES[(match[1] or match[2] or match[3]).lower()]

    def _tag(self, match: re.Match[str]) -> None:
        self.tag = _TAGS[re.sub(r"[ _-]", "", match[1] or match[2]).lower()]

    def _source(self, match: re.Match[str]) -> None:
        self.numbers = tuple(int(n) for n in re.findall(r"[0-9]+", match[1] or match[2]))

    def _range(self, origin: Origin) -> tuple[int, int]:
        valid = [n for n in self.numbers if origin.first_seq <= n <= origin.last_seq]
        return (min(valid), max(valid)) if valid else (origin.first_seq, origin.last_seq)

    def _observed(self, origin: Origin, first: int, last: int) -> tuple[datetime | None, str]:
        """When it was said; a stamp of a day on which nothing was said is part of the text."""
        said = sorted(at for seq, at in origin.times.items() if first <= seq <= last)
        stamp = _moment(self.day, self.time)
        if not said:
            return stamp, ""
        if stamp is None or self.day is None:
            return said[0], ""
        if _day(said[0]) <= self.day <= _day(said[-1]):
            return stamp, ""
        everything = sorted(_day(at) for at in origin.times.values())
        return said[0], "" if everything[0] <= self.day <= everything[-1] else self.day


def _who(text: str, origin: Origin) -> tuple[str | None, str | None, str]:
    match = _WHO.fullmatch(text)
    if match is None:
        return None, None, text
    name, topic, rest = (match[1] or "").strip(), match[2], match[3]
    speaker = origin.speakers.get(name.casefold())
    if speaker is None and (name or not topic):
        return None, None, text
    return speaker, topic, rest


def _was(text: str) -> tuple[str, str | None]:
    match = _WAS.fullmatch(text)
    return (match[1], match[2].strip() or None) if match else (text, None)


def _moment(day: str | None, time: str | None) -> datetime | None:
    if day is None:
        return None
    try:
        return datetime.fromisoformat(f"{day}T{(time or '0:00').zfill(5)}").replace(tzinfo=UTC)
    except ValueError:
        return None


def _referenced(note: Note) -> str | None:
    """The first day or month that the text names besides the one on which it was said."""
    for match in _ISO_DATE.finditer(note.text):
        if match[0] != _day(note.observed_at) and _is_date(match[0]):
            return match[0]
    return None


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text if len(text) > len("2026-05") else f"{text}-01")
    except ValueError:
        return False
    return True
