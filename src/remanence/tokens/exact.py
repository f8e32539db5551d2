"""Exact counts by tiktoken; imported only if it is installed and its vocabulary is cached."""

from functools import cache

import tiktoken

from remanence.catalog import Family
from remanence.tokens.estimator import TextCount

_STEP = 50_000  # characters; tiktoken's own regex fails on very long runs of signs


@cache
def exact_count(family: Family) -> TextCount:
    """Return a counter by tiktoken that reads names of special tokens as plain text."""
    encoding = tiktoken.get_encoding(f"{family}_base")

    def count(text: str) -> int:
        return sum(
            len(encoding.encode_ordinary(text[start : start + _STEP]))
            for start in range(0, len(text), _STEP)
        )

    return count
