"""Notes as the lines that a model reads and writes, and back.

`#3-5 [CRITICAL Decision] Ana: text (was: earlier value)`. The tag Fact and the usual priority of a
tag are left out. A heading `## topic` precedes the lines of a topic. The text of a line is never
changed, except that secrets are redacted.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from remanence.dates import find_dates, iso_date
from remanence.notes import day_of, one_line, usual_priority
from remanence.notes.marks import moment
from remanence.notes.redact import redact
from remanence.observers.llm.line_heads import Head, begins_with_head, read_head
from remanence.types import DroppedLine, Note

_ITEM = re.compile(r"(?:[-*•–]|[0-9]{1,3}[.)])\s+")
_CONTINUED = re.compile(rf"\s|{_ITEM.pattern}")
"""A line that continues the one before it, or is an item of its list."""

_WAS = re.compile(r"(.+) \(was: ([^()]{1,200})\)")
_TOPIC = re.compile(r"#{1,6}\s+(.{1,80}?)\s*:?|\*\*([^*]{1,80}?):?\*\*:?")
_WEEKDAY = "[A-Z][a-z]{2,8}"
_CLOCK = "[0-9]{1,2}:[0-9]{2}(?: (?:UTC|[+-][0-9]{2}:[0-9]{2}))?"
_DAY = rf"(?:{_WEEKDAY},? )?[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(?:,? \(?{_WEEKDAY}\)?)?"
_DAY_HEADING = re.compile(rf"(?:#{{1,6}}\s+|\*\*)?{_DAY}(?: {_CLOCK})?:?(?:\*\*)?")
_WHO = re.compile(r"(\*{0,2})([^:：*]{1,80}?)\1?[:：]\1?\s*+(.+)")
_NUMBERED = re.compile(r"[*_`]*[#＃][0-9]")
_ANY_SEQS = range(10**12)
_ISO_DATE = re.compile(
    r"(?<![0-9-])[0-9]{4}-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12][0-9]|3[01]))?(?![0-9-])"
)
_PLAIN_TITLES = frozenset({"notes", "note", "observations", "reflections", "other"})
_WORD = re.compile(r"\W*(?:NOTHING|SKIP)\W*", re.IGNORECASE)
_FENCE = re.compile(r"```\w*|</?(?:data-[0-9]+|notes)\b[^>]*>", re.IGNORECASE)
_BREAKS = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The message numbers, times and speaker names that lines may refer to.

    `spoken` says who said the messages of a range, by name and by role.
    """

    first_seq: int
    last_seq: int
    times: Mapping[int, datetime]
    speakers: Mapping[str, str]
    spoken: Sequence[tuple[int, int, str]]

    @property
    def seqs(self) -> range:
        """The message numbers that a line may refer to."""
        return range(self.first_seq, self.last_seq + 1)

    def speaker(self, who: re.Match[str] | None) -> str | None:
        """Return the speaker whose name a match of `_WHO` has, if any."""
        return self.speakers.get(who[2].strip().casefold()) if who else None

    def has_said(self, speaker: str, first_seq: int, last_seq: int) -> bool:
        """Return whether a speaker said any of these messages."""
        return any(
            name == speaker and first <= last_seq and last >= first_seq
            for first, last, name in self.spoken
        )


class LineNotes(NamedTuple):
    """The notes parsed from an answer, its dropped lines, and how many lines had a head."""

    notes: tuple[Note, ...]
    dropped: tuple[DroppedLine, ...]
    formed: int = 0


def line_text(note: Note) -> str:
    """Return a note as a line without its head: the speaker, the text and the earlier value."""
    who = f"{one_line(note.speaker)}: " if note.speaker else ""
    was = f" (was: {note.supersedes})" if note.supersedes else ""
    return " ".join(_BREAKS.split(f"{who}{note.text}{was}"))


def format_line(note: Note) -> str:
    """Return a note as a line in the form that prompts ask for."""
    numbers = f"#{note.first_seq}"
    if note.last_seq != note.first_seq:
        numbers += f"-{note.last_seq}"
    text = line_text(note)
    words: list[str] = []
    if note.priority != usual_priority(note.tag) or begins_with_head(text):
        words = [note.priority, note.tag]
    elif note.tag != "Fact":
        words = [note.tag]
    tag = f"[{' '.join(words)}] " if words else ""
    return f"{numbers} {tag}{text}"


def read_lines(text: str, origin: Origin) -> LineNotes:
    """Parse the notes of an answer, sorted by day; never fails.

    A line without a head becomes a note on the whole range, except for an introduction (`Here are
    the notes:`) before the first line with a head, and remarks after the last one. Lines of no
    message of *origin*, and repeated lines of the same day, are dropped, too.
    """
    lines = list(_lines(text, origin))
    formed = [
        index
        for index, (_, _, head) in enumerate(lines)
        if head.formed and not _is_invented(head, origin)
    ]
    first, last = (formed[0], formed[-1]) if formed else (len(lines), len(lines))
    kept: dict[tuple[str | None, str, str], Note] = {}
    dropped: list[DroppedLine] = []
    for index, (line, note, head) in enumerate(lines):
        key = (note.speaker, note.text, day_of(note.observed_at))
        if index < first and note.text.endswith((":", "：")):
            dropped.append(DroppedLine(text=line_text(note), reason="introduction"))
        elif _is_invented(head, origin):
            cited = ", ".join(f"#{number}" for number in head.numbers)
            dropped.append(DroppedLine(text=line_text(note), reason="invented", detail=cited))
        elif index > last and not _CONTINUED.match(line):
            dropped.append(DroppedLine(text=line_text(note), reason="closing"))
        elif key in kept:
            dropped.append(DroppedLine(text=line_text(note), reason="repeated"))
        else:
            kept[key] = note
    return LineNotes(in_order(kept.values()), tuple(dropped), len(formed))


