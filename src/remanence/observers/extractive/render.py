"""Wording of clauses in notes: whole, or without function words."""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from remanence.languages.letters import is_letters
from remanence.languages.vocabulary import Vocabulary, vocabulary_of
from remanence.notes.redact import MARK
from remanence.observers.extractive.sentences import CODE

_UNITS = "%٪％؉‰℃℉㎀-㏟"
"""Signs behind a number, as a class of characters: per cent, and the squared units of Japanese."""
_BEFORE = (
    r"(?:[^\w!$€£¥#@~/+`.*±≈≤≥≠–-]|–(?![$€£¥]?\d)"
    r"|\.(?!\w)|(?<=\.)\.|\*(?![\w.*/])|!(?!\w))*+"
)
_ENDS = rf"\w{_UNITS}€£¥°`)+/"
_EDGES = re.compile(rf"^({_BEFORE})(.*(?:[{_ENDS}]|(?<=[A-Za-z])#)|)([^{_ENDS}]*+)$", re.DOTALL)
"""Punctuation around a word; the dot of ".env" and the marks of "!402" and "!build/" are part of it."""
_STRUCK = r"~~[^~\n]{1,200}~~"
_CHUNK = re.compile(rf"(?:{CODE}|{_STRUCK}|\S)+")
"""A word with the marks around it; code between backticks, or what is struck out, is one word."""
_CODE_SIGNS = frozenset("^$*+?|{[\\<=~")
"""Marks of which prose seldom has two in a word, unlike patterns and templates: `^[a-z]*$`."""
_CODE_MARKS = re.compile(rf"[{{}}]|\w\W*\"\W*\w|{_STRUCK}")
"""Braces, and quotation marks within a word, which prose does not have: `-d'{"name":"John"}'`."""
_KANA_AND_HAN = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_SCRIPT_WITHOUT_SPACES = re.compile(rf"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff{_KANA_AND_HAN}]+")
_HANGUL = re.compile(r"[\uac00-\ud7af]")
_OPENING = '"“„«‹「『《(（[{'
_CLOSING = '"”“»›」』》)）]}'
_TURNED_OPENING = "”»›"
_TURNED_CLOSING = "«‹"
"""Marks that quote the other way round: ”…” and »…« of Swedish, Danish, German and others."""
_QUOTING = "“”„"
"""Marks of which a quotation has two, which ones depends on the language."""
_PAIRS = tuple(zip(_OPENING, _CLOSING, strict=True))
_UNCLOSED = re.compile(
    r"(?:(?<=\s)((?<!\d )\"(?=\w)|[“„](?=\w)|« ?(?=\w))|(?<=\w)([「『])(?=\w))[^\"“”„«»「」『』]*$"
)
"""A quotation behind other words, but for the inch mark of 3.5 ", whose end is in another sentence."""
_ENDINGS = {'"': '"', "“": "”", "«": "»", "« ": " »", "「": "」", "『": "』"}
_CLOSE_LIKE_GERMAN = frozenset({"de", "ru"})
"""Languages that close „ with “."""
_PAUSES = ",;:、，،؛"
_KEPT_TAIL = f"{_CLOSING}{_PAUSES}%"
_WIDE_MARKS = frozenset("，、；：。！？（「『《")
"""No space follows them."""
_LOOSE_ENDS = re.compile(r"(?:[,;:–—、，،؛\s]|(?<=\s)-)+$")
_SIGNS = frozenset("-#@&§*^№%٪％‰؉°′″\\")
"""Marks that belong to a value, besides the signs of currencies and of mathematics."""
_TERM_LENGTH = 7
OPERATORS = frozenset(
    {"=", "==", "!=", "<", ">", "<=", ">=", "≤", "≥", "≠", "≈", "±", "+=", "-=", ":="}
    | {"->", "=>", "→", "*", "**", "×", "÷", "//", "%", "^", "<<", ">>", "&", "&&", "||", "|"}
)
"""Marks kept between two words, without weight of their own."""
_BETWEEN = frozenset("-–−—:;")
"""Marks kept where a space stands on both sides of them, as French has before a colon."""
_QUOTES = frozenset("«»„“”")
_ORDINAL = re.compile(r"\d{1,2}\.[,;]")
"""An ordinal before a pause: "am 18., nicht am 19."."""
_INITIALS = re.compile(r"(?:[^\W\d_]{1,2}\.){2,}")
_APOSTROPHES = frozenset("'‘’‚")
_SEVERAL_APOSTROPHES = re.compile(
    rf"{CODE}|(?<!\w)(?P<marks>'{{2,5}})(?=\w)(?P<text>[^`\n]{{1,200}}?)(?<=\w)(?P=marks)(?!\w)"
)
"""Code, or text set in italics or bold by several apostrophes, unlike the inches of 6''."""
_DOTS_END = re.compile(r"(?:(?<!\.)\.{2,}+|…)$")
_MAX_DOTS = 3
_HALVES = frozenset({"am", "a.m", "pm", "p.m"})


