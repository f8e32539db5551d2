"""Reading contexts of conversations, with activation and recall."""

import asyncio
import contextlib
from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from functools import partial

from remanence import telemetry
from remanence.background import write_if_possible
from remanence.context.context import Context, shown_whole
from remanence.context.layout import ContextRequest, Layout, plain_context
from remanence.engine.openings import read_opening
from remanence.engine.snapshots import activate, read_snapshot
from remanence.errors import Closed, RemanenceError, StoreError, WrongUser
from remanence.facts.render import (
    is_own,
    memories_text,
    other_facts_text,
    own_facts_text,
    prefix_markers,
    render_curated,
)
from remanence.facts.wrong_clock import correct_times
from remanence.pacing import FOREGROUND
from remanence.policy.cache_economics import is_cold
from remanence.policy.schedule import activation, observation_due
from remanence.runtime import Opening, Runtime
from remanence.types import ConversationRef, Fact, FactsPin, MemoryState, Message, Owner, Snapshot

STAND_IN_SOURCE_TOKENS = 8_000
"""Tokens before an overfull tail that are read for its stand-in."""

_LEFT_OUT = frozenset({"stand_in", "over_budget"})
"""Why a context lacks messages of the raw tail; notes that are ready say more of them."""

SHOWN_FACTS = 1_000
"""The number of a user's newest facts among which those of a context are chosen."""
LASTING_FACTS = 250
"""The number of older facts beside these, those worth most."""
RECALLED = 5

