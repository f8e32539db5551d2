"""The settings of one command, and the memory that it opens with them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from remanence.cli.documents import masked
from remanence.config import Settings
from remanence.config.sources import Loaded, load_settings
from remanence.conversation import Conversation
from remanence.errors import ConversationNotFound, StoreUnavailable
from remanence.memory import Memory
from remanence.observing.policy import Policy
from remanence.observing.preset import policy_of

_SQLITE = "sqlite:///"
MEMORY = ":memory:"


def load(*, url: str | None = None, preset: str | None = None) -> Loaded:
    """Settings of all sources, checked; the options of the command come first.

    Raises:
        InvalidPolicy: a key or value is wrong, or values contradict one another.
    """
    loaded = load_settings(Policy, arguments={"url": url, "preset": preset}, directory=Path.cwd())
    policy_of(loaded.settings)
    return loaded


@asynccontextmanager
async def opened(settings: Settings, *, works: bool) -> AsyncIterator[Memory]:
    """The existing memory at the URL of *settings*; does background work only if it *works*.

    Raises:
        StoreUnavailable: there is none; a database is not made by looking for it.
    """
    _require_database(settings.url)
    if not works:
        settings = replace(
            settings, workers=0, model=None, observer_model=None, reflector_model=None
        )
    async with Memory.open(settings=settings) as memory:
        yield memory


async def existing(memory: Memory, conversation: str, *, tenant: str) -> Conversation:
    """The conversation, if it has a message.

    Raises:
        ConversationNotFound: it has none.
    """
    chat = memory.conversation(conversation, tenant=tenant)
    if not (await chat.state()).last_seq:
        raise ConversationNotFound(
            f"tenant {tenant!r} has no conversation {conversation!r}: 'remanence inspect' lists all"
        )
    return chat


def _require_database(url: str) -> None:
    path = url.removeprefix(_SQLITE)
    if path in ("", url, MEMORY) or Path(path).exists():
        return
    raise StoreUnavailable(
        f"there is no database at {masked(url)}: name one with --db or REMANENCE_URL"
    )