class Word(NamedTuple):
    """A word of a clause: its spelling in a note and the key it is compared by.

    A glued word follows the one before it without a space.
    """

    text: str
    key: str
    dropped: bool = False
    is_date: bool = False
    is_name: bool = False
    glued: bool = False


def words(text: str, vocabulary: Vocabulary, *, opens: bool, glued: bool = False) -> Iterator[Word]:
    """Yield the words of a piece of a clause.

    *opens* marks the start of a sentence; *glued* means that no space precedes the first word.
    """
    follows_denial = False
    held: Word | None = None
    dots = ""
    for chunk, word in _read_chunks(text, vocabulary, opens=opens):
        if word is not None:
            if held is not None:
                yield _with_dots(held, dots)
            held = word._replace(glued=glued, dropped=word.dropped and not follows_denial)
            follows_denial = word.key in vocabulary.denials
            dots = ""
        glued = False
        if ending := _DOTS_END.search(chunk):
            dots = dots or ending[0][:_MAX_DOTS]
    if held is not None:
        yield held


def _read_chunks(
    text: str, vocabulary: Vocabulary, *, opens: bool
) -> Iterator[tuple[str, Word | None]]:
    """Yield the chunks of a text, each with its word; marks and emoji have none."""
    chunks = _CHUNK.findall(_SEVERAL_APOSTROPHES.sub(_with_one_apostrophe, text))
    for place, chunk in enumerate(chunks):
        has_next = place + 1 < len(chunks)
        word = _word(chunk, vocabulary, opens)
        if place and chunks[place - 1][-1].isdigit():
            word = _after_number(chunk, word)
        if place and has_next and chunk in _BETWEEN:
            word = Word(chunk, chunk)
        goes_on = has_next and chunk.endswith(".") and not chunk.endswith("..")
        if word is not None and (goes_on or _INITIALS.fullmatch(chunk)):
            word = word._replace(text=f"{word.text.rstrip('.')}.")
        if word is not None and _ORDINAL.fullmatch(chunk):
            word = word._replace(text=chunk)
        opens = False
        yield chunk, word


def _with_dots(word: Word, dots: str) -> Word:
    return word._replace(text=word.text.rstrip(f".{_PAUSES}") + dots) if dots else word


def _with_one_apostrophe(match: re.Match[str]) -> str:
    return f"'{match['text']}'" if match["text"] else match[0]


def _after_number(chunk: str, word: Word | None) -> Word | None:
    """Keep a chunk that belongs to the number before it: "pm", a unit sign."""
    if word is not None:
        return word._replace(dropped=False) if word.key in _HALVES else word
    return Word(chunk.rstrip(".!?"), chunk[0]) if chunk[0] in "%٪％‰؉°℃℉" else None


