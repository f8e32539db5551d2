"""Redaction of this process's keys and passwords from external texts."""

import os
import re
from collections.abc import Iterable
from typing import Final

from remanence.notes.secret_keys import KEY_RULES
from remanence.notes.substitution import MARK, apply_rules

MESSAGE_LENGTH: Final = 200

_KEY_LIKE: Final = re.compile(r"\b(?:sk|pk|key|gsk|xai)[-_][\w*.-]{6,}")
"""Also keys that are shortened, masked or made up, which notes keep."""

_SECRET_NAME: Final = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD)$")
_SHORTEST_SECRET: Final = 6


def without_keys(text: str, secrets: Iterable[str] = ()) -> str:
    """Redact *secrets*, keys from the environment, and strings that look like keys."""
    hidden = {value for name, value in os.environ.items() if _SECRET_NAME.search(name)}
    for secret in sorted(hidden.union(secrets), key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, MARK)
    return _KEY_LIKE.sub(MARK, apply_rules(KEY_RULES, text))
