"""The settings of a command, and the memory opened with them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from remanence.catalog import look_up
from remanence.conversation import Conversation
from remanence.errors import ConversationNotFound, NotADatabase, StoreUnavailable
from remanence.files import expand_home
from remanence.memory import Memory
from remanence.providers.spec import parse_spec, split_names
from remanence.settings import Settings
from remanence.settings.sources import LoadedSettings, config_file, load_settings
from remanence.stores import mask_password, open_store

Access: TypeAlias = Literal["read", "write", "work"]


def load(*, url: str | None = None, preset: str | None = None) -> LoadedSettings:
    """Load and validate the settings from all sources; the command's options take precedence.

    Raises:
        InvalidPolicy: a key or value is wrong, or values contradict one another.
    """
    return load_settings(arguments={"url": url, "preset": preset}, file=config_file(Path.cwd()))


def with_agent(settings: Settings, *models: str) -> Settings:
    """Adapt settings to an agent that calls *models* in order, unless they name a model.

    The smallest window counts, and that model's prompt cache. With preset lango, the first model also
    writes the notes.
    """
    links = [link for model in models for link in split_names(model)]
    names = [parse_spec(link).model for link in links]
    changes = {"model": min(names, key=lambda name: look_up(name).window_tokens), **settings.policy}
    notes = settings.model or (models[0] if settings.preset == "lango" else None)
    return replace(settings, policy=changes, model=notes)


def require_database(url: str) -> None:
    """Raise `StoreUnavailable` if *url* names a file that does not exist.

    A file whose write-ahead log is left is refused when it is opened.
    """
    file = _file_of(url)
    if file is not None and not (file.exists() or Path(f"{file}-wal").exists()):
        raise StoreUnavailable(
            f"there is no database at {mask_password(url)}: name one with --db or REMANENCE_URL"
        )


async def require_newest(url: str) -> None:
    """Raise `StoreUnavailable` if a database has tables of an earlier version; change nothing."""
    file = _file_of(url)
    if file is None or file.exists():
        with suppress(NotADatabase):  # it is empty, or refused when it is opened
            await (await open_store(url, read_only=True)).close()


@asynccontextmanager
async def open_existing(settings: Settings, *, access: Access = "read") -> AsyncIterator[Memory]:
    """Open the existing memory at the URL of *settings*; only `work` runs background work.

    Raises:
        StoreUnavailable: there is no database; none is created.
        NotADatabase: the file is empty; it stays so.
    """
    require_database(settings.url)
    if access != "work":
        settings = replace(
            settings, workers=0, model=None, observer_model=None, reflector_model=None
        )
    read_only = access == "read"
    if not read_only:  # an empty or older database is refused then, not filled or migrated
        await (await open_store(settings.url, read_only=True)).close()
    # Anyone who can read the file can read the memory of every user.
    async with Memory.open(settings=settings, read_only=read_only, all_users=True) as memory:
        yield memory


@asynccontextmanager
async def open_conversation(
    settings: Settings, conversation: str, *, tenant: str, access: Access = "read"
) -> AsyncIterator[Conversation]:
    """Open an existing conversation of an existing memory."""
    async with open_existing(settings, access=access) as memory:
        yield await existing(memory, conversation, tenant=tenant)


async def existing(memory: Memory, conversation: str, *, tenant: str) -> Conversation:
    """Return a handle of a conversation, or raise `ConversationNotFound` if it has no messages."""
    chat = memory.conversation(conversation, tenant=tenant)
    if not (await chat.state()).last_seq:
        raise ConversationNotFound(
            f"tenant {tenant!r} has no conversation {conversation!r:.80}: 'remanence inspect' lists all"
        )
    return chat


def _file_of(url: str) -> Path | None:
    """Return the file of a SQLite database; None if it has none."""
    path = url.removeprefix("sqlite:///")
    return None if path in ("", url, ":memory:") else expand_home(path)