def render_words(parts: Sequence[Word]) -> str:
    """Return the kept words as one line; brackets of dropped words move to kept ones."""
    line: list[str] = []
    opened, spaced = "", True
    for word in parts:
        spaced = spaced or not word.glued
        if not word.text:
            continue
        if not word.dropped:
            spaced = spaced and bool(line) and line[-1][-1:] not in _WIDE_MARKS
            line.append(f"{' ' if spaced else ''}{opened}{word.text}")
            opened, spaced = "", False
        elif word.text[0] in _OPENING:
            opened += word.text[0] if word.text[-1] not in _CLOSING else ""
        elif line and word.text[-1] in _CLOSING and not opened:
            line[-1] += word.text[-1]
        elif word.text[-1] in _CLOSING:
            opened = ""
    text = _LOOSE_ENDS.sub("", "".join(line))
    if unclosed := _UNCLOSED.search(text):
        text += _ending_of(unclosed[1] or unclosed[2], parts)
    return _without_loose_ends(text)


def _ending_of(opening: str, parts: Sequence[Word]) -> str:
    """Return the mark that closes a quotation in the language of some words, kept or not."""
    if opening == "„":
        language = vocabulary_of(" ".join(word.text for word in parts)).language
        return "“" if language in _CLOSE_LIKE_GERMAN else "”"
    return _ENDINGS[opening]


def _without_loose_ends(text: str) -> str:
    """Return the line without trailing punctuation and unpaired brackets."""
    if text.count("`") % 2:
        text = text.replace("`", "")
    is_quoted = sum(map(text.count, _QUOTING)) % 2 == 0
    is_interval = sum(map(text.count, "([")) == sum(map(text.count, ")]"))
    for opening, closing in _PAIRS:
        if opening in _QUOTING and (is_quoted or (opening == "“" and "„" in text)):
            continue  # it closes a quotation
        if text.count(opening) == (text.count(closing) if opening != closing else 0):
            continue
        if opening in "([" and is_interval:
            continue
        if opening == closing:
            text = text.strip(opening) if text.count(opening) % 2 else text
        elif text.count(opening) > text.count(closing):
            text = _without_last(text, opening)
        else:
            text = text.removesuffix(closing)
    return _LOOSE_ENDS.sub("", text)


def _without_last(text: str, opening: str) -> str:
    """Return the text without its last opening bracket, if that begins a word."""
    place = text.rfind(opening)
    begins = place == 0 or text[place - 1] == " " or opening != "("
    return text[:place] + text[place + 1 :] if begins else text


def drop_light_words(parts: Sequence[Word], vocabulary: Vocabulary) -> tuple[Word, ...]:
    """Return the words with light ones dropped, except before a value: "at 5pm", "to Greta"."""
    kept = list(parts)
    following: Word | None = None
    for index in range(len(parts) - 1, -1, -1):
        word = parts[index]
        if word.key in vocabulary.light and not (following and _is_value(following)):
            kept[index] = word._replace(dropped=True)
        elif not word.dropped:
            following = word
    return tuple(kept)


def _is_value(word: Word) -> bool:
    return word.is_date or word.is_name or not is_letters(word.key)


def drop_address(parts: Sequence[Word], names: Collection[str]) -> tuple[Word, ...]:
    """Drop names that only address somebody: "thanks, Ana", but not "the owner is Ana"."""
    kept = list(parts)
    for index, word in enumerate(parts):
        if word.key not in names:
            continue
        before = parts[index - 1] if index else None
        set_off = before is None or before.text.endswith(",")
        ends = index == len(parts) - 1 or word.text.endswith(",")
        if set_off and ends:
            kept[index] = word._replace(dropped=True)
    return tuple(kept)


