"""The same API without `await`, for programs that have no event loop.

```python
from remanence.blocking import Memory

with Memory.open("sqlite:///memory.db") as memory:
    chat = memory.conversation("chat-7")
    chat.append(Message.user("Hello!"))
```

In a notebook, or for as long as a program runs: `memory = Memory.open(url)`, and `memory.close()`.
"""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from datetime import tzinfo
from typing import Concatenate, NoReturn, ParamSpec, Self

from remanence import (
    api_keys as awaited_keys,
    conversation as awaited_conversation,
    memory as awaited,
)
from remanence.clock import Clock
from remanence.errors import InvalidArgument, NotOpen
from remanence.facts import api as awaited_facts
from remanence.policy.policy import Policy
from remanence.portal import Handle, Portal, blocking, iterating
from remanence.types import ConversationRef

P = ParamSpec("P")

CLOSED = "the memory is closed: open it again with Memory.open(...)"


def _opening(
    method: Callable[P, AbstractAsyncContextManager[awaited.Memory]],
) -> Callable[Concatenate[type["Memory"], P], "Memory"]:
    """Return a class method with the parameters of `remanence.Memory.open`."""
    # The static attribute, which still has the first parameter.
    awaited_open = inspect.getattr_static(awaited.Memory, "open").__func__

    @functools.wraps(awaited_open, assigned=("__name__", "__qualname__"))
    def open_memory(cls: type["Memory"], /, *args: P.args, **kwargs: P.kwargs) -> "Memory":
        """Open the tape at *url*, creating it if needed, and start the background work.

        ```python
        memory = Memory.open("sqlite:///memory.db")
        memory.conversation("chat-7").append(Message.user("Hello!"))
        memory.close()
        ```

        `with Memory.open(...) as memory` closes it by itself. A program may end without closing:
        messages are stored, and work that is cut off is done when the memory is opened again.

        The arguments and errors are those of `remanence.Memory.open`.
        """
        portal = Portal(CLOSED)
        return cls(portal.open(lambda: method(*args, **kwargs)), portal)

    signature = inspect.signature(awaited_open).replace(return_annotation="Memory")
    vars(open_memory)["__signature__"] = signature
    return open_memory


class APIKeys(Handle[awaited_keys.APIKeys]):
    """Like `remanence.api_keys.APIKeys`, without `await`."""

    create = blocking(awaited_keys.APIKeys.create)
    verify = blocking(awaited_keys.APIKeys.verify)
    list = blocking(awaited_keys.APIKeys.list)
    revoke = blocking(awaited_keys.APIKeys.revoke)


class Facts(Handle[awaited_facts.Facts]):
    """Like `remanence.facts.api.Facts`, without `await`."""

    search = blocking(awaited_facts.Facts.search)
    save = blocking(awaited_facts.Facts.save)
    forget = blocking(awaited_facts.Facts.forget)
    list = blocking(awaited_facts.Facts.list)
    get = blocking(awaited_facts.Facts.get)


