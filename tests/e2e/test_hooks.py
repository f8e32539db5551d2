"""Hooks through the public API: they see, change or veto what is observed and reflected."""

import asyncio
from dataclasses import replace

import pytest

from remanence import Hooks, Memory, Message, Policy, Settings
from remanence.conversation import Conversation
from remanence.errors import Closed
from remanence.facts import ModelFacts
from remanence.protocols import ObserveRequest, ReflectRequest
from remanence.testing import FixedClock, ScriptedObserver, ScriptedReflector
from remanence.testing.models import ScriptedModel
from remanence.types import Draft, MemoryState

pytestmark = pytest.mark.req("X-20")

IN_MEMORY = "sqlite:///:memory:"
POLICY = Policy(
    observe_tokens=100,
    keep_last=0,
    tail_tokens=200,
    tail_keep_tokens=20,
    note_ratio=0.5,
    reflect_tokens=(60, 100),
)
WORDS = "seven brave sailors crossed a quiet bay before the morning bell rang twice"


async def talk(chat: Conversation, turns: int = 10) -> MemoryState:
    for number in range(turns):
        varied = " ".join(f"{word}{number}" for word in WORDS.split())
        await chat.append(Message.user(varied), Message.assistant(f"ok {varied}"))
        await chat.flush()
    return await chat.state()


async def test_each_hook_sees_its_request_and_its_draft() -> None:
    seen: list[tuple[str, int, int]] = []

    async def before_observe(request: ObserveRequest) -> ObserveRequest:
        seen.append(("before_observe", request.messages[0].seq, len(request.messages)))
        return request

    async def after_observe(request: ObserveRequest, draft: Draft) -> Draft:
        seen.append(("after_observe", request.messages[0].seq, len(draft.notes)))
        return draft

    async def before_reflect(request: ReflectRequest) -> ReflectRequest:
        seen.append(("before_reflect", request.segments[0].first_seq, request.generation))
        return request

    async def after_reflect(request: ReflectRequest, draft: Draft) -> Draft:
        seen.append(("after_reflect", request.segments[0].first_seq, len(draft.notes)))
        return draft

    hooks = Hooks(
        before_observe=before_observe,
        after_observe=after_observe,
        before_reflect=before_reflect,
        after_reflect=after_reflect,
    )
    async with Memory.open(
        IN_MEMORY,
        policy=POLICY,
        observer=ScriptedObserver(),
        reflector=ScriptedReflector(),
        hooks=hooks,
    ) as memory:
        state = await talk(memory.conversation("a"))

    assert state.reflected_seq > 0
    assert seen[0][:2] == ("before_observe", 1)
    assert seen[1][:2] == ("after_observe", 1)
    assert ("before_reflect", 1, 1) in seen
    assert "after_reflect" in {name for name, *_ in seen}


async def test_what_is_taken_out_before_is_in_no_request_note_or_loss_report() -> None:
    async def redact(request: ObserveRequest) -> ObserveRequest:
        kept = tuple(
            Message.user(message.full_text.replace("K7Q-2201", "[reference]")).replace(
                seq=message.seq, tokens=message.tokens, created_at=message.created_at
            )
            for message in request.messages
        )
        return replace(request, messages=kept)

    observer = ScriptedObserver()
    hooks = Hooks(before_observe=redact)
    async with Memory.open(IN_MEMORY, policy=POLICY, observer=observer, hooks=hooks) as memory:
        chat = memory.conversation("a")
        await chat.append(
            Message.user("The reference is K7Q-2201, for LH 454 on 2026-05-08. " * 20)
        )
        await chat.flush()
        (segment,) = await chat.observations()
        (raw,) = await chat.messages()

    assert "K7Q-2201" not in str(observer.requests)
    assert "K7Q-2201" not in segment.text
    assert segment.lost
    assert "K7Q-2201" not in segment.lost
    assert "K7Q-2201" in raw.text


async def test_what_is_taken_out_before_reaches_no_extractor_of_facts() -> None:
    async def without_secret(request: ObserveRequest) -> ObserveRequest:
        kept = tuple(m for m in request.messages if "K7Q-2201" not in m.full_text)
        return replace(request, messages=kept)

    clock, model = FixedClock(), ScriptedModel([], otherwise="NOTHING")
    async with Memory.open(
        IN_MEMORY,
        extractor=ModelFacts(model),
        hooks=Hooks(before_observe=without_secret),
        clock=clock,
    ) as memory:
        chat = memory.conversation("a", user="ana")
        await chat.append(Message.user("My code is K7Q-2201."), Message.user("I keep bees."))
        clock.advance(301)
        state = await chat.flush()

    assert state.facts_seq == 2
    assert ["I keep bees." in request.prompt for request in model.requests] == [True]
    assert "K7Q-2201" not in model.requests[0].prompt