@lru_cache(maxsize=50_000)
def terms(key: str) -> tuple[str, ...]:
    """Return the terms of a word: its stem, or bigrams in a script without spaces."""
    if key.isascii():
        stem = key.removesuffix("'s").rstrip("s") if len(key) > 3 else key
        return (stem[:_TERM_LENGTH] if " " not in stem else stem,)
    if run := _SCRIPT_WITHOUT_SPACES.search(key):
        text = run[0]
        rest = terms(key[: run.start()] + key[run.end() :]) if len(text) < len(key) else ()
        return (*(text[i : i + 2] for i in range(max(1, len(text) - 1))), *rest)
    if _HANGUL.search(key):
        return (key[: max(2, len(key) - 2)],)
    return (key[:_TERM_LENGTH],)


def terms_of(word: Word) -> tuple[str, ...]:
    """Return the terms of a word; names and numbers stay whole, as similar ones differ."""
    is_whole = word.key.isascii() and (word.is_name or has_digit(word))
    return (word.key,) if is_whole else terms(word.key)


def has_digit(word: Word) -> bool:
    """Return whether a word is a number or has one in it."""
    return any(character.isdigit() for character in word.key)


@lru_cache(maxsize=20_000)
def _word(chunk: str, vocabulary: Vocabulary, opens: bool) -> Word | None:  # noqa: FBT001 - cached
    if chunk in OPERATORS:
        return Word(chunk, chunk)
    if MARK in chunk:
        return Word(chunk.rstrip(".!?…;:"), MARK)
    is_code = len(_CODE_SIGNS.intersection(chunk)) > 1 or _CODE_MARKS.search(chunk)
    if is_code and any(map(str.isalnum, chunk)):
        code = chunk.rstrip(".!?…")
        return Word(code, code.rstrip(",;:").lower())
    edges = _EDGES.match(chunk)
    assert edges is not None
    lead, core, tail = edges.groups()
    if core:
        if tail[:1] in ("'", "׳") and "א" <= core[-1] <= "ת" and tail[0] not in lead:
            core, tail = core + tail[0], tail[1:]  # the geresh of a Hebrew abbreviation
        while tail and unicodedata.category(tail[0])[0] == "M":  # a vowel sign, an accent
            core, tail = core + tail[0], tail[1:]
    else:
        quotes = _QUOTES if _QUOTES.union(_PAUSES).issuperset(chunk) else ""
        signs = "".join(m for m in chunk.replace("-", "") if _is_sign(m) or m in quotes)
        return Word(signs + chunk[len(chunk.rstrip(_PAUSES)) :], signs) if signs else None
    key = core.lower().replace("’", "'")
    if tail[:1] == "!" and any(map(str.isdigit, core)) and any(map(str.isalpha, core)):
        core, tail = f"{core}!", tail[1:]  # the end of a password as well as of the sentence
    opening = "".join(mark for mark in lead if mark in _OPENING + _TURNED_OPENING)[-2:]
    closing = "".join(mark for mark in tail if mark in _KEPT_TAIL + _TURNED_CLOSING)[:2]
    is_name = not opens and core[0].isupper() and key not in vocabulary.first
    before = _marks_of_value(lead)
    if before:
        opening, before = "", "".join(mark for mark in lead if mark in opening + before)
    text = before + core + _marks_of_value(tail.replace("--", ""))
    # "AM", "US" and "IT" are other words than "am", "us" and "it", as "A-" and "°C" than "a" and "c".
    is_shown = (len(core) > 1 and core.isupper()) or text != core
    dropped = key in vocabulary.drop and not is_shown
    return Word(f"{opening}{text}{closing}", key, dropped, is_name=is_name)


def _marks_of_value(marks: str) -> str:
    """Return the signs and the apostrophes among the marks on one side of a value."""
    return "".join(mark for mark in marks if _is_sign(mark) or mark in _APOSTROPHES)


@lru_cache(maxsize=2_000)
def _is_sign(mark: str) -> bool:
    """Return whether a mark belongs to a value, unlike punctuation, brackets and emoji."""
    return mark in _SIGNS or (mark != "~" and unicodedata.category(mark) in {"Sc", "Sm"})
