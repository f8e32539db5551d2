"""P1 holds for every version of the past, and what is shown of it never changes."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from remanence import Memory, Message, Policy
from remanence.context.context import Context
from remanence.conversation import Conversation
from remanence.errors import ConversationNotFound
from remanence.testing import (
    FixedClock,
    ScriptedObserver,
    ScriptedReflector,
    check_coverage,
    check_tiling,
)
from remanence.types import Snapshot

pytestmark = pytest.mark.timeout(1_800)

POLICIES = (
    Policy(
        observe_tokens=60,
        observe_max_tokens=150,
        note_ratio=1.0,
        tail_tokens=150,
        tail_keep_tokens=30,
        keep_last=2,
        reflect_tokens=(80, 100),
        max_context_tokens=1_000,
    ),
    Policy(
        observe_tokens=50,
        observe_max_tokens=200,
        note_ratio=1.0,
        tail_tokens=120,
        tail_keep_tokens=40,
        keep_last=3,
        observe_slice="all",
        activate="when_observed",
        reflect_tokens=(120,),
        reflect_scope="all",
        max_context_tokens=1_000,
    ),
)
WORDS = st.lists(st.integers(1, 40), min_size=1, max_size=15)


async def lived(chat: Conversation, lengths: Sequence[int]) -> dict[int, Snapshot]:
    """Hold a conversation; the last look at each version, taken while it was the newest."""
    seen: dict[int, Snapshot] = {}
    for number, length in enumerate(lengths):
        for message in (Message.user(f"{number} " + "word " * length), Message.assistant("ok")):
            await chat.append(message)
            snapshot = await chat.snapshot()
            seen[snapshot.state.lock_version] = snapshot
        await chat.flush()
        snapshot = await chat.snapshot()
        seen[snapshot.state.lock_version] = snapshot
    return seen


async def check_the_past(lengths: Sequence[int], policy: Policy) -> None:
    async with Memory.open(
        "sqlite:///:memory:",
        policy=policy,
        observer=ScriptedObserver(),
        reflector=ScriptedReflector(),
        clock=FixedClock(),
    ) as memory:
        chat = memory.conversation("chat")
        seen = await lived(chat, lengths)
        newest = (await chat.state()).lock_version
        for version in range(newest + 1):
            past = await chat.snapshot(version)
            check_tiling(past.state, past.segments)
            context = await chat.context_at(version)
            check_coverage(context, past.state, past.segments)
            assert past.state.lock_version == version
            if version in seen:
                check_same(seen[version], past)


def check_same(then: Snapshot, past: Snapshot) -> None:
    """The past reads as it did, but for messages that came before the next version."""
    assert [segment.id for segment in past.segments] == [segment.id for segment in then.segments]
    assert past.tail[: len(then.tail)] == then.tail
    come = sum(message.tokens for message in past.tail[len(then.tail) :])
    assert past.state == replace(
        then.state,
        last_seq=past.state.last_seq,
        last_sum_tokens=then.state.last_sum_tokens + come,
        last_message_at=past.state.last_message_at,
        lease_owner=past.state.lease_owner,
        lease_until=past.state.lease_until,
    )


@settings(max_examples=12)
@given(lengths=WORDS, policy=st.sampled_from(POLICIES))
def test_every_past_version_tiles_the_tape_and_reads_as_it_did_then(
    lengths: list[int], policy: Policy
) -> None:
    asyncio.run(check_the_past(lengths, policy))


async def conversed(chat: Conversation, turns: int) -> list[tuple[int, Context]]:
    """The contexts that the model was given, each with the version that was the newest then."""
    given_then = []
    for number in range(turns):
        await chat.append(Message.user(f"In town {number} I stay at the Hotel Linde."))
        context = await chat.context(system="You help.")
        given_then.append(((await chat.state()).lock_version, context))
        await chat.append(Message.assistant(f"Noted: town {number}."))
        await chat.flush()
    return given_then


@pytest.mark.req("X-27")
async def test_the_context_of_a_past_version_shows_what_the_model_saw() -> None:
    async with Memory.open(
        "sqlite:///:memory:",
        policy=POLICIES[0],
        observer=ScriptedObserver(),
        reflector=ScriptedReflector(),
        clock=FixedClock(),
    ) as memory:
        chat = memory.conversation("chat")
        given_then = await conversed(chat, 25)
        log = await chat.log()

        for version, then in given_then:
            past = await chat.context_at(version, system="You help.")
            assert [block.text for block in past.system] == [block.text for block in then.system]
            raw = [message.text for message in then.messages]
            assert [message.text for message in past.messages][: len(raw)] == raw

    assert {entry.kind for entry in log} >= {"observed", "activated", "reflected"}
    assert [entry.version for entry in log] == list(range(1, len(log) + 1))


async def test_the_newest_version_is_read_as_far_as_it_fits_a_context() -> None:
    policy = POLICIES[0].replace(enabled=False)
    async with Memory.open("sqlite:///:memory:", policy=policy) as memory:
        chat = memory.conversation("chat")
        await chat.append(*(Message.user(f"Town {n}. " + "word " * 40) for n in range(200)))
        newest = await chat.snapshot(0)

        assert newest == await chat.snapshot()
        assert newest.state.last_seq == 200
        assert len(newest.tail) < 200


async def test_the_log_up_to_a_version_is_the_beginning_of_the_log() -> None:
    async with Memory.open(
        "sqlite:///:memory:", policy=POLICIES[0], observer=ScriptedObserver()
    ) as memory:
        chat = memory.conversation("chat")
        await conversed(chat, 6)
        log = await chat.log()

        assert await chat.log(3) == log[:3]
        assert len(log) > 3


async def test_a_version_that_never_was_is_named_with_those_that_were() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("chat")
        await chat.append(Message.user("hello"))

        with pytest.raises(ConversationNotFound, match=r"no version 99: .* 0 to 0"):
            await chat.context_at(99)