def _is_invented(head: Head, origin: Origin) -> bool:
    """Return whether a head has only numbers of messages that were not to be noted."""
    numbers = head.numbers or (origin.first_seq,)
    return min(numbers) > origin.last_seq or max(numbers) < origin.first_seq


def in_order(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return the notes sorted by the day of their observation; the sort is stable."""
    return tuple(sorted(notes, key=lambda note: day_of(note.observed_at)))


def _lines(text: str, origin: Origin) -> Iterator[tuple[str, Note, Head]]:
    """Yield the lines with their notes and heads.

    The head of a line without a text is that of the next one, or of each item of a list below it.
    """
    topic: str | None = None
    above: Head | None = None
    above_list: Head | None = None
    for raw in _BREAKS.split(text):
        line = raw.strip()
        if not line.strip("-*_=#|") or _FENCE.fullmatch(line) or _WORD.fullmatch(line):
            continue
        if _DAY_HEADING.fullmatch(line):
            topic = None
        elif (heading := _TOPIC.fullmatch(line)) and (
            heading[1] or read_head(heading[2], origin.seqs).rest
        ):
            # A title that only repeats a speaker or a generic word is no topic.
            name = one_line(redact(heading[1] or heading[2]))
            is_plain = name.lower() in _PLAIN_TITLES or name.casefold() in origin.speakers
            topic = None if is_plain else name
        else:
            is_item = bool(_ITEM.match(line))
            note, head = _read(line, origin, topic, above_list if is_item else above)
            if note.text:
                yield raw, note, head
            above = head if head.numbers and not note.text else None
            above_list = head if above or (above_list and is_item) else None


def _read(line: str, origin: Origin, topic: str | None, above: Head | None) -> tuple[Note, Head]:
    item = _ITEM.match(line)
    head = _read_head(line[item.end() :] if item else line, origin)
    if above is not None and not head.formed:
        head = above._replace(rest=head.rest)
    valid = [number for number in head.numbers if number in origin.seqs]
    first, last = min(valid, default=origin.first_seq), max(valid, default=origin.last_seq)
    observed_at, misplaced = _observed_at(head, origin, first, last)
    text = redact(head.rest)
    who = _WHO.fullmatch(text)
    speaker = origin.speaker(who)
    if speaker and not origin.has_said(speaker, first, last):
        speaker = None  # words that a tool or somebody else ascribes to them
    text = who[3] if who and speaker else text
    was = _WAS.fullmatch(text)
    text, supersedes = (was[1], was[2]) if was else (text, None)
    tag = head.tag or "Fact"
    note = Note(
        text=f"{misplaced} {text}" if misplaced and text else text,
        first_seq=first,
        last_seq=last,
        observed_at=observed_at,
        priority=head.priority or usual_priority(tag),
        tag=tag,
        speaker=speaker,
        topic=topic,
        supersedes=supersedes,
    )
    return replace(note, referenced_at=_referenced_at(note)), head


def _read_head(line: str, origin: Origin) -> Head:
    """Return the head of a line; before a speaker, numbers of no message count, too."""
    head = read_head(line, origin.seqs)
    if head.formed or not _NUMBERED.match(line):
        return head
    numbered = read_head(line, _ANY_SEQS)
    return numbered if origin.speaker(_WHO.fullmatch(numbered.rest)) else head


def _observed_at(head: Head, origin: Origin, first: int, last: int) -> tuple[datetime | None, str]:
    """Return the time from the messages, and the stamp, for the text, if they contradict it."""
    said = sorted(at for seq, at in origin.times.items() if first <= seq <= last)
    if not said:
        # A number inside a note's range has no time of its own, so use that of the note before it.
        earlier = [seq for seq in origin.times if seq < first]
        said = [origin.times[max(earlier)]] if earlier else []
    stamp = head.stamp
    stamped = stamp and moment(stamp.day, (stamp.time or "0:00").zfill(5))
    if not said or stamped is None or stamp is None:
        return (said[0] if said else stamped), ""
    if stamp.day not in {day_of(at) for at in said}:
        return said[0], stamp.text
    return (said[0] if head.numbers else stamped.replace(tzinfo=said[0].tzinfo)), ""


def _referenced_at(note: Note) -> str | None:
    """Return the first day or month in the text other than the day of the observation.

    Relative dates left by the model are resolved from the time of the observation.
    """
    said = day_of(note.observed_at)
    for match in _ISO_DATE.finditer(note.text):
        if match[0] != said and moment(f"{match[0]}-01"[:10]) is not None:
            return match[0]
    if note.observed_at is None:
        return None
    found = (iso_date(mention) for mention in find_dates(note.text, note.observed_at))
    return next((day for day in found if day != said), None)
