"""Extract facts from messages, and merge them with the known ones."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from remanence import telemetry
from remanence.background import guard_host_code
from remanence.clock import Clock
from remanence.deadline import step_timeout
from remanence.facts.draft_check import check_facts
from remanence.facts.known import KNOWN_FACTS, TRIES, KnownFacts
from remanence.facts.tags import WISH
from remanence.facts.wishes import mark_wishes
from remanence.notes.redact import redact
from remanence.policy.policy import Policy
from remanence.protocols import ExtractRequest, FactExtractor, Store
from remanence.types import (
    ConversationRef,
    FactChanges,
    FactDraft,
    FailedStretch,
    MemoryState,
    Message,
    Note,
    Owner,
    Snapshot,
)

MESSAGES_BEFORE = 8
"""Messages before those of an extraction, of which one may ask what they answer."""

EXTRACT_TOKENS = 8_000
"""Tokens of messages per extraction, if the policy does not set `observe_max_tokens`."""

Visible: TypeAlias = Callable[[MemoryState, Sequence[Message]], Awaitable[Sequence[Message]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """Runs an extractor and compares its facts with the known ones. Stateless."""

    store: Store
    policy: Policy
    extractor: FactExtractor
    clock: Clock
    known: KnownFacts

    async def next_messages(self, state: MemoryState, end: int) -> Sequence[Message]:
        """Return the next messages of a conversation for one extraction, up to *end*."""
        return await self.store.messages(
            state.ref,
            after=state.facts_seq,
            limit=end - state.facts_seq,
            max_tokens=self.policy.observe_max_tokens or EXTRACT_TOKENS,
        )

    async def extract(
        self, snapshot: Snapshot, messages: Sequence[Message], visible: Visible
    ) -> bool:
        """Extract and commit the facts of the next messages of a conversation.

        The extractor sees of them what *visible* returns. Returns False if another worker committed
        facts of them first. Facts of other conversations that were saved meanwhile cost no second call.
        """
        state, after = snapshot.state, snapshot.state.facts_seq
        last_seq, owner = messages[-1].seq, state.owner
        assert owner is not None  # or no facts would be due
        start = max(0, after - MESSAGES_BEFORE)
        before = await self.store.messages(state.ref, after=start, limit=after - start)
        seen = await visible(state, (*before, *messages))
        drafts: Sequence[FactDraft] = ()
        if new := [message for message in seen if message.seq > after]:
            notes = [
                note
                for segment in snapshot.segments
                for note in segment.notes
                if after < note.last_seq <= last_seq
            ]
            drafts = await self.draft(
                owner,
                state.ref,
                messages=new,
                notes=notes,
                before=[message for message in seen if message.seq <= after],
                spoken=True,
            )
        async with self.known.lock(owner, self.extractor.name):
            return await self._commit(state, drafts, owner, last_seq)

    async def _commit(
        self, state: MemoryState, drafts: Sequence[FactDraft], owner: Owner, last_seq: int
    ) -> bool:
        """Merge and commit drafts, again if other facts of the owner are committed meanwhile."""
        for _ in range(TRIES):
            changes = await self.merge(drafts, owner, state.ref) if drafts else FactChanges()
            committed = await self.store.commit_facts(
                state, changes, facts_seq=last_seq, at=self.clock.now()
            )
            if committed is not None:
                telemetry.facts_committed(state.ref.id, len(changes.facts), len(changes.replaced))
                return True
            current = await self.store.state(state.ref)
            if (
                current is None
                or current.facts_seq != state.facts_seq
                or current.erasures != state.erasures
            ):
                break
        return False

    async def leave_out(self, state: MemoryState, stretch: FailedStretch) -> bool:
        """Go on behind messages that were given up; false if another worker committed first.

        The failure stays, so that the wait is as long as before if the next messages fail, too.
        """
        committed = await self.store.commit_facts(
            state, FactChanges(), facts_seq=stretch.last_seq, at=self.clock.now()
        )
        if committed is None:
            return False
        telemetry.left_out_of_facts(state.ref.id, stretch.first_seq, stretch.last_seq)
        if state.facts_failure is not None:
            failure = replace(state.facts_failure, rejections=0, timeouts=0)
            await self.store.record_failure(committed, failure)
        return True

    async def draft(
        self,
        owner: Owner,
        source: ConversationRef,
        *,
        messages: Sequence[Message],
        notes: Sequence[Note],
        before: Sequence[Message] = (),
        spoken: bool = False,
    ) -> Sequence[FactDraft]:
        """Return what the extractor finds in the messages.

        The user said the messages of the role `user` if they were *spoken*, so they may have wishes.
        """
        known = await self.store.facts(owner, limit=KNOWN_FACTS)
        request = ExtractRequest(
            conversation=source,
            user=owner.user,
            messages=tuple(messages),
            notes=tuple(notes),
            known=known,
            now=self.clock.now(),
            before=tuple(before),
        )
        async with step_timeout(self.policy.observe_timeout_seconds):
            with guard_host_code():
                found = await self.extractor.extract(request)
        checked = check_facts(found, made_by=self.extractor.name, seqs=_seqs(request))
        drafts = tuple(_complete(draft, messages, request.now) for draft in checked)
        if spoken:
            said = (*before, *messages)
            drafts = await asyncio.to_thread(mark_wishes, drafts, said, user=owner.user)
        return drafts

    async def merge(
        self, drafts: Sequence[FactDraft], owner: Owner, source: ConversationRef
    ) -> FactChanges:
        """Return the new facts in drafts, and those that they replace among the known ones of now."""
        return await self.known.merge(drafts, owner, source, made_by=self.extractor.name)


def _seqs(request: ExtractRequest) -> range:
    """Return the message numbers of a request, with those of notes that begin before its messages."""
    seqs = [message.seq for message in (*request.before, *request.messages)]
    seqs += [seq for note in request.notes for seq in (note.first_seq, note.last_seq)]
    return range(min(seqs, default=0), max(seqs, default=-1) + 1)


def _complete(draft: FactDraft, messages: Sequence[Message], now: datetime) -> FactDraft:
    """Return a draft of an extractor with its source and time, without secrets and the tag of wishes.

    Without a source it is made from all messages, to go with any of them. It holds from the time of
    its first message if it has none, and from *now* at the latest: a message dated ahead has a wrong
    clock.
    """
    if messages and not draft.first_seq:
        draft = replace(draft, first_seq=messages[0].seq, last_seq=messages[-1].seq)
    times = (message.created_at for message in messages if message.seq == draft.first_seq)
    said_at = draft.valid_from or next(times, None)
    return replace(
        draft,
        summary=redact(draft.summary),
        tags=tuple(redact(tag) for tag in draft.tags if tag != WISH),
        valid_from=said_at and min(said_at, now),
    )
