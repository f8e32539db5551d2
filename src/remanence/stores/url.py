"""Database URLs as errors and commands show them."""

import re


def mask_password(url: str) -> str:
    """Return the URL without its password, which may have any characters."""
    masked = re.sub(r"(?<=://)([^:]*):.*@", r"\1:***@", url)
    return re.sub(r"(?<=[?&])((?:ssl)?password)=[^&]*", r"\1=***", masked)
