"""Contexts of conversations, with their activations and lookups."""

import asyncio
import contextlib
import dataclasses

from remanence import telemetry
from remanence.context.context import Context
from remanence.context.layout import ContextRequest, build_context, plain_context
from remanence.engine.activation import activate_if_due
from remanence.errors import RemanenceError, WrongUser
from remanence.facts.conversation_facts import facts_block
from remanence.facts.render import memories_text
from remanence.pacing import give_priority
from remanence.policy.schedule import observation_due
from remanence.runtime import Runtime
from remanence.stores.optional import write_if_possible
from remanence.types import ConversationRef, MemoryState, Owner, Snapshot

STAND_IN_SOURCE_TOKENS = 8_000
"""Tokens before an overfull tail that are read for its excerpt."""

RECALLED = 5

LONG_CONTEXT = 20_000
"""Characters from which a context is built in a thread: its texts are counted, and an oversized
message is counted again at each length that is tried."""


async def render_context(runtime: Runtime, snapshot: Snapshot, request: ContextRequest) -> Context:
    """Return the context of a snapshot, built in a thread if long; reads and changes nothing."""

    def build() -> Context:
        return build_context(
            snapshot,
            request,
            runtime.policy,
            count_text=runtime.count_text,
            count_message=runtime.counter.message,
        )

    texts = (request.system, request.identity, *request.knowledge, request.facts, request.memories)
    tail_tokens = sum(message.tokens for message in snapshot.tail)
    is_long = sum(map(len, texts)) > LONG_CONTEXT
    is_long = is_long or tail_tokens > runtime.policy.context_tokens // 2
    return await asyncio.to_thread(build) if is_long else build()


async def current_context(
    runtime: Runtime,
    ref: ConversationRef,
    request: ContextRequest,
    *,
    user: str | None,
    query: str | None,
    model: str | None,
) -> Context:
    """Return the context for the next model call, after activating ready notes."""
    if not runtime.policy.enabled:
        return await _without_memory(runtime, ref, request, user=user)
    changed = runtime.last_models.update(ref, model)
    factor = runtime.calibrator.window_factor(model)
    request = dataclasses.replace(request, token_factor=factor)
    snapshot = await _catch_up(runtime, ref, user=user)
    with give_priority():
        snapshot = await _activate(runtime, snapshot, request, model_changed=changed)
        request = await _with_facts(runtime, request, snapshot, query)
        request = await _with_quotes(runtime, request, snapshot, query)
        context = await render_context(runtime, snapshot, request)
    if runtime.policy.observer_mode == "continuation":
        runtime.live_prompts.keep(snapshot.state, context)
    hidden = sum(gap.last_seq - gap.first_seq + 1 for gap in context.omitted)
    telemetry.context_built(
        snapshot.state, context, tokens=context.stats.context_tokens, omitted=hidden
    )
    return context


async def read_snapshot(runtime: Runtime, ref: ConversationRef, *, user: str | None) -> Snapshot:
    """Return the snapshot of a conversation; an empty one before the first message."""
    tail_tokens = runtime.policy.context_tokens + STAND_IN_SOURCE_TOKENS
    with give_priority():
        snapshot = await runtime.store.snapshot(ref, tail_tokens=tail_tokens)
    if snapshot is None:
        return Snapshot(state=empty_state(runtime, ref, user), segments=(), tail=())
    require_user(runtime, snapshot.state, user)
    return snapshot


def require_user(runtime: Runtime, state: MemoryState, user: str | None) -> None:
    """Raise `WrongUser` if the tape names a user, and *user* is another one, or None."""
    if user is None and runtime.all_users:
        return
    if state.user is not None and user != state.user:
        raise WrongUser(state.ref.id, user=user)


def empty_state(runtime: Runtime, ref: ConversationRef, user: str | None) -> MemoryState:
    """Return the state of a conversation before its first message."""
    return MemoryState(ref=ref, key=0, user=user, created_at=runtime.clock.now())


