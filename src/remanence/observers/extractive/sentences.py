"""Splits text into sentences and clauses, in scripts with and without spaces."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from remanence.languages.vocabulary import cue_phrases, vocabulary
from remanence.notes.excerpts import whole
from remanence.notes.redact import MARK
from remanence.observers.extractive.quotations import MIN_QUOTATION, QUOTATION


class Span(NamedTuple):
    """A stretch of a text."""

    start: int
    end: int


ITEM = "• "
"""Mark before each item of a list, repeated before one of an inner list."""
CODE = r"(?<!\w)`[^`\n]{1,200}+`(?!\w)"
"""Code between backticks; one in or behind a word is an apostrophe: "don`t", "perche`"."""
_SPACE = rf"\s+(?:{ITEM})*+"
_RUN = r"(?<=\s)(?<![=<>]\s)(?:(?<!\s\s)|(?<=[=<>]\s\s))"
"""One place of a run of spaces: to look for its end from each of them would take long."""
_STOPS = "।॥۔։።፧፨།༎။។៕"
"""Danda, and the marks that end sentences in Urdu, Armenian, Amharic, Tibetan, Burmese and Khmer."""
_ENDS = (
    rf"(?<=[.!?…؟{_STOPS}])(?:[\"'”“’»«)\]]|\s»){{0,20}}{_SPACE}(?=[^%s\s{ITEM}])",
    rf"(?<=[!?؟])[!?؟]{{0,20}}{_SPACE}",
    rf"(?<=[。！？；…])[。！？…]{{0,20}}[」』”’）]{{0,20}}(?:{_SPACE})?",
    rf"(?<=[α-ωά-ώ][;\u037e]){_SPACE}(?=[Α-ΩΆ-Ώ])",  # the Greek question mark
    r"(?<=[።፧။។])(?=[^\W\d_])",
    r"(?<=[!?])(?=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])",
    rf"(?<=\n)\n*(?:{ITEM})*+",
    rf"{_RUN}\s*+(?=(?!{re.escape(MARK)})\[[^\[\]\n]{{3,}}\]\s*(?:\n|\Z|\[))",
)
# Begins with a character class, as `_CLAUSE` does, which `re` scans fastest.
_END = rf"[.!?…؟{_STOPS}。！？；;\u037e\s](?:{'|'.join(_ENDS)})"
_OPENS_SMALL = re.compile(r"[\W\d_]*+[a-zà-ÿ]+(?:['’-][a-zà-ÿ]+)*[ ,.!]")
"""Opening of a message whose author begins sentences in lower case."""
_GOES_ON_SMALL = re.compile(r"[.!?](?<=[^\W\d_]{3}.) +[a-zà-ÿ]")
_GOES_ON_LARGE = re.compile(r"[.!?](?<=[^\W\d_]{3}.) +[A-ZÀ-Þ]")
_SUBJECT = r"(?:i|we|you|he|she|it|they|the|this|that|these|my|your|our|his|her|their)\b"
"""Subject that makes "but" open a new clause; before a verb, "but" continues the clause."""
_LETTER = r"(?:[^\W_]|[\u0900-\u0963\u0981-\u0df3])"  # with the vowel signs of Indic scripts
_WORD_BEFORE = re.compile(rf"{_LETTER}+(?:\.{_LETTER}+)*\.$")
_MAX_ABBREVIATION = 16
_INITIALS = re.compile(r"(?:[^\W\d_]{1,2}\.)*[^\W\d_]\.")
"""A letter, or letters with a period behind each: "p.m."."""
_NUMBER_BEFORE = re.compile(r"\d\.?\s?$")
_COMPOUND = re.compile(r"[a-zß](?:str|nr)\.$")
"""Compound with the short form of street or number: "Hauptstr.", "Schadennr.", "klantnr."."""
_CODE_SPAN = re.compile(CODE)
_NEXT_LETTER = re.compile(r"[^\W\d_]\.")
_JOINTS = (
    rf"(?<=\s)\s*(?:[-–—]+\s+|(?=but\s+{_SUBJECT}))",
    r"(?<=;)\s+",
    r"(?<=:)\s+(?=\w+\s+\w+)",
    rf"(?<=,)\s+(?=(?:and|so|plus|then)\s|but\s+{_SUBJECT})",
    r"(?<=[—，；：])",
)
_CLAUSE = re.compile(rf"[\s—;:,，；：](?:{'|'.join(_JOINTS)})", re.IGNORECASE)
_PAUSE = re.compile(r"[\s,;،؛，、；—](?:(?<=[,;،؛])\s+|(?<=[，、；—])\s*|(?<=\s)[-–—]+\s+)")
"""A comma, a semicolon or a dash, with the space around it."""
QUESTION_MARK = re.compile(r"\s*[?？؟፧\u037e]\s*$")
"""The mark at the end of a sentence that asks, with the space around it."""
_MONTH = re.compile(r"(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)")
_NUMBER = re.compile(r"\d{1,2}\.(?:\d{1,2}\.)?")
"""An ordinal, or a day and a month."""
_BEFORE_ORDINAL = (
    r"\b(?:d(?:er|ie|as|e[nms])|(?<!\bi )am|im|zu[mr]|vom|beim|seit|bis|ab|als|und|oder) ",
    r"\b(?:[mds]?ein|ihr|unser|eur|jede|diese)e?[mnrs]? ",
    r"\b\d{1,2}\. [a-zà-ÿ]+ ",
    r"[,(] ?",
)
"""Words that German puts before an ordinal, another ordinal with a word, and marks."""
_ORDINAL = re.compile(
    rf"(?:{'|'.join(_BEFORE_ORDINAL)})\d{{1,2}}\.(?:\d{{1,2}}\.)?$", re.IGNORECASE
)
_OTHER_ORDINAL = re.compile(r"[a-zà-ÿ]+ \d{1,2}\.")
"""What follows the first of two ordinals: "5. und 6. Mai"."""
_NUMBER_OF = re.compile(r"\w no\.$")
_CODE = re.compile(r"(?!\d+(?:st|nd|rd|th)\b)[A-Z]{0,5}[-/]?\d|__")
_WORD = re.compile(r"\w+")
_MIN_CLAUSE = 12
_MIN_HEAD = 30
"""A shorter head before a colon is a label and stays with its value."""
_NEGATION = re.compile(r"\b(?:not|nicht|no|non|pas|не)\b[^,;]{0,40}$", re.IGNORECASE)
_LONG = 600


def both_ends_of(spans: Sequence[Span], half: int) -> tuple[Span, ...]:
    """Return the first and the last *half* of more than twice as many sentences."""
    return tuple(spans) if len(spans) <= 2 * half else (*spans[:half], *spans[-half:])


def sentences(text: str) -> Iterator[Span]:
    """Yield the sentences of a readable text without list marks; long ones are cut.

    None ends in code, or in a short quotation that its line closes.
    """
    start = 0
    while text.startswith(ITEM, start):
        start += len(ITEM)
    ends, small_ends = _ends()
    if _is_small(text):
        ends = small_ends
    code = [Span(*span.span()) for span in _CODE_SPAN.finditer(text)]
    quoted = [Span(*found.span()) for found in QUOTATION.finditer(text)]
    quoted = [span for span in quoted if span.end - span.start - 2 < MIN_QUOTATION]
    for match in ends.finditer(text):
        is_inside = _is_inside(match.end(), code) or _is_inside(match.end(), quoted)
        goes_on = "\n" not in match[0] and (is_inside or _goes_on(text, start, match))
        if match.end() == start or goes_on:
            continue
        yield from _trim(text, start, match.end())
        start = match.end()
    yield from _trim(text, start, len(text))


def _is_inside(place: int, spans: Sequence[Span]) -> bool:
    before = bisect_left(spans, (place,))
    return before > 0 and spans[before - 1].end > place


def _goes_on(text: str, start: int, end: re.Match[str]) -> bool:
    """Return whether a sentence goes on: behind an abbreviation, an ordinal or "no."."""
    stop, after = end.start() + 1, end.end()
    before = _WORD_BEFORE.search(text, max(start, stop - _MAX_ABBREVIATION), stop)
    if before is None:
        return False
    word = before[0]
    if _is_abbreviation(text, before, after) or (
        _INITIALS.fullmatch(word) and _NEXT_LETTER.match(text, after)  # "z. B.", "p. m."
    ):
        return True
    if _NUMBER_OF.search(text, max(start, stop - 5), stop):
        return bool(_CODE.match(text, after))
    return _is_ordinal(text, start, before, after)


def _is_abbreviation(text: str, before: re.Match[str], after: int) -> bool:
    """Return whether a word with a period is one after which its sentence goes on."""
    word, following = before[0], text[after : after + 1]
    short = word[:-1].casefold()
    if short in cue_phrases("abbreviation") or (len(word) == len("J.") and word[0].isupper()):
        return True
    goes_on = following.isdigit() or following.islower()
    if goes_on and _INITIALS.fullmatch(word):
        return True
    is_compound = _COMPOUND.search(word) is not None
    if (is_compound or short in cue_phrases("before_number")) and _CODE.match(text, after):
        return True
    if is_compound and following.islower():
        return True
    beside = short in cue_phrases("before_number") and not following.isupper()
    return bool(beside and _NUMBER_BEFORE.search(text, max(0, before.start() - 3), before.start()))


def _is_ordinal(text: str, start: int, before: re.Match[str], after: int) -> bool:
    """Return whether a number with a period is an ordinal, as German and others write it."""
    if not _NUMBER.fullmatch(before[0]):
        return False
    if _MONTH.match(text, after):
        return True
    if before.start() == start and _OTHER_ORDINAL.match(text, after):
        return True
    word = _WORD.match(text, after)
    if before.start() == start:
        return bool(word and word[0].lower() not in _small_words())
    follows = _ORDINAL.search(text, max(start, before.end() - 12), before.end())
    is_small = text[after : after + 1].islower()
    return bool(follows and word and (is_small or word[0].lower() not in _small_words()))


@cache
def _small_words() -> frozenset[str]:
    """Return words that no ordinal precedes."""
    return vocabulary("de").function_words | vocabulary("en").function_words


@cache
def _ends() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the ends of sentences, and those where sentences may begin in lower case."""
    # Compiled on first use, as it takes milliseconds, and imports should be fast.
    return re.compile(_END % "a-zà-ÿ"), re.compile(_END % "")


