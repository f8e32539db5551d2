"""Contexts of conversations: what is read, activated and looked up for each."""

import asyncio
import contextlib
import dataclasses
from collections.abc import Sequence

from remanence import telemetry
from remanence.engine.remembering import owner_of, shown_facts
from remanence.errors import WrongUser
from remanence.observing.assembly import ContextRequest, build_context, plain_context
from remanence.observing.context import Context
from remanence.observing.facts.rendering import memories_text
from remanence.observing.slicing import waited_for
from remanence.runtime import Runtime
from remanence.types import ConversationRef, Hit, MemoryState, Message, Snapshot

STAND_IN_SOURCE_TOKENS = 8_000
"""Tokens before an overfull tail that are read for its stand-in."""

RECALLED = 5


def built(runtime: Runtime, snapshot: Snapshot, request: ContextRequest) -> Context:
    """The context of a snapshot; nothing is read or changed."""
    return build_context(
        snapshot,
        request,
        runtime.policy,
        count_text=runtime.count_text,
        count_message=runtime.counter.message,
    )


async def current_context(
    runtime: Runtime,
    ref: ConversationRef,
    request: ContextRequest,
    *,
    user: str | None,
    query: str | None,
    model: str | None,
) -> Context:
    """What the model should see now, with what is ready activated."""
    if not runtime.policy.enabled:
        return await _without_memory(runtime, ref, request, user=user)
    changed = runtime.asked.changed(ref, model)
    factor = runtime.calibrating.window_factor(model)
    request = dataclasses.replace(request, token_factor=factor)
    snapshot = await _caught_up(runtime, ref, user=user)
    with waited_for():
        snapshot = await _activated(runtime, snapshot, request, model_changed=changed)
        context = built(runtime, snapshot, await _with_facts(runtime, request, snapshot, query))
    if runtime.policy.observer_mode == "continuation":
        runtime.live_prompts.keep(ref, context)
    hidden = sum(gap.last_seq - gap.first_seq + 1 for gap in context.omitted)
    telemetry.context_built(
        snapshot.state, context, tokens=context.stats.context_tokens, omitted=hidden
    )
    return context


async def read_snapshot(runtime: Runtime, ref: ConversationRef, *, user: str | None) -> Snapshot:
    """State, live segments and raw tail; those of an empty tape before the first message."""
    tail_tokens = runtime.policy.context_tokens + STAND_IN_SOURCE_TOKENS
    with waited_for():
        snapshot = await runtime.store.snapshot(ref, tail_tokens=tail_tokens)
    if snapshot is None:
        return Snapshot(state=empty_state(runtime, ref, user), segments=(), tail=())
    require_user(snapshot.state, user)
    return snapshot


def require_user(state: MemoryState, user: str | None) -> None:
    """Raise `WrongUser` where *user* is named, and the tape names another one."""
    if user is not None and state.user is not None and user != state.user:
        raise WrongUser(state.ref.id, owner=state.user, user=user)


def empty_state(runtime: Runtime, ref: ConversationRef, user: str | None) -> MemoryState:
    """The state of a conversation before its first message."""
    return MemoryState(ref=ref, key=0, user=user, created_at=runtime.clock.now())


def recalled_lines(hits: Sequence[Hit]) -> tuple[str, ...]:
    """What a query found, as lines of the volatile block.

    A fact, a note and the message that both come from say the same: the best of them is shown.
    """
    said = {(hit.conversation, hit.first_seq or hit.source_id): hit for hit in reversed(hits)}
    shown = [hit for hit in hits if hit in said.values()][:RECALLED]
    return tuple(f"{hit.snippet} ({_place(hit)})" for hit in shown)


async def _without_memory(
    runtime: Runtime, ref: ConversationRef, request: ContextRequest, *, user: str | None
) -> Context:
    """All messages, or as many of the newest as the policy allows."""
    most, state = runtime.policy.disabled_messages, await runtime.store.state(ref)
    if state is not None:
        require_user(state, user)
    after = max(0, state.last_seq - most) if state and most else 0
    messages = await runtime.store.messages(ref, after=after, limit=None)
    return plain_context(
        messages,
        request,
        history_tokens=state.last_sum_tokens if state else 0,
        count_text=runtime.count_text,
    )


async def _caught_up(runtime: Runtime, ref: ConversationRef, *, user: str | None) -> Snapshot:
    """A snapshot, after a bounded wait for observations where one is asked for."""
    policy = runtime.policy
    snapshot = await read_snapshot(runtime, ref, user=user)
    if (
        policy.block_after is not None
        and snapshot.state.inactive_tokens > policy.block_after * policy.tail_tokens
    ):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(policy.sync_timeout_seconds):
                await runtime.engine.settle(ref)
        snapshot = await read_snapshot(runtime, ref, user=user)
    return snapshot


async def _activated(
    runtime: Runtime, snapshot: Snapshot, request: ContextRequest, *, model_changed: bool
) -> Snapshot:
    """The snapshot with what is ready activated."""
    state = snapshot.state
    if not await runtime.reconciler.activate_if_due(
        snapshot, now=request.now, model_changed=model_changed
    ):
        return snapshot
    runtime.engine.signal(state.ref)
    return await read_snapshot(runtime, state.ref, user=state.user)


async def _with_facts(
    runtime: Runtime, request: ContextRequest, snapshot: Snapshot, query: str | None
) -> ContextRequest:
    """The request with what is known about the user, where there is one."""
    policy = runtime.policy
    owner = owner_of(snapshot.state)
    if owner is None or not policy.facts_tokens:
        return request
    if policy.facts_place == "prefix":
        text = await shown_facts(
            runtime.store,
            policy,
            snapshot,
            owner,
            now=request.now,
            count_text=runtime.count_text,
        )
        return dataclasses.replace(request, facts=text)
    found = await runtime.recalling.facts(owner, query or _newest_question(snapshot.tail), RECALLED)
    text = memories_text(found, max_tokens=policy.facts_budget, count_text=runtime.count_text)
    return dataclasses.replace(request, memories=text)


def _newest_question(tail: Sequence[Message]) -> str:
    """What the user said last."""
    return next((m.text for m in reversed(tail) if m.role == "user" and m.text.strip()), "")


def _place(hit: Hit) -> str:
    """Where a hit is from, in a few words."""
    return f"fact {hit.source_id}" if hit.kind == "fact" else f"message {hit.first_seq}"
