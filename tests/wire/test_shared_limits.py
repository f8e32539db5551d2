"""Limits and budgets of models that processes on one database share."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.postgres import new_database
from tests.wire.dialects import Reply
from tests.wire.servers import Fail, Held, ModelServer

from remanence import Budget, Chat, Memory, Message, Policy, Settings
from remanence.errors import ModelError
from remanence.protocols import ModelRequest
from remanence.providers import ModelSource
from remanence.testing import FixedClock

POLICY = Policy(
    observe_tokens=20, keep_last=0, extract_facts=False, reflect_tokens=(), retry_seconds=1
)
NOTE = "#1 [IMPORTANT Fact] user: takes the early ferry"
MINUTE = timedelta(minutes=1)


@pytest.fixture
def file_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/memory.db"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, file_url: str) -> Iterator[str]:
    if request.param == "sqlite":
        yield file_url
    else:
        with new_database(request.getfixturevalue("postgres")) as database:
            yield database


@asynccontextmanager
async def two_memories(
    url: str, model: ModelSource, clock: FixedClock, **settings: object
) -> AsyncIterator[tuple[Memory, Memory]]:
    """Yield memories on one database, as two processes open them."""
    chosen = Settings(url=url, workers=0, **settings)  # type: ignore[arg-type]  # fields by name
    async with (
        Memory.open(settings=chosen, policy=POLICY, model=model, clock=clock) as one,
        Memory.open(settings=chosen, policy=POLICY, model=model, clock=clock) as two,
    ):
        yield one, two


async def say(memory: Memory, name: str) -> None:
    words = "I take the early ferry to the island and come back with the last one on Sunday"
    await memory.conversation(name).append(Message.user(words), Message.assistant("Noted."))


async def flush_all(*memories: Memory, names: str) -> None:
    """Look at all conversations at once, in turn from one of the memories."""
    async with asyncio.TaskGroup() as group:
        for number, name in enumerate(names):
            group.create_task(memories[number % len(memories)].conversation(name).flush())


async def unobserved(memory: Memory, names: str) -> str:
    states = [await memory.conversation(name).state() for name in names]
    return "".join(n for n, state in zip(names, states, strict=True) if not state.observed_seq)


def asked_to_wait(seconds: int) -> Fail:
    return Fail(429, headers={"retry-after": str(seconds)})


async def test_one_call_finds_out_that_a_provider_asks_for_a_pause_and_nothing_is_lost(
    url: str, server: ModelServer
) -> None:
    clock, names, model = FixedClock(), "abcdef", f"anthropic:claude-haiku-4-5@{server.url}"
    async with two_memories(url, model, clock) as both:
        for name in names:
            await say(both[0], name)
        calls = []
        for window_seconds in (90, 100):
            server.script(asked_to_wait(window_seconds))
            await both[0].conversation("a").flush()
            await flush_all(*both, names=names)
            clock.advance(window_seconds - 1)
            await flush_all(*both, names=names)
            calls.append(len(server.received))
            clock.advance(1)
        test = Held()
        server.script(test)
        testing = asyncio.create_task(both[0].conversation("a").flush())
        async with asyncio.timeout(60):
            await test.reached.wait()
        await flush_all(*both, names=names[1:])
        tested = len(server.received)
        problems = await both[1].check()
        test.gate.set()
        await testing
        clock.advance(5)
        await flush_all(*both, names=names)
        left = await unobserved(both[1], names)

    assert left == ""
    assert calls == [1, 2]
    assert tested == 3
    assert len(server.received) == 2 + len(names)
    assert [p.what for p in problems if "deferred" in p.what]


async def test_a_turn_does_not_wait_for_a_pause_of_background_calls(
    file_url: str, server: ModelServer
) -> None:
    model = f"anthropic:claude-haiku-4-5@{server.url}"
    async with two_memories(file_url, model, FixedClock()) as (one, two):
        await say(one, "a")
        server.script(asked_to_wait(90))
        await one.conversation("a").flush()
        reply = await Chat(two.conversation("a"), model=model).send("And the fare?")
        problems = await two.check()

    assert reply.text
    (pause,) = [p.what for p in problems if "paused" in p.what]
    assert pause == (
        "calls of anthropic:claude-haiku-4-5 are paused until 2026-03-02 09:01:30 UTC, as its "
        "provider asked"
    )


async def test_a_pause_that_a_turn_is_asked_for_holds_back_background_calls(
    file_url: str, server: ModelServer
) -> None:
    model = f"anthropic:claude-haiku-4-5@{server.url}"
    clock = FixedClock()
    async with two_memories(file_url, model, clock) as (one, two):
        await say(one, "a")
        server.script(asked_to_wait(90))
        with pytest.raises(ModelError, match="429"):
            await Chat(one.conversation("b"), model=model).send("And the fare?")
        await two.conversation("a").flush()
        during = len(server.received)
        clock.advance(90)
        await two.conversation("a").flush()
        left = await unobserved(two, "a")

    assert (during, len(server.received), left) == (1, 2, "")


async def test_a_second_call_respects_a_pause_that_the_first_one_had_to_respect(
    file_url: str, server: ModelServer
) -> None:
    paused = f"anthropic:claude-haiku-4-5@{server.url}"
    chain = [paused, f"openai:spare@{server.url}/v1"]
    async with two_memories(file_url, chain, FixedClock()) as (one, two):
        server.script(asked_to_wait(90), Reply("#1 user: takes the early ferry"), Reply("SKIP"))
        with pytest.raises(ModelError, match="429"):
            await Chat(one.conversation("b"), model=paused).send("And the fare?")
        await two.conversation("a").append(
            Message.user("The ferry's ticket is INV-88213 for 7 May.")
        )
        await two.conversation("a").flush(everything=True)
        usage = await two.conversation("a").usage()

    assert [received.body["model"] for received in server.received[1:]] == ["spare"] * 2
    assert [(total.purpose, total.calls) for total in usage] == [("observe", 1), ("repair", 1)]


async def test_a_call_that_waits_until_tomorrow_names_the_date_and_offers_no_retry(
    file_url: str, server: ModelServer
) -> None:
    model = f"anthropic:claude-haiku-4-5@{server.url}"
    async with two_memories(file_url, model, FixedClock()) as (one, two):
        await say(one, "a")
        await say(one, "b")
        server.script(asked_to_wait(86_000))
        await one.conversation("a").flush()
        await two.conversation("b").flush()
        waiting = (await two.conversation("b").state()).observe_failure
        failing = next(problem for problem in await two.check() if "429" in problem.what)
        await two.conversation("a").flush(retry=True)

    assert waiting is not None
    assert "is not called before 2026-03-03 08:53:20 UTC" in waiting.message
    assert "flush" not in failing.remedy
    assert len(server.received) == 1


async def test_a_chain_asks_its_next_model_while_the_first_one_is_paused(
    file_url: str, server: ModelServer
) -> None:
    first, second = "claude-haiku-4-5", "claude-sonnet-5-5"
    chain = [f"anthropic:{name}@{server.url}" for name in (first, second)]
    async with two_memories(file_url, chain, FixedClock()) as both:
        await say(both[0], "a")
        await say(both[0], "b")
        server.script(asked_to_wait(90))
        for memory, name in zip(both, "ab", strict=True):
            await memory.conversation(name).flush()
        waiting = await unobserved(both[0], "ab")

    assert waiting == ""
    assert [request.body["model"] for request in server.received] == [first, second, second]


@pytest.mark.parametrize("limit", ["calls_per_minute", "input_tokens_per_minute"])
async def test_processes_share_the_calls_of_a_minute(file_url: str, limit: str) -> None:
    clock, names = FixedClock(), "abcdefgh"
    called: list[tuple[datetime, int]] = []

    async def observe(request: ModelRequest) -> str:
        called.append((clock.now(), len(request.stable + request.prompt)))
        return NOTE

    limits = {limit: 6 if limit == "calls_per_minute" else 12_000}
    async with two_memories(file_url, observe, clock, **limits) as both:
        for name in names:
            await say(both[0], name)
        began = clock.now()
        while await unobserved(both[0], names):
            await flush_all(*both, names=await unobserved(both[0], names))
            clock.advance(6)
        seconds = (clock.now() - began).total_seconds()

    minutes = [[c for at, c in called if first <= at < first + MINUTE] for first, _ in called]
    assert len(called) == len(names)
    if limit == "calls_per_minute":
        assert max(map(len, minutes)) == 6
        assert seconds < 90
    else:  # four characters to a token, roughly
        assert 6_000 < max(map(sum, minutes)) / 4 < 15_000


async def test_what_waited_for_a_limit_goes_before_what_asks_anew(file_url: str) -> None:
    async def observe(request: ModelRequest) -> str:
        return NOTE

    clock, left = FixedClock(), []
    async with two_memories(file_url, observe, clock, calls_per_minute=1) as both:
        for name in "abc":
            await say(both[0], name)
        await flush_all(both[0], names="a")
        await flush_all(both[1], names="b")
        clock.advance(61)
        for name in "cb":
            await flush_all(both[0], names=name)
            left.append(await unobserved(both[0], "abc"))

    assert left == ["bc", "c"]


async def test_a_call_that_waits_is_no_failure_and_forgets_none(file_url: str) -> None:
    async def fail(request: ModelRequest) -> str:
        raise ModelError("bad_request", "no")

    clock = FixedClock()
    async with two_memories(file_url, fail, clock, calls_per_minute=1) as (one, two):
        await say(one, "a")
        await say(one, "b")
        await one.conversation("a").flush()
        clock.advance(90)
        await two.conversation("b").flush()
        await one.conversation("a").flush()
        failure = (await two.conversation("a").state()).observe_failure
        log = await two.conversation("a").log()

    assert failure is not None
    assert (failure.reason, failure.failures, failure.deferrals) == ("deferred", 1, 1)
    assert [entry.kind for entry in log] == ["failed", "skipped"]


async def test_what_waits_for_a_limit_is_done_after_a_restart_without_a_new_message(
    file_url: str,
) -> None:
    async def observe(request: ModelRequest) -> str:
        return NOTE

    clock, settings = FixedClock(), Settings(url=file_url, calls_per_minute=1)

    def opened() -> AbstractAsyncContextManager[Memory]:
        return Memory.open(settings=settings, policy=POLICY, model=observe, clock=clock)

    async with opened() as memory, asyncio.timeout(60):
        await say(memory, "a")
        await say(memory, "b")
        deferred = await anext(memory.events(after=0, types=["skipped"]))
    clock.advance(90)
    async with opened() as memory, asyncio.timeout(60):
        named = deferred.conversation
        observed = await anext(memory.events(after=0, conversation=named, types=["observed"]))

    assert observed.id > deferred.id


async def test_processes_share_a_budget(url: str) -> None:
    async def observe(request: ModelRequest) -> str:
        return NOTE

    budgets = (Budget(scope="day", hard_tokens=1),)
    async with two_memories(url, observe, FixedClock(), budgets=budgets) as both:
        made_by = []
        for memory, name in zip(both, "ab", strict=True):
            await say(memory, name)
            await memory.conversation(name).flush()
            await memory.usage()
            made_by += [
                s.made_by.split("/")[0] for s in await memory.conversation(name).observations()
            ]

    assert made_by[0] != "extractive"
    assert made_by[1:] == ["extractive"]
