"""P5 over the wire: whatever a provider does, turns go on and nobody pays for a loop."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from tests.wire.dialects import Reply
from tests.wire.reach import Wire
from tests.wire.servers import Fail, Step

from remanence import Memory, Message, Policy
from remanence.conversation import Conversation
from remanence.errors import ModelError
from remanence.observers.llm import ModelObserver
from remanence.providers import ModelOptions
from remanence.testing import FixedClock
from remanence.testing.models import ScriptedModel

HOUR = 3_600
STEP = 300
POLICY = Policy(
    observe_tokens=60, keep_last=2, tail_tokens=400, tail_keep_tokens=50, facts_idle_seconds=0
)
LOOP = "- the same line again and again\n" * 40
CUT_OFF = "#1 [IMPORTANT Fact] user: sails\n#1 user: and th"

FAILURES: dict[str, tuple[Step, str]] = {
    "401": (Fail(401), "auth"),
    "404": (Fail(404, "no such model"), "unknown_model"),
    "400 too long": (Fail(400, "prompt is too long: 210000 tokens > 200000"), "too_long"),
    "429": (Fail(429), "rate_limit"),
    "429 retry-after": (Fail(429, headers={"retry-after": "1200"}), "rate_limit"),
    "500": (Fail(500), "server"),
    "529": (Fail(529), "overloaded"),
    "reset": ("reset", "connection"),
    "broken off": ("broken off", "connection"),
    "slow header": ("slow header", "timeout"),
    "stalled body": ("stall", "timeout"),
    "invalid JSON": ("garbage", "bad_answer|empty"),
    "empty": (Reply(""), "empty"),
    "refusal": (Reply("I will not do that.", ending="refusal"), "refused"),
    "refusal in words": (Reply("I'm sorry, but I can't help with that."), "malformed"),
    "repetition": (Reply(LOOP), "degenerate"),
    "cut off": (Reply(CUT_OFF, ending="length"), "cut_off"),
}


@dataclass(frozen=True, slots=True)
class Failing:
    """A conversation whose observer's model fails, with the clock that it lives by."""

    chat: Conversation
    memory: Memory
    clock: FixedClock

    async def turn(self, number: int) -> None:
        """One turn of the user, as an application makes it."""
        words = f"seven brave sailors crossed the quiet bay number {number} before the bell rang"
        await self.chat.append(Message.user(words))
        context = await self.chat.context(system="Be brief.")
        assert context.messages[-1].text == words
        await self.chat.append(Message.assistant(f"Noted, that was bay number {number}."))
        await self.chat.flush()


@asynccontextmanager
async def failing(
    spec: str, *, stream: bool, timeout_seconds: float = 10, policy: Policy = POLICY
) -> AsyncIterator[Failing]:
    clock = FixedClock()
    options = ModelOptions(attempts=1, timeout_seconds=timeout_seconds, stream=stream)
    async with Memory.open(
        "sqlite:///:memory:", policy=policy, model=spec, clock=clock, model_options=options
    ) as memory:
        yield Failing(memory.conversation("bay", user="ana"), memory, clock)


