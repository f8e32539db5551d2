"""Database URLs for error messages and command output."""

import re
import shlex
from typing import Final

_COMMAND: Final = re.compile(r"'remanence (?!migrate)[a-z]+(?=[' ])")
"""A command of a remedy; the user in the URL may not be one who may migrate."""


def mask_password(url: str) -> str:
    """Return the URL, or the string of libpq's parameters, with its password masked.

    The password may have any characters.
    """
    if not re.match(r"[\w+.-]+://", url):
        return re.sub(r"(password\s*=\s*)('(?:[^'\\]|\\.)*'?|\S+)", r"\1***", url)
    masked = re.sub(r"(?<=://)([^:]*):.*@", r"\1:***@", url)
    return re.sub(r"(?<=[?&])((?:ssl)?password)=[^&]*", r"\1=***", masked)


def name_database(remedy: str, url: str) -> str:
    """Return a remedy with `--db` in its commands; unchanged for a database that only a process has."""
    option = database_option(url)
    return _COMMAND.sub(lambda command: command[0] + option, remedy)


def database_option(url: str) -> str:
    """Return ` --db` with the URL without its password, which PGPASSWORD or ~/.pgpass may have.

    Empty for a database in memory and a store of one's own, which no command opens.
    """
    if url == "sqlite:///:memory:" or "://" not in url:
        return ""
    is_file = url.startswith("sqlite:")  # a path may look like a user with a password
    return f" --db {shlex.quote(url if is_file else _drop_password(url))}"


def _drop_password(url: str) -> str:
    shown = mask_password(url).replace(":***@", "@")
    return re.sub(r"(?<=[?&])(?:ssl)?password=\*{3}(?:&|$)", "", shown).rstrip("?&")