async def test_a_veto_keeps_messages_from_the_extractor_of_facts() -> None:
    async def never(_: ObserveRequest) -> None:
        return None

    clock, model = FixedClock(), ScriptedModel([], otherwise="NOTHING")
    async with Memory.open(
        IN_MEMORY, extractor=ModelFacts(model), hooks=Hooks(before_observe=never), clock=clock
    ) as memory:
        chat = memory.conversation("a", user="ana")
        await chat.append(Message.user("I keep bees."))
        clock.advance(301)
        state = await chat.flush()

    assert model.requests == []
    assert state.facts_failure is not None
    assert (state.facts_failure.reason, state.facts_failure.failures) == ("vetoed", 0)


async def test_a_draft_may_be_changed_before_it_is_kept() -> None:
    async def loud(request: ObserveRequest, draft: Draft) -> Draft:
        return replace(draft, notes=tuple(replace(n, text=n.text.upper()) for n in draft.notes))

    async with Memory.open(
        IN_MEMORY, policy=POLICY, observer=ScriptedObserver(), hooks=Hooks(after_observe=loud)
    ) as memory:
        chat = memory.conversation("a")
        await talk(chat, 3)
        segments = await chat.observations()

    assert segments
    assert all(note.text.isupper() for segment in segments for note in segment.notes)


async def test_a_veto_is_no_failure_and_is_asked_again_later_with_growing_pauses() -> None:
    clock, asked = FixedClock(), []

    async def veto(request: ObserveRequest) -> None:
        asked.append(clock.now())

    observer = ScriptedObserver()
    async with Memory.open(
        IN_MEMORY,
        policy=POLICY,
        observer=observer,
        clock=clock,
        hooks=Hooks(before_observe=veto),
    ) as memory:
        chat = memory.conversation("a")
        state = await talk(chat, 10)
        first = len(asked)
        for _ in range(360):
            await chat.flush()
            clock.advance(10)
        later = await chat.state()
        context = await chat.context()

    assert first == 1
    assert 3 <= len(asked) <= 6
    assert observer.requests == []
    assert (state.failures, later.failures, later.observed_seq) == (0, 0, 0)
    assert later.observe_failure is not None
    assert later.observe_failure.reason == "vetoed"
    assert later.observe_failure.skips == len(asked)
    assert later.next_attempt_at is not None
    assert [message.seq for message in context.messages] == list(range(1, 21))


async def test_a_veto_that_ends_is_forgotten() -> None:
    clock, vetoes = FixedClock(), [True]

    async def veto_once(request: ObserveRequest, draft: Draft) -> Draft | None:
        return None if vetoes and vetoes.pop() else draft

    async with Memory.open(
        IN_MEMORY,
        policy=POLICY,
        observer=ScriptedObserver(),
        clock=clock,
        hooks=Hooks(after_observe=veto_once),
    ) as memory:
        chat = memory.conversation("a")
        await talk(chat, 5)
        clock.advance(80)
        await chat.flush()
        state = await chat.state()

    assert state.observed_seq > 0
    assert state.observe_failure is None


async def raising(request: ObserveRequest) -> ObserveRequest:
    raise ValueError("no such customer")


async def hanging(request: ObserveRequest) -> ObserveRequest:
    await asyncio.Event().wait()
    return request


async def nonsense(request: ObserveRequest) -> ObserveRequest:
    return "yes"  # type: ignore[return-value]  # what a careless hook does


@pytest.mark.parametrize(
    ("hook", "reason", "words"),
    [
        (raising, "hook_failed", "before_observe raised ValueError: no such customer"),
        (hanging, "hook_timeout", "before_observe took longer than 0.05 s"),
        (nonsense, "hook_failed", "returned a str"),
    ],
)
async def test_a_hook_that_fails_makes_the_try_fail_and_turns_go_on(
    hook: object, reason: str, words: str
) -> None:
    hooks = Hooks(before_observe=hook, timeout_seconds=0.05)  # type: ignore[arg-type]  # of the table
    observer = ScriptedObserver()
    async with Memory.open(
        IN_MEMORY, policy=POLICY, observer=observer, clock=FixedClock(), hooks=hooks
    ) as memory:
        chat = memory.conversation("a")
        state = await talk(chat, 5)
        context = await chat.context()

    assert state.observe_failure is not None
    assert (state.observe_failure.reason, state.failures) == (reason, 1)
    assert words in state.observe_failure.message
    assert observer.requests == []
    assert len(context.messages) == 10


