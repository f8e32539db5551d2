"""Pairs of quotation marks."""

import re
from typing import Final

MIN_QUOTATION: Final = 40
"""Characters of a quotation whose sentences are read one by one; a shorter one is not split."""
_MAX_QUOTATION = 20_000
_PAIRS = ("“”", "„“", "„”", "«»", "»«", "「」", "『』", '„"', "””", '""')
_OPENS = r"(?<![0-9A-Za-z].)(?!(?<=[\w.!?…,].)[^\S\n])"
"""A mark behind a number or a word opens no quotation, nor does one between "." and a space."""
_SINGLE = r"['‘](?<!\w.)(?=\w)(?:[^'‘’\n]|(?<=\w)['’](?=\w))*+(?<=[.!?…,])['’](?!\w)"
"""A quotation in marks that are apostrophes as well ends a sentence: "the '90s", "friends'"."""
_MARKED = (f"{pair[0]}{_OPENS}[^{pair}]{{0,{_MAX_QUOTATION}}}{pair[1]}" for pair in _PAIRS)
QUOTATION: Final = re.compile("|".join((*_MARKED, _SINGLE)))
"""A quotation, found from the left, so that none begins where another ends."""
