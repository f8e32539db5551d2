"""The same memory without `await`, for programs that have no event loop.

```python
from remanence.blocking import Memory

with Memory.open("sqlite:///memory.db") as memory:
    chat = memory.conversation("chat-7")
    chat.append(Message.user("Hello!"))
```
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, Self, TypeVar

from remanence import conversation as awaited_conversation, memory as awaited
from remanence.archive.blocks import BlockStore
from remanence.archive.daily import Consolidation
from remanence.archive.exchange import ImportReport
from remanence.clock import Clock
from remanence.context.context import Context
from remanence.engine.hooks import Hooks
from remanence.errors import Closed, InvalidArgument, NotOpen
from remanence.facts import api as awaited_facts
from remanence.policy.policy import Policy
from remanence.protocols import FactExtractor, FactVectors, Observer, Reflector
from remanence.providers import ModelOptions, ModelSource
from remanence.recall.embedders import EmbedderSource
from remanence.settings import Settings
from remanence.types import (
    Budget,
    BudgetState,
    ConversationRef,
    Diagnostics,
    Fact,
    FactType,
    Hit,
    HitKind,
    LogEntry,
    MemoryState,
    Message,
    Owner,
    Priority,
    Problem,
    Role,
    Segment,
    Snapshot,
    Tag,
    Unready,
    Usage,
    UsageTotal,
)

T = TypeVar("T")


class _Closable(Protocol):
    def close(self) -> None: ...


T_co = TypeVar("T_co", bound=_Closable, covariant=True)

CLOSED = "the memory is closed: open it again with Memory.open(...)"


class Portal:
    """One thread with an event loop, in which one resource is open. Safe to call from any thread.

    The resource is opened and closed in the same task, and the thread has ended when `close`
    returns.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: Future[None] = Future()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="remanence-portal")
        self._ended: Future[None] | None = None

    def open(self, resource: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """Start the thread and open *resource* in it; raise its errors here."""
        opened: Future[T] = Future()
        self._ended = self._thread.submit(lambda: asyncio.run(self._serve(resource, opened)))
        try:
            return opened.result()
        except BaseException:
            self.close()
            raise

    def call(self, work: Coroutine[Any, Any, T]) -> T:  # the yield and send types are asyncio's
        """Run *work* in the loop and wait for it; an interrupt cancels it.

        Raises:
            Closed: the portal is closed, or was closed before *work* ended.
        """
        loop = self._loop
        if loop is None or self._closing.done():
            work.close()
            raise Closed(CLOSED)
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except CancelledError as error:
            raise Closed(CLOSED) from error
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Close the resource, wait until the thread has ended, and raise any error of closing."""
        if not self._closing.done():
            self._closing.set_result(None)
        self._thread.shutdown()
        if self._ended is not None:
            self._ended.result()

    async def _serve(
        self, resource: Callable[[], AbstractAsyncContextManager[T]], opened: Future[T]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        async with AsyncExitStack() as stack:
            try:
                value = await stack.enter_async_context(resource())
            except BaseException as error:  # noqa: BLE001 - raised by whoever opens
                opened.set_exception(error)
                return
            opened.set_result(value)
            await asyncio.wrap_future(self._closing)


class Memory:
    """As `remanence.Memory`; open it with `with Memory.open(url)`. Safe to use from any thread."""

    def __init__(self, memory: awaited.Memory, portal: Portal | None = None) -> None:
        """Use `Memory.open`, which closes what it opens."""
        if not isinstance(memory, awaited.Memory) or portal is None:
            raise InvalidArgument(
                f"Memory({memory!r:.80}) opens nothing: write with Memory.open({memory!r:.80}) "
                "as memory"
            )
        self.policy = memory.policy
        self.clock = memory.clock
        self.facts = Facts(memory.facts, portal)
        self._memory = memory
        self._portal = portal

    @classmethod
    def open(
        cls,
        url: str | None = None,
        *,
        policy: Policy | None = None,
        observer: "Observer | ModelSource | None" = None,
        reflector: "Reflector | ModelSource | None" = None,
        model: "ModelSource | None" = None,
        extractor: "FactExtractor | ModelSource | None" = None,
        embedder: "EmbedderSource | None" = None,
        fact_vectors: FactVectors | None = None,
        settings: Settings | Path | str | None = None,
        clock: Clock | None = None,
        model_options: ModelOptions | None = None,
        budgets: Sequence[Budget] | None = None,
        hooks: Hooks | None = None,
        read_only: bool = False,
        all_users: bool = False,
    ) -> "Opening[Self]":
        resource = partial(
            awaited.Memory.open,
            url,
            policy=policy,
            observer=observer,
            reflector=reflector,
            model=model,
            extractor=extractor,
            embedder=embedder,
            fact_vectors=fact_vectors,
            settings=settings,
            clock=clock,
            model_options=model_options,
            budgets=budgets,
            hooks=hooks,
            read_only=read_only,
            all_users=all_users,
        )
        return Opening(partial(cls._open_resource, resource))

    @classmethod
    def _open_resource(
        cls, resource: Callable[[], AbstractAsyncContextManager[awaited.Memory]]
    ) -> Self:
        portal = Portal()
        return cls(portal.open(resource), portal)

    def close(self) -> None:
        self._portal.close()

    def conversation(
        self,
        id: str,  # noqa: A002 - pinned
        *,
        user: str | None = None,
        tenant: str = "default",
    ) -> "Conversation":
        return Conversation(self._memory.conversation(id, user=user, tenant=tenant), self._portal)

    def conversations(
        self,
        *,
        tenant: str | None = None,
        after: ConversationRef | None = None,
        limit: int = 100,
    ) -> tuple[MemoryState, ...]:
        return self._portal.call(
            self._memory.conversations(tenant=tenant, after=after, limit=limit)
        )

    def usage(
        self,
        *,
        tenant: str | None = None,
        conversation: str | None = None,
        user: str | None = None,
        since: datetime | None = None,
    ) -> tuple[UsageTotal, ...]:
        return self._portal.call(
            self._memory.usage(tenant=tenant, conversation=conversation, user=user, since=since)
        )

    def note(self, text: str, *, user: str, tenant: str = "default") -> Path:
        return self._portal.call(self._memory.note(text, user=user, tenant=tenant))

    def consolidate(
        self, *, user: str | None = None, tenant: str | None = None
    ) -> tuple[Consolidation, ...]:
        return self._portal.call(self._memory.consolidate(user=user, tenant=tenant))

    @property
    def calibration(self) -> Mapping[str, float]:
        return self._memory.calibration

    def check(self) -> tuple[Problem, ...]:
        return self._portal.call(self._memory.check())

    def unready(self) -> tuple[Unready, ...]:
        return self._portal.call(self._memory.unready())


class Opening(Generic[T_co]):
    """A memory that is about to be opened: enter it with `with`."""

    def __init__(self, opened: Callable[[], T_co]) -> None:
        self._open = opened
        self._memory: T_co | None = None

    def __enter__(self) -> T_co:
        self._memory = self._open()
        return self._memory

    def __exit__(self, *_: object) -> None:
        if self._memory is not None:
            self._memory.close()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise NotOpen(
                f"Memory.open(...) has no {name!r} before it is open: write with "
                "Memory.open(...) as memory"
            )


class Facts:
    """As `remanence.facts.api.Facts`, without `await`."""

    def __init__(self, facts: awaited_facts.Facts, portal: Portal) -> None:
        self._facts = facts
        self._portal = portal

    def search(
        self, query: str, *, user: str, tenant: str = "default", limit: int = 5
    ) -> tuple[Fact, ...]:
        return self._portal.call(self._facts.search(query, user=user, tenant=tenant, limit=limit))

    def save(
        self,
        summary: str,
        *,
        user: str,
        tenant: str = "default",
        type: FactType = "knowledge",  # noqa: A002 - the field's name
        tags: Sequence[str] = (),
        valid_from: datetime | None = None,
        replaces: str | None = None,
    ) -> Fact:
        return self._portal.call(
            self._facts.save(
                summary,
                user=user,
                tenant=tenant,
                type=type,
                tags=tags,
                valid_from=valid_from,
                replaces=replaces,
            )
        )

    def forget(self, fact_id: str, *, user: str, tenant: str = "default") -> bool:
        return self._portal.call(self._facts.forget(fact_id, user=user, tenant=tenant))

    def list(
        self,
        *,
        user: str,
        tenant: str = "default",
        history: bool = False,
        limit: int | None = None,
    ) -> tuple[Fact, ...]:
        return self._portal.call(
            self._facts.list(user=user, tenant=tenant, history=history, limit=limit)
        )

    def get(self, fact_id: str, *, user: str, tenant: str = "default") -> Fact | None:
        return self._portal.call(self._facts.get(fact_id, user=user, tenant=tenant))


class Conversation:
    """As `remanence.Conversation`, without `await`."""

    def __init__(self, conversation: awaited_conversation.Conversation, portal: Portal) -> None:
        self._conversation = conversation
        self._portal = portal
        self.ref = conversation.ref
        self.user = conversation.user
        self.clock = conversation.clock

    @property
    def id(self) -> str:
        """The conversation's id."""
        return self.ref.id

    @property
    def policy(self) -> Policy:
        """The policy of its memory."""
        return self._conversation.policy

    @property
    def facts(self) -> Facts:
        """The facts of all users of this memory."""
        return Facts(self._conversation.facts, self._portal)

    def owner(self) -> Owner | None:
        return self._portal.call(self._conversation.owner())

    @contextmanager
    def turn(self) -> Iterator[str]:
        turn = self._conversation.turn()
        name = self._portal.call(_enter(turn))
        try:
            yield name
        finally:
            self._portal.call(_exit(turn))

    def append(self, *messages: Message, turn: str | None = None) -> tuple[Message, ...]:
        return self._portal.call(self._conversation.append(*messages, turn=turn))

    def context(
        self,
        *,
        system: str = "",
        identity: str = "",
        knowledge: Sequence[str] = (),
        recall: str | None = None,
        channel: str | None = None,
        now: datetime | None = None,
        model: str | None = None,
    ) -> Context:
        return self._portal.call(
            self._conversation.context(
                system=system,
                identity=identity,
                knowledge=knowledge,
                recall=recall,
                channel=channel,
                now=now,
                model=model,
            )
        )

    def messages(self, *, after: int = 0, limit: int | None = None) -> tuple[Message, ...]:
        return self._portal.call(self._conversation.messages(after=after, limit=limit))

    def observations(self) -> tuple[Segment, ...]:
        return self._portal.call(self._conversation.observations())

    def reflections(self) -> tuple[Segment, ...]:
        return self._portal.call(self._conversation.reflections())

    def state(self) -> MemoryState:
        return self._portal.call(self._conversation.state())

    def diagnostics(self) -> Diagnostics:
        return self._portal.call(self._conversation.diagnostics())

    def log(self, version: int | None = None) -> tuple[LogEntry, ...]:
        return self._portal.call(self._conversation.log(version))

    def recall(
        self,
        query: str,
        *,
        limit: int = 5,
        max_tokens: int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        kind: HitKind | None = None,
        tag: Tag | None = None,
        priority: Priority | None = None,
        role: Role | None = None,
        conversation: str | None = None,
    ) -> tuple[Hit, ...]:
        return self._portal.call(
            self._conversation.recall(
                query,
                limit=limit,
                max_tokens=max_tokens,
                since=since,
                until=until,
                kind=kind,
                tag=tag,
                priority=priority,
                role=role,
                conversation=conversation,
            )
        )

    def snapshot(self, version: int | None = None) -> Snapshot:
        return self._portal.call(self._conversation.snapshot(version))

    def context_at(
        self, version: int, *, system: str = "", knowledge: Sequence[str] = ()
    ) -> Context:
        return self._portal.call(
            self._conversation.context_at(version, system=system, knowledge=knowledge)
        )

    def source(
        self,
        segment_id: str,
        *,
        after: int = 0,
        limit: int | None = None,
        max_tokens: int | None = None,
    ) -> tuple[Message, ...]:
        return self._portal.call(
            self._conversation.source(segment_id, after=after, limit=limit, max_tokens=max_tokens)
        )

    def flush(self, *, everything: bool = False, retry: bool = False) -> MemoryState:
        return self._portal.call(self._conversation.flush(everything=everything, retry=retry))

    def end(self) -> MemoryState:
        return self._portal.call(self._conversation.end())

    def export_blocks(self, store: BlockStore) -> int:
        return self._portal.call(self._conversation.export_blocks(store))

    def import_blocks(self, store: BlockStore) -> ImportReport:
        return self._portal.call(self._conversation.import_blocks(store))

    def record_call(self, usage: Usage, *, estimated_tokens: int | None = None) -> None:
        self._portal.call(self._conversation.record_call(usage, estimated_tokens=estimated_tokens))

    def usage(self) -> tuple[UsageTotal, ...]:
        return self._portal.call(self._conversation.usage())

    def budget(self) -> tuple[BudgetState, ...]:
        return self._portal.call(self._conversation.budget())

    def delete(self) -> bool:
        return self._portal.call(self._conversation.delete())


async def _enter(context: AbstractAsyncContextManager[T]) -> T:
    return await context.__aenter__()


async def _exit(context: AbstractAsyncContextManager[T]) -> None:
    await context.__aexit__(None, None, None)