class Conversation(Handle[awaited_conversation.Conversation]):
    """Like `remanence.Conversation`, without `await`."""

    def __init__(self, conversation: awaited_conversation.Conversation, portal: Portal) -> None:
        """Use `memory.conversation`."""
        super().__init__(conversation, portal)
        self.ref: ConversationRef = conversation.ref
        self.user: str | None = conversation.user

    def __repr__(self) -> str:
        return f"<blocking {repr(self._awaited).removeprefix('<')}"

    @property
    def id(self) -> str:
        """The conversation's id."""
        return self.ref.id

    @property
    def policy(self) -> Policy:
        """The policy of its memory."""
        return self._awaited.policy

    @property
    def facts(self) -> Facts:
        """The facts of all users of this memory."""
        return Facts(self._awaited.facts, self._portal)

    @contextmanager
    def turn(self) -> Iterator[str]:
        """Like `remanence.Conversation.turn`, as a sync context manager."""
        with self._portal.hold(self._awaited.turn()) as turn:
            yield turn

    def sibling(self, id: str) -> "Conversation":  # noqa: A002 - as in `memory.conversation`
        """Return the handle of another conversation of the same tenant and user."""
        return type(self)(self._awaited.sibling(id), self._portal)

    owner = blocking(awaited_conversation.Conversation.owner)
    append = blocking(awaited_conversation.Conversation.append)
    context = blocking(awaited_conversation.Conversation.context)
    messages = blocking(awaited_conversation.Conversation.messages)
    observations = blocking(awaited_conversation.Conversation.observations)
    reflections = blocking(awaited_conversation.Conversation.reflections)
    state = blocking(awaited_conversation.Conversation.state)
    snapshot = blocking(awaited_conversation.Conversation.snapshot)
    context_at = blocking(awaited_conversation.Conversation.context_at)
    diagnostics = blocking(awaited_conversation.Conversation.diagnostics)
    log = blocking(awaited_conversation.Conversation.log)
    recall = blocking(awaited_conversation.Conversation.recall)
    source = blocking(awaited_conversation.Conversation.source)
    flush = blocking(awaited_conversation.Conversation.flush)
    end = blocking(awaited_conversation.Conversation.end)
    skip_facts = blocking(awaited_conversation.Conversation.skip_facts)
    export_blocks = blocking(awaited_conversation.Conversation.export_blocks)
    import_blocks = blocking(awaited_conversation.Conversation.import_blocks)
    record_call = blocking(awaited_conversation.Conversation.record_call)
    usage = blocking(awaited_conversation.Conversation.usage)
    budget = blocking(awaited_conversation.Conversation.budget)
    fork = blocking(awaited_conversation.Conversation.fork)
    forget = blocking(awaited_conversation.Conversation.forget)
    delete = blocking(awaited_conversation.Conversation.delete)


class Memory(Handle[awaited.Memory]):
    """Like `remanence.Memory`, without `await`: `Memory.open(url)`. Safe to use from any thread."""

    def __init__(self, memory: awaited.Memory, portal: Portal | None = None) -> None:
        """Use `Memory.open`, which closes what it opens."""
        if not isinstance(memory, awaited.Memory) or portal is None:
            raise InvalidArgument(
                f"Memory({memory!r:.80}) opens nothing: write Memory.open({memory!r:.80})"
            )
        super().__init__(memory, portal)
        self.policy: Policy = memory.policy
        self.clock: Clock = memory.clock
        self.facts: Facts = Facts(memory.facts, portal)
        self.keys: APIKeys = APIKeys(memory.keys, portal)

    open = classmethod(_opening(awaited.Memory.open))

    def __repr__(self) -> str:
        return f"<blocking {repr(self._awaited).removeprefix('<')}"

    def __enter__(self) -> Self:
        self._portal.require_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> NoReturn:
        self.close()
        raise NotOpen(
            "async with Memory.open(...) opens no blocking memory: write with Memory.open(...) as "
            "memory, or use remanence.Memory in async code"
        )

    async def __aexit__(self, *_: object) -> None: ...

    def close(self) -> None:
        """Finish work in progress within `shutdown_timeout_seconds`, and close the tape.

        `with` does this by itself. Closing again does nothing, nor does closing in a forked child.
        """
        self._portal.close()

    def conversation(
        self,
        id: str,  # noqa: A002 - pinned
        *,
        user: str | None = None,
        tenant: str = "default",
        timezone: tzinfo | None = None,
    ) -> Conversation:
        """Return a handle of the conversation *id*, like `remanence.Memory.conversation`."""
        awaited = self._awaited.conversation(id, user=user, tenant=tenant, timezone=timezone)
        return Conversation(awaited, self._portal)

    @property
    def calibration(self) -> Mapping[str, float]:
        """Ratios of the token counts that providers report to our own, by model."""
        return self._awaited.calibration

    conversations = blocking(awaited.Memory.conversations)
    recall = blocking(awaited.Memory.recall)
    usage = blocking(awaited.Memory.usage)
    check = blocking(awaited.Memory.check)
    size = blocking(awaited.Memory.size)
    unready = blocking(awaited.Memory.unready)
    backlog = blocking(awaited.Memory.backlog)

    export_user = iterating(awaited.Memory.export_user)
    events = iterating(awaited.Memory.events)
    read_events = blocking(awaited.Memory.read_events)
    deliver_events = blocking(awaited.Memory.deliver_events)

    backup = blocking(awaited.Memory.backup)
    forget_user = blocking(awaited.Memory.forget_user)
    note = blocking(awaited.Memory.note)
    consolidate = blocking(awaited.Memory.consolidate)