def _is_small(text: str) -> bool:
    """Return whether the first sentence, or at least half of the others, begin in lower case."""
    if _OPENS_SMALL.match(text):
        return True
    small = len(_GOES_ON_SMALL.findall(text))
    return small > 0 and small >= len(_GOES_ON_LARGE.findall(text))


def clauses(text: str, sentence: Span) -> Iterator[Span]:
    """Yield the clauses of a sentence; one shorter than `_MIN_CLAUSE` is not split off."""
    start = sentence.start
    for match in _CLAUSE.finditer(text, start, sentence.end):
        if match.start() - start < _MIN_CLAUSE or sentence.end - match.end() < _MIN_CLAUSE:
            continue
        if _belong(text, start, match):
            continue
        yield from _trim(text, start, match.end())
        start = match.end()
    yield from _trim(text, start, sentence.end)


def parts(text: str, sentence: Span) -> Iterator[Span]:
    """Yield what stands between the commas, semicolons and dashes of a sentence."""
    start = sentence.start
    for pause in _PAUSE.finditer(text, sentence.start, sentence.end):
        if start < pause.start() and pause.end() < sentence.end:
            yield Span(start, pause.start())
            start = pause.end()
    yield Span(start, sentence.end)


def _belong(text: str, start: int, joint: re.Match[str]) -> bool:
    """Return whether the sides of a joint belong together: a label and its value, "not X but Y"."""
    if joint[0][0] in ":：":
        return joint.start() - start < _MIN_HEAD
    if text.startswith("而", joint.end()):
        return True
    return joint[0].isspace() and bool(_NEGATION.search(text, start, joint.start()))


def _trim(text: str, start: int, end: int) -> Iterator[Span]:
    piece = text[start:end].lstrip()
    start = end - len(piece)
    end = start + len(piece.rstrip().rstrip(ITEM).rstrip())
    while end - start > _LONG:
        cut = text.rfind(" ", start + _LONG // 2, start + _LONG)
        cut = cut if cut > 0 else whole(text, start + _LONG)
        yield Span(start, cut)
        start = cut + 1 if text[cut : cut + 1] == " " else cut
    if end > start:
        yield Span(start, end)
