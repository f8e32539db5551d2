"""The literals of a text, values that a summary must keep exactly, and the loss report."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Literal as OneOf, TypeAlias

from remanence.languages.vocabulary import LANGUAGES, vocabulary, vocabulary_of
from remanence.notes.excerpts import both_ends

LiteralKind: TypeAlias = OneOf["url", "path", "id", "date", "code", "quote", "number", "name"]

_RANK: dict[LiteralKind, int] = {
    "id": 0,
    "path": 1,
    "url": 1,
    "date": 2,
    "number": 2,
    "code": 3,
    "quote": 3,
    "name": 4,
}
MAX_SCANNED = 200_000
"""Characters of a text that are scanned: of a longer one, both ends."""

_SPACED = r"(?<!\d[ \u00a0\u202f])\d{1,3}(?:[ \u00a0\u202f]\d{3}){1,2}(?![ \u00a0\u202f]?\d)"
"""A number whose thousands are set off by spaces, unless more numbers are beside it."""
_SIGN = r"(?:[–−]|[€$£¥₩+-]?\s?)"
_UNIT = (
    r"%|€|£|¥|₩|°C?|′|″|''|(?:[kKMG]i?[Bb]|kg|km|cm|mm|ms|min|mph|px|vh|vw|rem|em|kWh|GHz|MHz)\b"
)
_FILE_TYPE = (
    r"py|js|jsx|ts|tsx|json|ya?ml|toml|md|txt|csv|sql|sh|go|rs|java|kt|c|cc|cpp|h|hpp|rb|php"
    r"|css|html?|xml|ini|cfg|lock|log|env|pdf|docx?|xlsx?|png|jpe?g|gif|svg|mp[34]|zip|gz"
)
_USER = r"(?<![A-Za-z0-9_+-])[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}+"
_URL = r"\b(?:https?|ftp|wss?|file|s3|git|ssh)://[^\s<>\"'`，。、）)\]}]+"
_HOST = r"www(?:\.[A-Za-z0-9-]++)+|(?:[a-z][a-z0-9-]*+\.)+[a-z]{2,24}(?=/[A-Za-z0-9])"
_URL_PATH = r"/[A-Za-z0-9_.~%&=?#+@:/-]*[A-Za-z0-9_/=]"
_HEX = "[0-9a-f]"
_HAS_DIGIT, _HAS_LETTER = r"(?=(?:[A-Za-z_]|-(?!-))*+\d)", r"(?=(?:[\d_]|-(?!-))*+[A-Za-z])"
_CASED = (range(0x590), range(0x1E00, 0x2000))
"""Latin, Greek, Cyrillic and Armenian, whose names begin with a capital letter."""
_CAPITALS = "".join(filter(str.isupper, map(chr, chain(*_CASED))))
_CAPITALISED = rf"[{_CAPITALS}][\w'’]+"
_CODE_FOLLOWS = r"[\w-]{0,40}-\w{0,20}\d|(?=[A-Za-z]*\d)\w{4}"

# Each pattern has one start per run of characters, or a bound, so that a scan is linear.
_PATTERNS: tuple[tuple[LiteralKind, str], ...] = (
    ("url", rf"{_URL}[^\s<>\"'`，。、）)\]}}.,;:!?]"),
    ("id", rf"{_USER}@(?:[\w-]++\.)+[A-Za-z]{{2,24}}(?![A-Za-z0-9])"),
    ("code", r"`[^`\n]{1,80}`"),
    ("quote", r"[\"“”„«「『《]([^\"“”„«»「」『』《》\n]{2,80})[\"”“»」』》]"),
    ("path", r"(?<![\w/.])(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.@+\[\]-]+){2,}/?(?<!\.)"),
    ("path", r"(?<![\w/.@-])(?:[\w.@-]++/)+[\w.@\[\]-]+\.\w{1,8}\b"),
    ("path", rf"(?<![\w/.@-])[\w-]++(?:\.[\w-]++)*\.(?:{_FILE_TYPE})\b"),
    ("url", rf"(?<![A-Za-z0-9_/.@-])(?:{_HOST})(?:{_URL_PATH})?"),
    ("date", r"\b\d{4}-\d\d?(?:-\d\d?)?(?:[T ]\d\d:\d\d(?::\d\d)?)?\b(?![-\w])"),
    ("date", r"(?:\d{2,4}\s*[年년]\s*)?\d{1,2}\s*[月월](?:\s*\d{1,2}\s*[日일号])?"),
    ("date", r"\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b"),
    ("date", r"\b\d{1,2}:\d\d(?::\d\d)?(?:\s?(?:[ap]m\b|[ap]\.m\b\.?))?"),
    ("id", rf"\b{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}\b"),
    ("id", r"(?<![\w#])#\d+\b"),
    (
        "id",
        rf"(?<!\w)(?<![A-Za-z0-9]-){_HAS_DIGIT}{_HAS_LETTER}[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)+\b",
    ),
    (
        "number",
        rf"(?<![\w.]){_SIGN}(?:{_SPACED}|\d+)(?:[.,]\d+)*(?:\s?(?:{_UNIT}))?(?![\w])",
    ),
    ("id", r"\b(?!\d+(?:st|nd|rd|th)\b)(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{4,}\b"),
    ("code", r"\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*){0,8}\(\)"),
    ("code", r"\b[a-z]\w*_\w+\b|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b"),
    ("code", r"\b[a-z]+(?:[A-Z][a-z0-9]*)+\b|\b(?:[A-Z][a-z0-9]+){2,}\b"),
    ("code", r"(?<!\w)--?[a-z][\w-]{2,}\b"),
    ("number", r"\d+(?:[.,]\d+)*"),
    ("name", rf"\b{_CAPITALISED}(?:[ -](?!{_CODE_FOLLOWS}){_CAPITALISED})*(?!-\d)"),
)
_PLAIN = r"(?<![\w/\\.@-])(?:[a-z]+(?:['’][a-z]+)?[,;.!?]*\s+)+"  # most of a prose text, at once
_THOUSANDS = re.compile(rf"(?<=\d),(?=\d{{3}})|(?<![\d.,]){_SPACED}")
_CURRENCIES = "€$£¥₩"
_ALIKE = str.maketrans("’–−", "'--")
"""Apostrophes and minus signs, and the marks that they are compared as."""
NOUNS_IN_CAPITALS = frozenset({"de"})
"""Languages in which a capital letter is no sign of a name."""
_ENDS = " .!?…\n"
_SENTENCE_END = re.compile(r"(?:^|[.!?:;\n*•\-–—\"“(\[。！？…]|\d[.)])\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """A value, verbatim from a text."""

    text: str
    kind: LiteralKind


def find_literals(text: str) -> tuple[Literal, ...]:
    """Return names, numbers, dates, paths, ids, URLs, code identifiers and quotes, in order.

    Only the head and the tail of a very long text are scanned.
    """
    return tuple(_literals(both_ends(text, MAX_SCANNED)))


class LossReport:
    """The literals that notes lost from a source, which is added piece by piece.

    Values are compared regardless of letter case, currency signs, thousand separators, full-width
    digits and the form of a minus sign. In German a single word with a capital letter is mostly no
    name, and is left out. Names in scripts without capital letters, such as Chinese, are not found.
    """

    def __init__(self, note_text: str) -> None:
        self._kept = _normal(note_text)
        self._present: set[str] = set()
        self._missing: dict[str, Literal] = {}
        self._counts: Counter[str] = Counter()

    def add(self, source_text: str) -> None:
        """Add the literals of a piece of the source."""
        are_nouns = vocabulary_of(source_text).language in NOUNS_IN_CAPITALS
        for literal in find_literals(source_text):
            key = _normal(literal.text).strip(f"{_CURRENCIES} ")
            is_noun = are_nouns and literal.kind == "name" and " " not in literal.text
            if not key or is_noun or key in self._present:
                continue
            if key not in self._missing:
                if contains(self._kept, key):
                    self._present.add(key)
                    continue
                self._missing[key] = literal
            self._counts[key] += 1

    def missing(self) -> tuple[Literal, ...]:
        """Return all missing literals with their kinds, the most specific first."""
        ranked = sorted(
            self._missing.items(), key=lambda item: (_RANK[item[1].kind], -self._counts[item[0]])
        )
        return tuple(literal for _, literal in ranked)


@cache
def _scan() -> re.Pattern[str]:
    # Compiled on first use, as it takes milliseconds, and imports should be fast.
    names = (f"(?P<p{i}>{pattern})" for i, (_, pattern) in enumerate(_PATTERNS))
    return re.compile(f"{_PLAIN}|{'|'.join(names)}")


def _literals(text: str) -> Iterable[Literal]:
    for match in _scan().finditer(text):
        if match.lastgroup is None:
            continue
        kind = _PATTERNS[int(match.lastgroup[1:])][0]
        value = match[0].strip()
        if kind == "name" and _opens_sentence(text, match):
            continue
        if kind in ("code", "quote"):
            value = value.strip('`"“”„«»「」『』《》')
        if value.strip():
            yield Literal(text=value, kind=kind)


def _opens_sentence(text: str, match: re.Match[str]) -> bool:
    """Return whether a single word may be capitalised only because it opens a sentence.

    A word that is the whole text is an answer, such as the name of a place, unless it is a small one.
    """
    if " " in match[0]:
        return False
    if text.strip(_ENDS) == match[0] and match[0].casefold() not in _small_words():
        return False
    before = text[max(0, match.start() - 12) : match.start()]
    return bool(_SENTENCE_END.search(before)) or len(match[0]) < 2


@cache
def _small_words() -> frozenset[str]:
    """Return the small words of all languages: "yes", "danke"."""
    tables = map(vocabulary, LANGUAGES)
    return frozenset().union(*(own.function_words | own.weak for own in tables))


def _normal(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_ALIKE)
    return " ".join(_THOUSANDS.sub(_without_marks, folded).split())


def _without_marks(match: re.Match[str]) -> str:
    return match[0].strip(",").replace(" ", "")


def contains(text: str, value: str) -> bool:
    """Return whether *text* has *value* as a whole word: `312` does not have `12`."""
    start = text.find(value)
    while start >= 0:
        before, after = text[start - 1 : start], text[start + len(value) : start + len(value) + 1]
        if not (_joins(before, value[0]) or _joins(value[-1], after)):
            return True
        start = text.find(value, start + 1)
    return False


def _joins(left: str, right: str) -> bool:
    return bool(left and right) and (
        (left.isdigit() and right.isdigit())
        or (left.isascii() and right.isascii() and left.isalnum() and right.isalnum())
    )