async def _without_memory(
    runtime: Runtime, ref: ConversationRef, request: ContextRequest, *, user: str | None
) -> Context:
    """Return all messages, or as many of the newest as the policy allows."""
    most, state = runtime.policy.disabled_messages, await runtime.store.state(ref)
    if state is not None:
        require_user(runtime, state, user)
    after = max(0, state.last_seq - most) if state and most else 0
    messages = await runtime.store.messages(ref, after=after, limit=None)
    return plain_context(
        messages,
        request,
        history_tokens=state.last_sum_tokens if state else 0,
        count_text=runtime.count_text,
    )


async def _catch_up(runtime: Runtime, ref: ConversationRef, *, user: str | None) -> Snapshot:
    """Return a snapshot, after a bounded wait for observations if the policy asks for it."""
    policy = runtime.policy
    snapshot = await read_snapshot(runtime, ref, user=user)
    state = snapshot.state
    if (
        policy.block_after is None
        or state.inactive_tokens <= policy.block_after * policy.tail_tokens
    ):
        return snapshot
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(policy.sync_timeout_seconds):
            while observation_due(policy, state):
                await runtime.engine.progress(ref)
                current = await runtime.store.state(ref)
                if current is None or current.lock_version == state.lock_version:
                    break
                state = current
    return await read_snapshot(runtime, ref, user=user)


async def _activate(
    runtime: Runtime, snapshot: Snapshot, request: ContextRequest, *, model_changed: bool
) -> Snapshot:
    """Return the snapshot with ready notes activated, if that can be written now."""
    state = snapshot.state
    moved = await write_if_possible(
        activate_if_due(
            runtime.store,
            runtime.policy,
            snapshot,
            now=request.now,
            at=runtime.clock.now(),
            model_changed=model_changed,
        )
    )
    if moved is None:
        return snapshot
    runtime.engine.signal(state.ref)
    return await read_snapshot(runtime, state.ref, user=state.user)


async def _with_facts(
    runtime: Runtime, request: ContextRequest, snapshot: Snapshot, query: str | None
) -> ContextRequest:
    """Return the request with the facts about the user, if there is one."""
    policy = runtime.policy
    owner = snapshot.state.owner
    if owner is None or not policy.facts_tokens:
        return request
    if policy.facts_place == "prefix":
        text = await facts_block(
            runtime.store,
            policy,
            snapshot,
            owner,
            now=request.now,
            count_text=runtime.count_text,
            curated=lambda: _curated_file(runtime, owner),
        )
        return dataclasses.replace(request, facts=text)
    said = (m.text for m in reversed(snapshot.tail) if m.role == "user" and m.text.strip())
    facts = await runtime.recall_search.facts(owner, query or next(said, ""), RECALLED)
    state = snapshot.state
    unseen = [
        fact
        for fact in facts
        if fact.conversation != state.ref.id or (fact.last_seq or 0) < state.tail_seq
    ]
    text = memories_text(unseen, max_tokens=policy.facts_budget, count_text=runtime.count_text)
    return dataclasses.replace(request, memories=text)


async def _with_quotes(
    runtime: Runtime, request: ContextRequest, snapshot: Snapshot, query: str | None
) -> ContextRequest:
    """Return the request with quotes for the query, unless the context shows the whole tape."""
    state, owner = snapshot.state, snapshot.state.owner
    whole = state.tail_seq <= 1 and state.last_sum_tokens < runtime.policy.context_tokens // 2
    if not query or not runtime.policy.recall_tokens or (whole and owner is None):
        return request
    quotes = await runtime.recall_search.quotes(None if whole else state.ref, owner, query)
    return dataclasses.replace(request, recall=quotes)


async def _curated_file(runtime: Runtime, owner: Owner) -> str:
    """Return the memory file of the user; empty if there is none or it cannot be read now."""
    if runtime.daily is None:
        return ""
    try:
        return await runtime.daily.curated_text(user=owner.user, tenant=owner.tenant)
    except RemanenceError as error:
        telemetry.daily_notes_failed(owner.user, str(error))
        return ""
