"""Forgetting across the parts of an open memory: tape, external vectors, blocks, daily notes."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from dataclasses import replace

from remanence.archive.blocks import BlockStore
from remanence.engine.forgetting import TRIES, Forgetting
from remanence.engine.traces import Traces
from remanence.errors import InvalidArgument, StoreError
from remanence.facts.merge import with_superseded
from remanence.facts.tags import SAVED
from remanence.facts.vectors import forget_vectors
from remanence.notes.literals import contains
from remanence.notes.plain_text import contains_any, everything_in, plain_text
from remanence.recall.snippets import snippet
from remanence.runtime import Runtime
from remanence.types import (
    ConversationRef,
    Erasure,
    Fact,
    ForgottenMessage,
    Hit,
    MemoryState,
    Message,
    Owner,
    Receipt,
    Repetition,
    Segment,
)
from remanence.types.receipt import chain, digest

PAGE = 500
_PAGE_TOKENS = 100_000
"""A page is read in one thread, which competes with the event loop for the GIL."""
_SHOWN_CHARACTERS = 200


async def read_tape(runtime: Runtime, ref: ConversationRef) -> AsyncIterator[Message]:
    """Yield all messages of a conversation."""
    async for page in read_pages(runtime, ref):
        for message in page:
            yield message


async def read_pages(runtime: Runtime, ref: ConversationRef) -> AsyncIterator[tuple[Message, ...]]:
    """Yield all messages of a conversation in pages that a thread reads in one go."""
    after = 0
    while page := await runtime.store.messages(
        ref, after=after, limit=PAGE, max_tokens=_PAGE_TOKENS
    ):
        yield page
        after = page[-1].seq


def _describe_unknown(
    ref: ConversationRef,
    messages: Sequence[str],
    facts: Sequence[str],
    known_facts: Collection[str],
) -> str:
    """Return what is unknown and a remedy, in words of the library, the command line and HTTP."""
    if not messages:
        what = f"the user of conversation {ref.id!r} has no fact {facts[0]!r:.80}"
    else:
        what = f"conversation {ref.id!r} has no message {messages[0]!r:.80}"
        if messages[0] in known_facts:
            return f"{what}: it is the id of a fact, so name it as a fact"
    return f"{what}: find the ids by a query"


async def forget_messages(
    runtime: Runtime,
    ref: ConversationRef,
    owner: Owner | None,
    message_ids: Sequence[str],
    fact_ids: Sequence[str],
) -> Receipt:
    """Forget messages of a conversation, and facts of its user.

    Raises:
        InvalidArgument: a message or fact does not exist.
    """
    runtime.check_writable()
    wanted = set(message_ids)
    named = [message async for message in read_tape(runtime, ref) if message.id in wanted]
    known = await runtime.store.facts(owner, history=True) if owner else ()
    facts = {fact.id for fact in known}
    found = _Erasure(runtime, (ref, owner, frozenset(wanted), frozenset(fact_ids)))
    lost = sorted(wanted - {message.id for message in named})
    lost_facts = sorted(set(fact_ids) - facts - set(found.receipt.facts))
    if lost or lost_facts:
        await runtime.store.scrub(if_due=True)
        raise InvalidArgument(_describe_unknown(ref, lost, lost_facts, facts))
    messages = [message for message in named if message.kind != "forgotten"]
    salt = found.receipt.salt
    places = {message.seq for message in named}  # forgotten ones, too: a call may have failed
    is_repeat = not messages and facts.isdisjoint(fact_ids)  # at most copies are left to erase
    clean = await runtime.store.segments(ref, live=False) if is_repeat else ()

    async def erase_outside(erasure: Erasure) -> None:
        runtime.drop_prompts(ref)
        if owner is not None:
            await forget_vectors(runtime.fact_vectors, owner, erasure.facts)
        if (blocks := runtime.blocks(ref.tenant)) is not None:
            kept_blocks = [segment.id for segment in clean]
            found.add(files=await blocks.forget(ref.id, places, erasure.segments, keep=kept_blocks))
        if owner is not None and runtime.daily is not None:  # only people change daily notes
            texts = [f.summary for f in known if f.id in erasure.facts]
            texts += [text for m in messages for text in (m.text, everything_in(m))]
            found.add(still_in=await runtime.daily.find(texts, owner))

    forgetting = Forgetting(
        store=runtime.store,
        segment_writer=runtime.segment_writer,
        clock=runtime.clock,
        count=runtime.counter.message,
        salt=salt,
        erase_outside=erase_outside,
    )
    if is_repeat:
        erasure, vectors = Erasure(tombstones=()), 0
    else:
        erasure, vectors = await forgetting.forget(ref, owner, messages, set(fact_ids))
    found.add(
        messages=[_forgotten(ref, message, salt) for message in messages],
        segments=erasure.segments,
        remade=[segment.id for segment in erasure.remade],
        notes_gone=erasure.notes_gone,
        notes_new=erasure.notes_new,
        facts=erasure.facts,
        vectors=vectors,
    )
    await erase_outside(erasure)  # again, as other tasks may have added some meanwhile
    await runtime.store.scrub(if_due=is_repeat)
    runtime.engine.signal(ref)
    runtime.texts_changed()
    kept = ""
    async for page in read_pages(runtime, ref):
        kept = await asyncio.to_thread(chain, page, kept)
    receipt = found.finish()
    return replace(receipt, erased=receipt.erased or not is_repeat, kept=kept)


async def find_mentions(
    runtime: Runtime,
    refs: Sequence[ConversationRef],
    owner: Owner | None,
    query: str,
    hits: Sequence[Hit],
) -> Receipt:
    """Return the messages and facts that *query* may refer to; erases nothing.

    Includes all *hits*, and everything that contains the query literally, in any Unicode form and
    with its digits in any groups. The words of a fact include those of its repetitions, and whole
    words of the tags of one that was saved by hand.
    """
    words = plain_text(query)
    facts = await runtime.store.facts(owner, history=True) if owner else ()
    said_again = await runtime.store.repetitions(owner) if owner else ()
    named = {hit.source_id for hit in hits if hit.kind == "fact"}
    fact_ids = await asyncio.to_thread(_fact_mentions, facts, said_again, words, named)
    messages: list[ForgottenMessage] = []
    for ref in refs:
        ids = {hit.source_id for hit in hits if (hit.kind, hit.conversation) == ("message", ref.id)}
        async for page in read_pages(runtime, ref):
            messages += await asyncio.to_thread(_mentions, page, ref, words, ids)
    return Receipt(
        erased=False, at=runtime.clock.now(), messages=tuple(messages), facts=tuple(fact_ids)
    )


def _fact_mentions(
    facts: Sequence[Fact], said_again: Sequence[Repetition], words: str, ids: Collection[str]
) -> Sequence[str]:
    """Return the ids of facts that are named or say the words, and of those that they superseded."""
    named = {fact.id for fact in facts if fact.id in ids}
    said = [*((fact.id, fact) for fact in facts), *said_again]
    for fact_id, fact in said if words else ():
        tags = fact.tags if fact.made_by == SAVED else ()  # others are of the library or a model
        has_tag = any(contains(plain_text(tag), words) for tag in tags)
        if has_tag or contains_any(fact.summary, [words]):
            named.add(fact_id)
    return sorted(with_superseded(facts, named))


def _mentions(
    messages: Sequence[Message], ref: ConversationRef, words: str, ids: Collection[str | None]
) -> list[ForgottenMessage]:
    """Return the messages that are named or say the words."""
    return [
        ForgottenMessage(ref.id, message.seq, message.id or "", text=_beginning(message))
        for message in messages
        if message.kind != "forgotten"
        and (message.id in ids or contains_any(everything_in(message), [words]))
    ]


def _beginning(message: Message) -> str:
    """Return the first words; of a secret cut in two, no pattern would recognise the first part."""
    return snippet(message.full_text, "", characters=_SHOWN_CHARACTERS)


async def finish_forgetting(runtime: Runtime, ref: ConversationRef, blocks: BlockStore) -> None:
    """Remove blocks left behind by a `forget` call whose process was killed."""
    state = await runtime.store.state(ref)
    if state is None or not state.erasures:
        return
    places = {m.seq async for m in read_tape(runtime, ref) if m.kind == "forgotten"}
    segments = await runtime.store.segments(ref, live=False)
    if places:
        await blocks.forget(ref.id, places, (), keep=[segment.id for segment in segments])


async def delete_conversation(
    runtime: Runtime, ref: ConversationRef, owner: Owner | None, *, scrub: bool
) -> Receipt | None:
    """Erase a conversation with its notes, facts and blocks; None if there is nothing of it."""
    runtime.check_writable()
    erasure = _Erasure(runtime, (ref, owner))
    messages = await _read_forgotten(runtime, ref, erasure.receipt.salt)
    segments = await runtime.store.segments(ref, live=False)
    # A fact may name a conversation that has not begun, and stays then.
    has_begun = await runtime.store.state(ref) is not None
    facts = await runtime.store.facts(owner, history=True) if owner and has_begun else ()
    mine = tuple(fact.id for fact in facts if fact.conversation == ref.id)
    if owner and mine:  # first, as the words that they repeat can only be found on the tape
        erasure.add(facts=await _forget_derived(runtime, ref, owner))
    await _forget_outside(runtime, [ref], owner, mine, erasure)
    if (vectors := await runtime.store.delete(ref)) is not None:
        erasure.add(
            conversations=[ref.id],
            messages=messages,
            segments=[segment.id for segment in segments],
            notes_gone=_count_notes(segments),
            facts=mine,
            vectors=vectors,
        )
    await _forget_outside(runtime, [ref], owner, erasure.receipt.facts, erasure)
    if scrub:
        await runtime.store.scrub(if_due=not erasure.receipt.erased)
    receipt = erasure.finish()
    if not receipt.erased:
        return None
    runtime.texts_changed()  # older facts may have become current
    return receipt


async def _forget_derived(runtime: Runtime, ref: ConversationRef, owner: Owner) -> tuple[str, ...]:
    """Erase the facts of other conversations that repeat one of this conversation."""
    for _ in range(TRIES):
        if (state := await runtime.store.state(ref)) is None:
            return ()
        erasure = await _find_derived(runtime, state, owner)
        derived = erasure.facts
        await forget_vectors(runtime.fact_vectors, owner, derived)
        if not derived or await runtime.store.forget(state, erasure, at=runtime.clock.now()):
            await forget_vectors(runtime.fact_vectors, owner, derived)
            return derived
    raise StoreError(f"conversation {ref.id!r} changed {TRIES} times meanwhile: try again")


async def _find_derived(runtime: Runtime, state: MemoryState, owner: Owner) -> Erasure:
    """Return the erasure of other conversations' facts that repeat one of this conversation.

    A fact that another conversation, such as a fork, also says does not go.
    """
    store, ref = runtime.store, state.ref
    facts = await store.facts(owner, history=True)
    said_again = await store.repetitions(owner)
    kept = {again.repeats for again in said_again if again.fact.conversation != ref.id}
    gone = [fact for fact in facts if fact.conversation == ref.id and fact.id not in kept]
    nothing = Erasure(tombstones=())
    if not gone or all(fact.conversation in (None, ref.id) for fact in facts):
        return nothing
    forgotten = [message async for message in read_tape(runtime, ref)]
    traces = Traces(store=store, state=state, forgotten=forgotten)
    if not await traces.in_facts(facts, {fact.id for fact in gone}):
        return nothing
    gone_for_good = await store.unshared_facts(ref, gone)
    derived = await traces.in_facts(facts, {fact.id for fact in gone_for_good})
    others = {f.id for f in facts if f.id in derived and f.conversation != ref.id}
    only_derived = others - await traces.said_again(others, said_again)
    return Erasure(tombstones=(), facts=tuple(sorted(others)), named=tuple(sorted(only_derived)))


async def forget_user(runtime: Runtime, owner: Owner) -> Receipt:
    """Erase a user: conversations, facts, daily notes, blocks, and the name in the ledger."""
    erasure = _Erasure(runtime, owner)
    if runtime.daily is not None:  # first, as a consolidation in progress still saves facts
        erasure.add(files=await runtime.daily.forget(owner))
    await runtime.ledger.settle()
    conversations: list[str] = []
    messages: list[ForgottenMessage] = []
    segments: list[str] = []
    notes_gone = 0
    async for ref in conversations_of(runtime, owner):
        conversations.append(ref.id)
        messages += await _read_forgotten(runtime, ref, erasure.receipt.salt)
        found = await runtime.store.segments(ref, live=False)
        segments += [segment.id for segment in found]
        notes_gone += _count_notes(found)
    facts = [fact.id for fact in await runtime.store.facts(owner, history=True)]
    erasure.add(conversations=conversations, messages=messages, segments=segments, facts=facts)
    gone = erasure.receipt
    refs = [ConversationRef(owner.tenant, name) for name in gone.conversations]
    await _forget_outside(runtime, refs, owner, gone.facts, erasure)
    erasure.add(vectors=await runtime.store.forget_user(owner), notes_gone=notes_gone)
    await _forget_outside(runtime, refs, owner, gone.facts, erasure)
    await runtime.store.scrub()
    left = () if runtime.daily is None else await runtime.daily.other_files(owner)
    return replace(erasure.finish(), still_in=left)


async def _forget_outside(
    runtime: Runtime,
    refs: Sequence[ConversationRef],
    owner: Owner | None,
    facts: Sequence[str],
    erasure: "_Erasure",
) -> None:
    """Erase the copies of conversations and facts outside of the database.

    Called before their rows are erased, so that a call that fails or is killed can be repeated, and
    again afterwards, as other tasks may have added some meanwhile.
    """
    if owner is not None:
        await forget_vectors(runtime.fact_vectors, owner, facts)
    for ref in refs:
        runtime.drop_prompts(ref)
    if refs and (blocks := runtime.blocks(refs[0].tenant)) is not None:
        erasure.add(files=await blocks.delete(*(ref.id for ref in refs)))


class _Erasure:
    """The receipt of an erasure in several steps.

    If a step fails, a repeated call continues the same receipt, so that it lists everything.
    """

    def __init__(self, runtime: Runtime, subject: object) -> None:
        self._runtime = runtime
        self._subject = subject
        new = Receipt(erased=False, at=runtime.clock.now(), salt=secrets.token_hex(16))
        self.receipt = runtime.unfinished_erasures.get(subject) or new

    def add(self, **found: Iterable[object] | int) -> None:
        """Add values to the fields of the receipt."""
        more = {
            name: old + new if isinstance(new, int) else tuple(dict.fromkeys((*old, *new)))
            for name, new in found.items()
            for old in [getattr(self.receipt, name)]
        }
        if any(more.values()):
            self.receipt = replace(self.receipt, erased=True, **more)  # type: ignore[arg-type]  # by name
            self._runtime.unfinished_erasures[self._subject] = self.receipt

    def finish(self) -> Receipt:
        self._runtime.unfinished_erasures.pop(self._subject, None)
        return replace(self.receipt, at=self._runtime.clock.now())


async def conversations_of(runtime: Runtime, owner: Owner) -> AsyncIterator[ConversationRef]:
    """Yield the conversations of a user."""
    after: ConversationRef | None = None
    tenant, user = owner
    while page := await runtime.store.conversations(
        tenant=tenant, user=user, after=after, limit=PAGE
    ):
        for state in page:
            yield state.ref
        after = page[-1].ref


async def _read_forgotten(
    runtime: Runtime, ref: ConversationRef, salt: str
) -> tuple[ForgottenMessage, ...]:
    """Return the location of each message to be erased."""
    found: list[ForgottenMessage] = []
    async for page in read_pages(runtime, ref):
        found += await asyncio.to_thread(_locations, page, ref, salt)
    return tuple(found)


def _locations(
    messages: Sequence[Message], ref: ConversationRef, salt: str
) -> list[ForgottenMessage]:
    return [_forgotten(ref, message, salt) for message in messages if message.kind != "forgotten"]


def _count_notes(segments: Iterable[Segment]) -> int:
    return sum(len(segment.notes) for segment in segments if segment.live)


def _forgotten(ref: ConversationRef, message: Message, salt: str) -> ForgottenMessage:
    return ForgottenMessage(ref.id, message.seq, message.id or "", digest(message, salt))
