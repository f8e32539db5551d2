"""Pairs of quotation marks."""

import re
from typing import Final

MIN_QUOTATION: Final = 40
"""Characters of a quotation whose sentences are read one by one; a shorter one is not split."""
_MAX_QUOTATION = 20_000
_PAIRS = ("“”", "„“", "„”", "«»", "»«", "「」", "『』", '""')
_SINGLE = r"['‘](?<!\w.)(?=\w)(?:[^'‘’\n]|(?<=\w)['’](?=\w))*+(?<=[.!?…,])['’](?!\w)"
"""A quotation in marks that are apostrophes as well ends a sentence: "the '90s", "friends'"."""
QUOTATION: Final = re.compile(
    "|".join(
        f"{pair[0]}(?<![0-9A-Za-z].)[^{pair}]{{0,{_MAX_QUOTATION}}}{pair[1]}" for pair in _PAIRS
    )
    + f"|{_SINGLE}"
)
"""A quotation, found from the left, so that none begins where another ends or behind a number."""