@pytest.mark.req("L-11", "L-12", "X-01", "X-02", "X-03")
@pytest.mark.parametrize("name", FAILURES)
async def test_a_failing_provider_costs_no_turn_and_at_most_six_calls_an_hour(
    wire: Wire, name: str
) -> None:
    step, reasons = FAILURES[name]
    wire.server.script(*[step] * 50)
    timeout_seconds = 0.3 if reasons == "timeout" else 10
    async with failing(wire.spec, stream=wire.stream, timeout_seconds=timeout_seconds) as it:
        for number in range(HOUR // STEP):
            await it.turn(number)
            it.clock.advance(STEP)
        state = await it.chat.state()
        context = await it.chat.context(system="Be brief.")
        log = await it.chat.log()
        usage = await it.chat.usage()

    assert (state.observed_seq, state.active_seq, state.reflected_seq) == (0, 0, 0)
    assert state.observe_failure is not None
    assert state.observe_failure.reason in reasons.split("|")
    assert state.next_attempt_at is not None
    assert state.next_attempt_at > state.observe_failure.at
    assert [message.seq for message in context.messages] == list(range(1, 2 * HOUR // STEP + 1))
    assert context.omitted == ()
    assert {entry.kind for entry in log} == {"failed"}
    assert 2 <= len(wire.server.received) <= 6
    assert sum(total.calls for total in usage) == len(wire.server.received)


@pytest.mark.parametrize(
    ("step", "cause"),
    [
        (Fail(500), r"failed, at http://.* \(HTTP 500\)"),
        (Fail(400, "I cannot read 'brave sailors'"), r"rejected the request \(HTTP 400\)"),
        ("reset", r"could not be reached, or broke off, at http://[^/]*"),
        (Reply("I will not do that.", ending="refusal"), "refused to answer"),
    ],
)
async def test_the_log_names_the_cause_of_a_failed_step_but_quotes_nothing(
    whole_wire: Wire, caplog: pytest.LogCaptureFixture, step: Step, cause: str
) -> None:
    whole_wire.server.script(step)
    async with failing(whole_wire.spec, stream=False) as it:
        for number in range(3):
            await it.turn(number)
        state = await it.chat.state()

    assert "://" not in str(state.last_error)
    model = re.escape(whole_wire.spec.partition("@")[0])
    (text,) = [text for text in caplog.messages if text.startswith("observe of")]
    assert re.fullmatch(rf".* failed \(\w+, 1 in a row\); messages stay raw: {model} {cause}", text)


@pytest.mark.req("X-01", "X-02")
async def test_a_connection_that_is_refused_costs_no_turn_and_is_tried_again_later(
    whole_wire: Wire, refusing_port: int
) -> None:
    spec = whole_wire.spec.replace(str(whole_wire.server.port), str(refusing_port))
    async with failing(spec, stream=False) as it:
        for number in range(HOUR // STEP):
            await it.turn(number)
            it.clock.advance(STEP)
        state = await it.chat.state()
        (usage,) = await it.chat.usage()

    assert state.observed_seq == 0
    assert state.observe_failure is not None
    assert state.observe_failure.reason == "connection"
    assert 2 <= usage.calls <= 6
    assert usage.failed_calls == usage.calls


@pytest.mark.parametrize("seconds", [1_200, 7_200])
async def test_the_pause_that_a_provider_asks_for_is_kept(whole_wire: Wire, seconds: int) -> None:
    whole_wire.server.script(*[Fail(429, headers={"retry-after": str(seconds)})] * 9)
    async with failing(whole_wire.spec, stream=False) as it:
        for number in range(3):
            await it.turn(number)
        state = await it.chat.state()
        assert state.next_attempt_at is not None
        wait = (state.next_attempt_at - it.clock.now()).total_seconds()
        it.clock.advance(seconds - 1)
        await it.chat.flush()
        calls_before = len(whole_wire.server.received)
        it.clock.advance(2)
        await it.chat.flush()

    assert wait == seconds
    assert (calls_before, len(whole_wire.server.received)) == (1, 2)


@pytest.mark.req("L-12")
@pytest.mark.parametrize("name", ["500", "reset", "cut off", "repetition"])
async def test_what_failed_is_made_good_by_the_next_try(whole_wire: Wire, name: str) -> None:
    step, _ = FAILURES[name]
    times = 2 if name == "cut off" else 1
    whole_wire.server.script(*[step] * times, Reply("#1 user: sails"))
    async with failing(whole_wire.spec, stream=False) as it:
        for number in range(3):
            await it.turn(number)
        it.clock.advance(800)
        state = await it.chat.flush()
        observations = await it.chat.observations()

    assert state.observed_seq > 0
    assert state.observe_failure is None
    assert state.next_attempt_at is None
    assert observations[0].notes[0].text == "sails"


async def test_the_embedded_observer_takes_over_and_the_model_makes_its_notes_again(
    whole_wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    whole_wire.server.script(*[Fail(503)] * 3, *[Reply("#1 user: sails")] * 40)
    policy = POLICY.replace(fallback_after_failures=2, extract_facts=False)
    async with failing(whole_wire.spec, stream=False, policy=policy) as it:
        for number in range(3):
            await it.turn(number)
        raw = await it.chat.observations()
        for number in range(3, 6):
            it.clock.advance(80)  # past the next try
            await it.turn(number)
        away = await it.chat.observations()
        failure = (await it.chat.state()).observe_failure
        calls_away = len(whole_wire.server.received)
        it.clock.advance(HOUR)
        state = await it.chat.flush()
        back = await it.chat.observations()

    assert raw == ()
    assert away
    assert {segment.made_by for segment in away} == {"stand-in/extractive/1"}
    assert failure is not None
    assert failure.reason in ("server", "overloaded")
    assert calls_away == 3
    effects = [text.split("; ")[1].split(":")[0] for text in caplog.messages if "in a row" in text]
    assert effects[:3] == ["messages stay raw", *["the embedded observer stands in"] * 2]
    assert set(effects[3:]) == {"the stand-in notes stay"}
    assert state.observe_failure is None
    assert [(s.first_seq, s.last_seq) for s in back][: len(away)] == [
        (s.first_seq, s.last_seq) for s in away
    ]
    assert not any(segment.stands_in for segment in back)
    assert back[0].notes[0].text == "sails"


async def test_without_the_setting_messages_stay_raw_while_the_model_is_away(
    whole_wire: Wire,
) -> None:
    whole_wire.server.script(*[Fail(503)] * 9)
    async with failing(whole_wire.spec, stream=False) as it:
        for number in range(6):
            await it.turn(number)
            it.clock.advance(80)

        assert await it.chat.observations() == ()


async def test_a_chain_falls_back_and_leaves_the_failed_model_alone_until_it_has_cooled(
    whole_wire: Wire,
) -> None:
    notes = [Reply(f"#{seq} user: seven sailors crossed the quiet bay") for seq in (1, 2, 3)]
    whole_wire.server.script(Fail(500), *notes)
    spare = f"openai:spare@{whole_wire.server.url}/v1"
    clock = FixedClock()
    async with Memory.open(
        "sqlite:///:memory:",
        policy=POLICY.replace(note_ratio=1.0, extract_facts=False),
        model=(whole_wire.spec, spare),
        model_options=ModelOptions(attempts=1, cooldown_seconds=HOUR),
        clock=clock,
    ) as memory:
        chat = memory.conversation("a")
        for seconds in (0, 0, 2 * HOUR):
            clock.advance(seconds)
            await chat.append(Message.user("seven brave sailors crossed the quiet bay " * 10))
            await chat.flush(everything=True)
        spent = {total.model: (total.calls, total.failed_calls) for total in await chat.usage()}

    asked = [request.body["model"] for request in whole_wire.server.received]
    first = whole_wire.name.partition(":")[2]
    assert asked == [first, "spare", "spare", first]
    assert spent == {whole_wire.name: (2, 1), "openai:spare": (2, 0)}


@pytest.mark.parametrize("thoughts", ["", "<think>Which bay was it"])
async def test_a_model_that_thinks_until_the_output_limit_gets_the_largest_one_from_then_on(
    whole_wire: Wire, thoughts: str
) -> None:
    notes = [Reply("#1 [Fact] user: crossed the bay"), Reply("#3 [Fact] user: heard the bell")]
    whole_wire.server.script(Reply(thoughts, ending="length"), *notes)
    policy = Policy(keep_last=0, extract_facts=False, max_output_tokens=9_000)
    async with failing(whole_wire.spec, stream=False, policy=policy) as it:
        for number in range(2):
            await it.turn(number)
            await it.chat.flush(everything=True)
        observations = await it.chat.observations()

    bodies = [received.body for received in whole_wire.server.received]
    limits = [body.get("max_tokens") or body["max_completion_tokens"] for body in bodies]
    assert [note.text for o in observations for note in o.notes] == [
        "crossed the bay",
        "heard the bell",
    ]
    assert limits[0] < 1_000
    assert limits[1:] == [9_000, 9_000]


async def test_an_observer_with_an_output_limit_of_its_own_never_asks_for_more() -> None:
    model = ScriptedModel([ModelError("cut_off", "nothing but thoughts")])
    observer = ModelObserver(model, max_output_tokens=700)
    policy = Policy(observe_tokens=10, keep_last=0, max_output_tokens=9_000)
    async with Memory.open("sqlite:///:memory:", policy=policy, observer=observer) as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user("We crossed the quiet bay before the morning bell rang."))
        await chat.flush()

    first, second = (request.max_output_tokens for request in model.requests)
    assert first < second == 700
