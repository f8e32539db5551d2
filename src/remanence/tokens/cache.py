"""A cache of token counts that holds no text."""

import hashlib
import threading

from remanence.recent import Recent
from remanence.tokens.estimator import TextCount

_MAX_COUNTS = 4_096


class CountCache:
    """Counts the tokens of texts, and remembers the latest counts by hash.

    A hash takes a small part of the time of a count. Safe to call from any thread.
    """

    def __init__(self, count: TextCount) -> None:
        self._count = count
        self._counts: Recent[bytes, int] = Recent(_MAX_COUNTS)
        self._lock = threading.Lock()

    def __call__(self, text: str, /) -> int:
        content = text.encode(errors="surrogatepass")
        key = hashlib.blake2b(content, digest_size=16).digest()
        with self._lock:
            tokens = self._counts.get(key)
        if tokens is None:
            tokens = self._count(text)
        with self._lock:
            self._counts[key] = tokens
        return tokens
