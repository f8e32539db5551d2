"""Lookup of tiktoken's vocabularies in its cache, so that nothing is ever downloaded."""

import hashlib
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

from remanence.catalog import Family


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


def is_at_hand(family: Family) -> bool:
    """Return whether tiktoken has a valid vocabulary of `family` in its cache."""
    vocabulary = VOCABULARIES.get(family)
    folder = _cache_folder()
    if vocabulary is None or folder is None:
        return False
    path = folder / vocabulary.cache_name
    return path.is_file() and _is_whole(path, vocabulary.sha256)


def _cache_folder() -> Path | None:
    default = str(Path(tempfile.gettempdir()) / "data-gym-cache")
    chosen = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR", default))
    return Path(chosen) if chosen else None


@cache
def _is_whole(path: Path, sha256: str) -> bool:
    # tiktoken deletes a file that fails this check and downloads it again.
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == sha256
    except OSError:
        return False
