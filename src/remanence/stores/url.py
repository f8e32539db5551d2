"""Database URLs for error messages and command output."""

import re


def mask_password(url: str) -> str:
    """Return the URL with its password masked, whatever characters it has."""
    masked = re.sub(r"(?<=://)([^:]*):.*@", r"\1:***@", url)
    return re.sub(r"(?<=[?&])((?:ssl)?password)=[^&]*", r"\1=***", masked)