async def test_a_check_names_the_hook_that_failed_and_not_a_model() -> None:
    hooks = Hooks(before_observe=raising)
    async with Memory.open(
        IN_MEMORY, policy=POLICY, observer=ScriptedObserver(), clock=FixedClock(), hooks=hooks
    ) as memory:
        await talk(memory.conversation("a"), 5)
        (problem,) = await memory.check()

    assert "failed once: hook_failed: hook before_observe raised" in problem.what
    assert "correct the hook" in problem.remedy
    assert "model" not in problem.remedy


async def test_a_vetoed_reflection_leaves_the_observations_and_observing_goes_on() -> None:
    async def veto(request: ReflectRequest) -> None:
        return None

    reflector = ScriptedReflector()
    async with Memory.open(
        IN_MEMORY,
        policy=POLICY,
        observer=ScriptedObserver(),
        reflector=reflector,
        clock=FixedClock(),
        hooks=Hooks(before_reflect=veto),
    ) as memory:
        state = await talk(memory.conversation("a"), 12)

    assert reflector.requests == []
    assert state.reflect_failure is not None
    assert (state.reflect_failure.reason, state.failures) == ("vetoed", 0)
    assert state.observed_seq > 16


async def test_a_hook_that_closes_its_memory_is_refused_at_once() -> None:
    async def close(request: ObserveRequest) -> ObserveRequest:
        await memory.close()
        return request

    hooks = Hooks(before_observe=close, timeout_seconds=300)
    async with Memory.open(IN_MEMORY, policy=POLICY, hooks=hooks) as memory:
        state = await talk(memory.conversation("a"))

    assert state.observe_failure is not None
    assert "close the memory in another task" in state.observe_failure.message


async def test_a_task_that_a_hook_starts_may_close_the_memory() -> None:
    closings: list[asyncio.Task[None]] = []

    async def close(request: ObserveRequest) -> ObserveRequest:
        closings.append(asyncio.create_task(memory.close()))
        return request

    memory = await Memory.open(IN_MEMORY, policy=POLICY, hooks=Hooks(before_observe=close))
    with pytest.raises(Closed):
        await talk(memory.conversation("a"))

    assert closings
    await asyncio.wait_for(closings[0], 60)


@pytest.mark.parametrize("workers", [0, 2])
async def test_a_hook_that_waits_for_the_work_of_its_own_conversation_is_refused_at_once(
    workers: int,
) -> None:
    async def flush(request: ObserveRequest) -> ObserveRequest:
        await memory.conversation("b").flush()
        await memory.conversation("a").flush()
        return request

    hooks = Hooks(before_observe=flush, timeout_seconds=300)
    settings = Settings(workers=workers)
    async with Memory.open(IN_MEMORY, policy=POLICY, hooks=hooks, settings=settings) as memory:
        state = await talk(memory.conversation("a"))

    assert state.observe_failure is not None
    assert "call flush() or end() after it" in state.observe_failure.message


@pytest.mark.parametrize("workers", [0, 2])
async def test_a_context_in_a_hook_does_not_wait_for_the_work_of_the_hook(workers: int) -> None:
    running: list[int] = []
    most = 0

    async def read(request: ObserveRequest) -> ObserveRequest:
        nonlocal most
        running.append(len(request.messages))
        most = max(most, len(running))
        await memory.conversation("a").context()
        running.pop()
        return request

    hooks = Hooks(before_observe=read, timeout_seconds=300)
    policy = POLICY.replace(block_after=1.0, sync_timeout_seconds=300)
    settings = Settings(workers=workers)
    async with Memory.open(IN_MEMORY, policy=policy, hooks=hooks, settings=settings) as memory:
        chat = memory.conversation("a")
        await chat.append(*[Message.user(f"{number}: {WORDS}") for number in range(30)])
        await chat.flush()
        state = await chat.state()

    assert state.observe_failure is None
    assert most == 1
