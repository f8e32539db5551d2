"""Exact counts with tiktoken, from vocabularies in its cache; nothing is downloaded."""

import hashlib
import importlib
import os
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from remanence.catalog import Family
from remanence.tokens.estimator import TextCount

_STEP: Final = 50_000  # characters; tiktoken's own regex fails on very long runs of signs


class Vocabulary(NamedTuple):
    """The cache file and the checksum of a vocabulary in tiktoken."""

    cache_name: str
    sha256: str


VOCABULARIES: dict[Family, Vocabulary] = {
    "o200k": Vocabulary(
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k": Vocabulary(
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
}


def is_available(family: Family) -> bool:
    """Return whether tiktoken is installed and has a valid vocabulary of `family` in its cache."""
    default = str(Path(tempfile.gettempdir()) / "data-gym-cache")
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR", default))
    if family not in VOCABULARIES or not folder:
        return False
    vocabulary = VOCABULARIES[family]
    path = Path(folder) / vocabulary.cache_name
    is_whole = path.is_file() and _is_whole(path, vocabulary.sha256)
    return is_whole and find_spec("tiktoken") is not None


@cache
def _is_whole(path: Path, sha256: str) -> bool:
    # tiktoken would delete a file that fails this check, and download it again.
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == sha256
    except OSError:
        return False


@cache
def exact_count(family: Family) -> TextCount:
    """Return a counter that uses tiktoken, and treats special tokens as plain text."""
    encoding = importlib.import_module("tiktoken").get_encoding(f"{family}_base")

    def count(text: str) -> int:
        return sum(
            len(encoding.encode_ordinary(text[start : start + _STEP]))
            for start in range(0, len(text), _STEP)
        )

    return count
