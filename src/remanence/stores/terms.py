"""Terms of texts and queries for a full-text index of any script.

Tokenizers split at spaces. Scripts without spaces, or with suffixes attached to words, such as
Chinese, Japanese, Korean and Thai, are first cut into overlapping character pairs, in the index and
in queries. The tokenizer must treat letters, digits and marks as parts of a word.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import groupby

from remanence.notes.plain_text import VOWEL_MARKS, western_digits
from remanence.types import Part, TextPart, ToolCallPart, ToolResultPart
from remanence.wire.content import other_texts

_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u30ff\u3130-\u318f"
    r"\u31f0-\u9fff\ua960-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUN = re.compile(f"[{_UNSPACED}]+")
_ACCENTS = re.compile(f"[{VOWEL_MARKS}\u0300-\u036f\ufe00-\ufe0f]")  # and variation selectors
_ESCAPES = re.compile(r"(?<!\\)(?:\\u(?!00[0-9])[0-9a-fA-F]{4})+")
_END_TERMS = 64  # per end of a query; otherwise a pasted page would read the whole index


def index_terms(text: str) -> str:
    """Return the folded text with unspaced runs cut into pairs, plus each run's last character."""
    if text.isascii():
        return text.lower()
    return fold(_RUN.sub(_space_pairs, unicodedata.normalize("NFKC", text)))


def index_words(text: str) -> list[str]:
    """Return the folded words and pairs of a text, for an index without a tokenizer of its own."""
    return _word().findall(index_terms(text))


def fold(text: str) -> str:
    """Return a text in lower case, without accents and optional vowel marks, with digits 0 to 9."""
    if not text.isascii():
        plain = _ACCENTS.sub("", unicodedata.normalize("NFD", text))
        text = western_digits(unicodedata.normalize("NFC", plain)).casefold()
    return text.lower()


def query_terms(query: str) -> tuple[str, ...]:
    """Return the distinct words and pairs of a query; a single unspaced character gets a `*`.

    A long query loses its middle, as the question is at either end of a pasted text.
    """
    words = _word().findall(unicodedata.normalize("NFKC", query))
    terms = tuple(dict.fromkeys(term for word in words for term in _terms(word)))
    return terms if len(terms) <= 2 * _END_TERMS else terms[:_END_TERMS] + terms[-_END_TERMS:]


def searchable_text(content: Sequence[Part]) -> str:
    """Return the searchable text of a message: its text, tool calls and results, and others."""
    texts: list[str] = []
    for part in content:
        if isinstance(part, TextPart):
            texts.append(part.text)
        elif isinstance(part, ToolResultPart):
            texts.append(_unescape(part.text))
        elif isinstance(part, ToolCallPart):
            texts.append(f"{part.name} {_unescape(part.arguments)}")
    texts += other_texts(content)
    return "\n".join(filter(None, texts))


@cache
def _word() -> re.Pattern[str]:
    r"""Return the pattern of words; combining marks, which `\w` excludes, are part of them."""
    runs = groupby(
        map(chr, range(0x300, 0x1F000)),
        key=lambda character: unicodedata.category(character) in {"Mn", "Mc"},
    )
    marks = [[*run] for is_mark, run in runs if is_mark]
    ranges = "".join(f"{run[0]}-{run[-1]}" for run in marks)
    letter = rf"[^\W_{_UNSPACED}]"
    return re.compile(rf"[{_UNSPACED}]+|{letter}(?:{letter}|[{ranges}])*")


def _unescape(text: str) -> str:
    """Return a JSON text with its escaped letters as letters, and any other text as it is."""
    if "\\u" not in text or not text.lstrip().startswith(("{", "[", '"')):
        return text
    return _ESCAPES.sub(_decode, text)


def _decode(escapes: re.Match[str]) -> str:
    units = escapes.group().encode().decode("unicode_escape")
    return units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _terms(word: str) -> list[str]:
    return (_pairs(word) or [f"{word}*"]) if _RUN.match(word) else [word]


def _pairs(run: str) -> list[str]:
    return [run[place : place + 2] for place in range(len(run) - 1)]


def _space_pairs(run: re.Match[str]) -> str:
    text = run.group()
    return f" {' '.join([*_pairs(text), text[-1]])} "
