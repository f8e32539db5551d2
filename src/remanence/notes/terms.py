"""Content words of a text in any script, by which a repetition of it is found."""

import re
from functools import cache

from remanence.languages.vocabulary import LANGUAGES, vocabulary
from remanence.notes.plain_text import plain_text

_MIN_LETTERS = 3
_RUN = 4  # of a script without spaces that writes a syllable with several characters
_HANGUL = r"\uac00-\ud7a3"
_IDEOGRAPHS = r"\u30a1-\u30fa\u30fc\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"  # and Katakana
_HIRAGANA = r"\u3041-\u309f"
_SYLLABIC = r"\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
_UNSPACED = f"{_HANGUL}{_IDEOGRAPHS}{_HIRAGANA}{_SYLLABIC}"
_WORD = rf"(?:[^\W_{_UNSPACED}]|[\u0900-\u0dff]){{{_MIN_LETTERS},}}"
_PAIRS, _RUNS = f"[{_IDEOGRAPHS}]{{2,}}", f"[{_SYLLABIC}]{{{_RUN},}}"
_PIECE = re.compile(
    f"(?P<hangul>[{_HANGUL}]{{2,}})|(?P<pairs>{_PAIRS})|(?P<runs>{_RUNS})|(?P<word>{_WORD})"
)


def terms(text: str) -> frozenset[str]:
    """Return the words of content, in scripts without spaces pieces of them, in plain form.

    Of Korean these are the beginnings of words, to which particles are added, of Chinese
    characters and Katakana pairs. Hiragana, which mostly writes endings, has none.
    """
    return _all_terms(text) - _small_terms()


def _all_terms(text: str) -> frozenset[str]:
    found: set[str] = set()
    for match in _PIECE.finditer(plain_text(text)):
        piece = match[0]
        match match.lastgroup:
            case "hangul":
                found.add(piece[:2])
            case "pairs":
                found |= {piece[at : at + 2] for at in range(len(piece) - 1)}
            case "runs":
                found |= {piece[at : at + _RUN] for at in range(len(piece) - _RUN + 1)}
            case _:
                found.add(piece)
    return frozenset(found)


@cache
def _small_terms() -> frozenset[str]:
    texts: list[str] = []
    for table in map(vocabulary, LANGUAGES):
        kinds = (table.function_words, table.slight, table.first, table.second, table.denials)
        texts += [word for kind in (*kinds, table.light) for word in kind]
        texts += [phrase for phrases in table.cues.values() for phrase in phrases]
    found = {term for text in texts for term in _all_terms(text)}
    small = {character for name in ("ja", "zh") for character in vocabulary(name).small}
    return frozenset(found | {one + other for one in small for other in small})
