"""The facade of facts, which a memory keeps about its users across conversations."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import MINYEAR, datetime
from typing import get_args

from remanence import telemetry
from remanence.arguments import (
    bad_character,
    require_count,
    require_moment,
    require_no_control,
    require_one_of,
    require_text,
    require_texts,
    require_words,
)
from remanence.clock import Clock
from remanence.errors import InvalidArgument, InvalidMessage, StoreError
from remanence.facts.known import TRIES, KnownFacts
from remanence.facts.merge import with_superseded
from remanence.facts.tags import SAVED
from remanence.facts.vectors import forget_vectors
from remanence.notes.redact import MARK, redact
from remanence.policy.schedule import MAX_AHEAD
from remanence.protocols import FactVectors, Store
from remanence.recent import Recent
from remanence.types import ConversationRef, Fact, FactDraft, FactType, Owner, Receipt
from remanence.wire.message_rules import storable

MAX_SUMMARY_CHARACTERS = 4_000
MAX_TURN = 200
"""Newest messages that are searched for the beginning of the turn in progress."""

Search = Callable[[Owner, str, int], Awaitable[tuple[Fact, ...]]]


class Facts:
    """The facts of users; each call names one user of one tenant and sees only their facts."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        known: KnownFacts,
        search: Search,
        changed: Callable[[], None],
        vectors: FactVectors | None,
        owner: Callable[[str, str], Owner],
        unfinished_erasures: Recent[object, Receipt | None],
    ) -> None:
        """Use `memory.facts`."""
        self._store = store
        self._clock = clock
        self._known = known
        self._search = search
        self._changed = changed
        self._vectors = vectors
        self._owner = owner
        self._unfinished_erasures = unfinished_erasures

    async def search(
        self, query: str, *, user: str, tenant: str = "default", limit: int = 5
    ) -> tuple[Fact, ...]:
        """Return the user's current facts that match *query*, or share a question's topic, best first.

        Raises:
            InvalidArgument: the query is blank, or an argument has a wrong type.
        """
        require_words(query=query)
        require_count(limit=limit)
        return await self._search(self._owner(user, tenant), query, limit)

    async def save(
        self,
        summary: str,
        *,
        user: str,
        tenant: str = "default",
        type: FactType = "knowledge",  # noqa: A002 - the field's name
        tags: Sequence[str] = (),
        valid_from: datetime | None = None,
        replaces: str | None = None,
        conversation: str | None = None,
    ) -> Fact:
        """Save a fact, or return the known one that says the same.

        Saved again without a *conversation*, a fact gets the new tags, too, up to 100 in all, and an
        earlier *valid_from* unless it has replaced others.

        It supersedes a fact that it contradicts, and the one with the id *replaces*, unless both are
        the same text once secrets are redacted: that is logged, and the known fact stays. One that was
        said in a *conversation* has the turn in progress as its source, from the user's newest
        message on, and is erased with it. A conversation without messages is accepted.

        Raises:
            InvalidMessage: the summary is empty or too long, the type unknown, or a tag has control
                characters.
            InvalidArgument: another value is not of its type, *valid_from* is more than a day ahead, or
                the user has no fact *replaces*, or the conversation is another user's.
        """
        owner = self._owner(user, tenant)
        require_text(summary=summary)
        require_text(replaces=replaces, conversation=conversation, optional=True)
        require_moment(valid_from=valid_from)
        if valid_from is not None:
            _check_start(valid_from, self._clock.now())
        require_texts(tags=tags)
        if type not in get_args(FactType):
            raise InvalidMessage(
                f"fact type {type!r} is unknown: use one of {', '.join(get_args(FactType))}"
            )
        clean_tags = tuple(redact(storable(tag)) for tag in tags)
        for tag in clean_tags:
            require_no_control("fact tag", tag)
        draft = FactDraft(
            summary=_check_summary(summary),
            type=type,
            tags=clean_tags,
            valid_from=valid_from,
            replaces=replaces,
        )
        source = None if conversation is None else ConversationRef(tenant, conversation)
        if source is not None:
            first_seq, last_seq = await self._turn(source, owner)
            draft = replace(draft, first_seq=first_seq, last_seq=last_seq)
        async with self._known.lock(owner, SAVED):
            return await self._merge(draft, owner, source)

    async def _merge(self, draft: FactDraft, owner: Owner, source: ConversationRef | None) -> Fact:
        """Save a draft with its effects on known facts, again if another process changes them."""
        if draft.replaces is not None and (sent := await self._replacement(owner, draft)):
            return sent
        for _ in range(TRIES):
            known = await self._comparable(owner, draft)
            changes = await self._known.merge([draft], owner, source, made_by=SAVED, known=known)
            saved = await self._store.save_facts(changes)
            if saved:
                self._changed()
                return saved[0]
            # The fact that it repeats, unless another process has changed or erased that.
            repeats = None if saved is None else changes.repetitions[0].repeats
            if repeats and (fact := await self._store.fact(owner, repeats)):
                if repeats == draft.replaces and MARK in draft.summary:
                    telemetry.secret_not_replaced(repeats)
                return fact
        raise StoreError(
            f"the facts of user {owner.user!r} changed concurrently {TRIES} times: save again"
        )

    async def _turn(self, source: ConversationRef, owner: Owner) -> tuple[int | None, int | None]:
        """Return the first and last seq of the turn in progress; None before the first message."""
        state = await self._store.state(source)
        if state is None:
            return None, None
        if state.user != owner.user:
            raise InvalidArgument(f"user {owner.user!r} has no conversation {source.id!r}")
        after = max(0, state.last_seq - MAX_TURN)
        newest = await self._store.messages(source, after=after, limit=MAX_TURN)
        said = [message.seq for message in newest if message.role == "user"]
        first_seq = said[-1] if said else state.last_seq
        return first_seq, max(first_seq, state.last_seq)

    async def _comparable(self, owner: Owner, draft: FactDraft) -> Sequence[Fact]:
        """Return the facts that a draft is compared with, and the one to be replaced."""
        known, replaces = await self._known.find(owner, [draft]), draft.replaces
        if replaces is None or any(fact.id == replaces for fact in known):
            return known
        old = await self._store.fact(owner, replaces)
        if old is None or old.valid_to is not None:
            raise InvalidArgument(
                f"user {owner.user!r} has no current fact {replaces!r}: list the facts for their ids"
            )
        return (*known, old)

    async def _replacement(self, owner: Owner, draft: FactDraft) -> Fact | None:
        """Return the current fact that an earlier save of the same draft left, if there is one."""
        old = await self._store.fact(owner, draft.replaces or "")
        if old is None or old.superseded_by is None:
            return None
        new = await self._store.fact(owner, old.superseded_by)
        is_sent = new is not None and new.valid_to is None and new.summary == draft.summary
        return new if is_sent else None

    async def forget(self, fact_id: str, *, user: str, tenant: str = "default") -> bool:
        """Erase a fact and the earlier ones that it superseded; False if there is none.

        When it returns, no byte of them is left in the files of a SQLite database.

        Raises:
            StoreUnavailable: another process reads the files, or the vectors could not be erased. The
                text may be left: call again.
        """
        owner = self._owner(user, tenant)
        require_text(fact_id=fact_id)
        subject = owner, fact_id
        gone: Sequence[str] = ()
        if self._vectors is not None:  # before, so that a failed call can be repeated
            known = await self._store.facts(owner, history=True)
            gone = [*with_superseded(known, {fact_id})]
            await forget_vectors(self._vectors, owner, gone)
        if await self._store.forget_fact(owner, fact_id):
            self._unfinished_erasures[subject] = None
        # Again, as the indexer may have put one there meanwhile.
        await forget_vectors(self._vectors, owner, gone)
        is_ours = subject in self._unfinished_erasures
        await self._store.scrub(if_due=not is_ours)
        self._unfinished_erasures.pop(subject, None)
        return is_ours

    async def list(
        self,
        *,
        user: str,
        tenant: str = "default",
        history: bool = False,
        after: str | None = None,
        limit: int | None = None,
    ) -> tuple[Fact, ...]:
        """Return the user's current facts, the last written first; with *history*, superseded ones too.

        For paging, *after* is the id of the last fact that was seen, even if it was forgotten since.

        Raises:
            InvalidArgument: *after* is not the id of a fact, or another value is not of its type.
        """
        require_text(after=after, optional=True)
        require_count(limit=limit, optional=True)
        require_one_of(bool, history=history)
        owner = self._owner(user, tenant)
        if after is not None and not after.startswith("fact"):  # the kind of its id
            raise InvalidArgument(
                f"after={after!r:.80} is not the id of a fact: use that of the last fact seen"
            )
        return await self._store.facts(owner, history=history, after=after, limit=limit)

    async def get(self, fact_id: str, *, user: str, tenant: str = "default") -> Fact | None:
        """Return the user's fact with this id, even if it is superseded."""
        require_text(fact_id=fact_id)
        return await self._store.fact(self._owner(user, tenant), fact_id)


def _check_start(valid_from: datetime, now: datetime) -> None:
    if valid_from.year == MINYEAR:  # a time that another time zone could not show
        raise InvalidArgument(
            f"valid_from={valid_from.isoformat()!r} is impossible: use a time from the year "
            f"{MINYEAR + 1} on"
        )
    if valid_from - now > MAX_AHEAD:  # it would end the fact that holds until then
        raise InvalidArgument(
            f"valid_from={valid_from.isoformat()!r} is more than a day ahead: leave it out, and say "
            "in the summary from when the fact holds"
        )


def _check_summary(summary: str) -> str:
    if problem := bad_character(summary.replace("\0", " ")):  # a NUL character is left out
        raise InvalidMessage(f"the fact {problem}")
    text = " ".join(storable(summary).split())
    if not text:
        raise InvalidMessage("the fact is empty: pass the text to remember")
    if len(text) > MAX_SUMMARY_CHARACTERS:
        raise InvalidMessage(
            f"the fact has {len(text):,} characters, more than {MAX_SUMMARY_CHARACTERS:,}: "
            "save one sentence that says where the rest is kept"
        )
    return redact(text)