LONG_CONTEXT = 20_000
"""Characters from which a context is built in a thread, as counting tokens takes a while, above all
for an oversized message, which is counted at several lengths, and so does cutting recalled passages."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The messages of the next prompt: those that the last context shows, and those appended since."""

    whole: frozenset[int]
    last_seq: int

    def __contains__(self, seq: object) -> bool:
        return seq in self.whole or (isinstance(seq, int) and seq > self.last_seq)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextReader:
    """Reads the state and contexts of a conversation on behalf of its user."""

    runtime: Runtime
    ref: ConversationRef
    user: str | None
    timezone: tzinfo | None

    async def state(self) -> MemoryState:
        """Return the state, which is empty before the first message.

        Raises:
            WrongUser: the conversation belongs to another user.
        """
        state = await self.runtime.store.state(self.ref)
        return self._empty_state() if state is None else self._require_user(state)

    async def snapshot(self, *, context_tokens: int | None = None) -> Snapshot:
        """Return the snapshot for a context of *context_tokens*; empty before the first message.

        Errors as for `state`.
        """
        runtime = self.runtime
        most = (context_tokens or runtime.policy.context_tokens) + STAND_IN_SOURCE_TOKENS
        with FOREGROUND:
            snapshot = await read_snapshot(
                runtime.store, runtime.policy, self.ref, tail_tokens=most
            )
        if snapshot is None:
            return Snapshot(state=self._empty_state(), segments=(), tail=())
        self._require_user(snapshot.state)
        return replace(snapshot, opening=await self.opening(snapshot.state))

    async def opening(self, state: MemoryState) -> tuple[Message, ...]:
        """Return the messages that opened the turn in which the raw tail of a *state* begins."""
        openings, place = self.runtime.openings, (state.tape_version, state.tail_seq)
        if state.tail_seq > state.last_seq:
            return ()
        known = openings.get(self.ref)
        if known is None or (known.version, known.tail_seq) != place:
            with FOREGROUND:
                messages = await read_opening(self.runtime.store, state)
            known = openings[self.ref] = Opening(*place, messages)
        return known.messages

    async def render(self, snapshot: Snapshot, request: ContextRequest) -> Context:
        """Render a snapshot as a context, in a thread if it is long; changes nothing."""
        runtime = self.runtime
        layout = Layout(
            snapshot, request, runtime.policy, runtime.count_text, runtime.count_message
        )
        texts = (
            request.system,
            request.identity,
            request.facts,
            request.own_facts,
            request.memories,
        )
        recalled = (quote.hit.text for quote in request.recall)
        characters = sum(map(len, (*texts, *request.knowledge, *recalled)))
        half = runtime.policy.context_tokens // 2
        is_long = characters > LONG_CONTEXT or snapshot.state.tail_tokens > half
        return await asyncio.to_thread(layout.context) if is_long else layout.context()

    async def current(
        self, request: ContextRequest, *, query: str | None, model: str | None
    ) -> Context:
        """Activate ready notes, and return the context for the next model call."""
        runtime = self.runtime
        if not runtime.policy.enabled:
            return await self._without_memory(request)
        changed = self._changes_model(model)
        snapshot = await self._catch_up(request.max_tokens)
        with FOREGROUND:
            snapshot = await self._activate(snapshot, request, model_changed=changed)
            request = await self._with_facts(request, snapshot, query)
            request = await self._with_quotes(request, snapshot, query)
            context = await self.render(snapshot, request)
            while any(gap.reason in _LEFT_OUT for gap in context.omitted):
                noted = await self._activate(snapshot, request, overfull=True)
                if noted is snapshot:
                    break
                snapshot = noted
                context = await self.render(snapshot, request)
        runtime.shown[self.ref] = Shown(
            shown_whole(context.messages, context.omitted), context.stats.last_seq
        )
        if runtime.policy.observer_mode == "continuation":
            newest = snapshot.state.tape_version, context
            runtime.segment_writer.live_prompts[self.ref] = newest
        omitted: Counter[str] = Counter()
        for gap in context.omitted:
            omitted[gap.reason] += gap.last_seq - gap.first_seq + 1
        tokens = context.stats.context_tokens
        telemetry.context_built(snapshot.state, context, tokens=tokens, omitted=omitted)
        return context

    def _changes_model(self, model: str | None) -> bool:
        """Return whether *model* differs from the conversation's last one, and remember it."""
        if model is None:
            return False
        last = self.runtime.last_models.get(self.ref, model)
        self.runtime.last_models[self.ref] = model
        return model != last

    def _empty_state(self) -> MemoryState:
        now = self.runtime.clock.now()
        return MemoryState(ref=self.ref, key=0, user=self.user, created_at=now)

    def _require_user(self, state: MemoryState) -> MemoryState:
        is_admin = self.user is None and self.runtime.all_users
        if not is_admin and state.user is not None and self.user != state.user:
            raise WrongUser(state.ref.id, user=self.user)
        return state

    async def _without_memory(self, request: ContextRequest) -> Context:
        """Return a context of all messages, or of the newest ones that the policy allows."""
        most, state = self.runtime.policy.disabled_messages, await self.state()
        after = max(0, state.last_seq - most) if most else 0
        return plain_context(
            await self.runtime.store.messages(self.ref, after=after, limit=None),
            request,
            history_tokens=state.last_sum_tokens,
            count_text=self.runtime.count_text,
        )

    async def _catch_up(self, context_tokens: int | None) -> Snapshot:
        """Return a snapshot, after a bounded wait for observations if the policy asks for it."""
        runtime, policy = self.runtime, self.runtime.policy
        snapshot = await self.snapshot(context_tokens=context_tokens)
        state, most = snapshot.state, policy.block_after
        if most is None or state.inactive_tokens <= most * policy.tail_tokens:
            return snapshot
        with contextlib.suppress(TimeoutError, StoreError, Closed):
            async with asyncio.timeout(policy.sync_timeout_seconds):
                while observation_due(policy, state):
                    await runtime.engine.progress(self.ref)
                    current = await runtime.store.state(self.ref)
                    if current is None or current.lock_version == state.lock_version:
                        break
                    state = current
        return await self.snapshot(context_tokens=context_tokens)

    async def _activate(
        self,
        snapshot: Snapshot,
        request: ContextRequest,
        *,
        model_changed: bool = False,
        overfull: bool = False,
    ) -> Snapshot:
        """Return the snapshot after activating ready notes, if the store can be written now."""
        runtime = self.runtime
        store, policy, at = runtime.store, runtime.policy, runtime.clock.now()
        active_seq = activation(
            policy, snapshot, now=request.now, model_changed=model_changed, overfull=overfull
        )
        if active_seq is None:
            return snapshot
        moved = await write_if_possible(activate(store, policy, snapshot, active_seq, at=at))
        if moved is None:
            return snapshot
        runtime.engine.signal(self.ref)
        return await self.snapshot(context_tokens=request.max_tokens)

    async def _with_facts(
        self, request: ContextRequest, snapshot: Snapshot, query: str | None
    ) -> ContextRequest:
        """Return the request with the facts about the user, if there is one."""
        runtime, policy, state = self.runtime, self.runtime.policy, snapshot.state
        owner = state.owner
        if owner is None or not policy.facts_tokens:
            return request
        if policy.facts_place == "prefix":
            pin = await self._facts_in_prefix(snapshot, owner, now=request.now)
            return replace(request, facts=pin.text, own_facts=pin.own_text)
        said = (m.text for m in reversed(snapshot.tail) if m.role == "user" and m.text.strip())
        facts = await runtime.recall_search.facts(owner, query or next(said, ""), RECALLED)
        times = (message.created_at for message in snapshot.tail)
        if any(at is not None and at < state.created_at for at in times):  # as in a fork
            facts = await runtime.store.adopt_facts(self.ref, facts)
        unseen = [
            fact
            for fact in facts
            if not is_own(fact, self.ref.id) or (fact.last_seq or 0) < state.tail_seq
        ]
        text = memories_text(
            unseen,
            snapshot,
            max_tokens=policy.facts_budget,
            count_text=runtime.count_text,
            zone=self.timezone,
        )
        return replace(request, memories=text)

    async def _facts_in_prefix(
        self, snapshot: Snapshot, owner: Owner, *, now: datetime
    ) -> FactsPin:
        """Return the facts of a context, pinned so that the prompt prefix keeps its bytes.

        Facts of other conversations are chosen again when the first reflection has changed, facts of
        this one when any reflection has, and both when the prompt cache is cold or the store has
        removed the pin, as after an erasure, a correction or a request to forget.
        """
        pin, lifetime = snapshot.facts, self.runtime.policy.cache_lifetime_seconds
        if pin is not None and is_cold(snapshot.tail, lifetime=lifetime, now=now, warmed_at=pin.at):
            pin = None
        first, last = prefix_markers(snapshot)
        if pin is not None and (pin.marker, pin.own_marker) == (first, last):
            return pin
        known = pin.text if pin is not None and pin.marker == first else None
        text, own_text = await self._choose_facts(snapshot, owner, known, now=now)
        chosen = FactsPin(marker=first, text=text, own_marker=last, own_text=own_text, at=now)
        if snapshot.state.key:  # a conversation without messages has no row to pin to
            await write_if_possible(self.runtime.store.pin_facts(snapshot.state, owner, chosen))
        return chosen

    async def _choose_facts(
        self, snapshot: Snapshot, owner: Owner, known: str | None, *, now: datetime
    ) -> tuple[str, str]:
        """Choose the facts before the notes, unless *known*, and the conversation's own facts.

        The memory file, which the user maintains by hand, comes first. Own facts take at most half
        of the remaining budget; once there is a reflection, that half is reserved for them, as each
        reflection yields more.
        """
        count, most = self.runtime.count_text, self.runtime.policy.facts_budget
        facts = await self._known_facts(owner, now=now)
        facts = await self.runtime.store.adopt_facts(self.ref, facts)
        choose_own = partial(own_facts_text, facts, snapshot, count_text=count, zone=self.timezone)
        if known is not None:
            room = min(most - count(known), most // 2)
            return known, await asyncio.to_thread(choose_own, max_tokens=room)
        by_hand = render_curated(
            await self._curated_file(owner), max_tokens=most // 2, count_text=count
        )
        room = most - count(by_hand)
        own = await asyncio.to_thread(choose_own, max_tokens=room // 2)
        room -= max(count(own), room // 2 if any(prefix_markers(snapshot)) else 0)
        others = await asyncio.to_thread(
            other_facts_text,
            facts,
            snapshot,
            max_tokens=room,
            count_text=count,
            zone=self.timezone,
        )
        return "\n\n".join(filter(None, (by_hand, others))), own

    async def _known_facts(self, owner: Owner, *, now: datetime) -> tuple[Fact, ...]:
        """Return the newest facts, and those of a user with many more that are worth most."""
        store = self.runtime.store
        facts = await store.facts(owner, limit=SHOWN_FACTS)
        if len(facts) == SHOWN_FACTS:
            lasting = await store.lasting_facts(owner, limit=LASTING_FACTS)
            facts = tuple({fact.id: fact for fact in (*facts, *lasting)}.values())
        return correct_times(facts, now=now, unknown=now)

    async def _with_quotes(
        self, request: ContextRequest, snapshot: Snapshot, query: str | None
    ) -> ContextRequest:
        """Add recalled quotes to the request, unless the context shows the whole tape anyway."""
        state, policy = snapshot.state, self.runtime.policy
        most = request.max_tokens or policy.context_tokens
        whole = state.tail_seq <= 1 and state.last_sum_tokens < most // 2
        if not query or not policy.recall_tokens or (whole and state.owner is None):
            return request
        ref = None if whole else self.ref
        quotes = await self.runtime.recall_search.quotes(ref, state.owner, query)
        return replace(request, recall=quotes)

    async def _curated_file(self, owner: Owner) -> str:
        """Return the user's memory file; empty if it does not exist or cannot be read."""
        if self.runtime.daily is None:
            return ""
        try:
            return await self.runtime.daily.curated_text(owner)
        except RemanenceError as error:
            telemetry.daily_notes_failed(owner.user, str(error))
            return ""
