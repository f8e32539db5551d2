import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Final

from tests.wire.dialects import Reply
from tests.wire.reach import Wire

from remanence.protocols import ModelRequest
from remanence.providers import ModelOptions
from remanence.providers.meter import MeteredModel
from remanence.providers.provider_model import ProviderModel
from remanence.providers.requests import Form, ProviderRequest, ProviderResponse, Tokens
from remanence.providers.spec import parse_spec
from remanence.providers.text_model import TextModel
from remanence.testing import FixedClock
from remanence.types import ConversationRef, Usage

# In the tests' servers a token is a word: 6 of the stable text, 6 of the prompt.


async def test_input_tokens_count_all_input_with_and_without_cache(
    wire: Wire, ask: ModelRequest
) -> None:
    model = wire.open()
    first = (await model.complete(ask)).usage
    second = (await model.complete(replace(ask, prompt="User: it departs at nine"))).usage

    assert first.input_tokens == 12
    assert second.input_tokens == 11
    assert second.cache_read_tokens >= 6


async def test_what_anthropic_wrote_to_and_read_from_its_cache_is_told(
    anthropic_wire: Wire, ask: ModelRequest
) -> None:
    model = anthropic_wire.open()
    first, second = (await model.complete(ask)).usage, (await model.complete(ask)).usage

    assert (first.cache_write_tokens, first.cache_read_tokens) == (6, 0)
    assert (second.cache_write_tokens, second.cache_read_tokens) == (0, 6)


async def test_output_price_and_whose_call_it_was_are_told(wire: Wire, ask: ModelRequest) -> None:
    wire.server.script(Reply("one two three"))
    clock = FixedClock()
    ref = ConversationRef("", "chat-7")
    usage = (await wire.open(clock=clock).complete(replace(ask, conversation=ref))).usage

    assert usage.output_tokens == 3
    assert (usage.conversation, usage.user, usage.purpose) == (ref, "ana", "observe")
    assert (usage.model, usage.at, usage.outcome) == (wire.name, clock.now(), "ok")
    assert usage.duration_seconds > 0
    assert usage.cost_usd is not None


async def test_reading_the_cache_costs_less_than_fresh_input(wire: Wire, ask: ModelRequest) -> None:
    model = wire.open()
    long = replace(ask, stable="word " * 2_000)
    first, second = (await model.complete(long)).usage, (await model.complete(long)).usage

    assert first.input_tokens == second.input_tokens
    assert first.cost_usd is not None
    assert second.cost_usd is not None
    assert second.cost_usd < first.cost_usd


async def test_an_answer_at_the_output_limit_is_not_complete(wire: Wire, ask: ModelRequest) -> None:
    wire.server.script(Reply("- noted and then", ending="length"))

    answer = await wire.open().complete(ask)

    assert answer.text == "- noted and then"
    assert not answer.complete
    assert answer.usage.outcome == "cut_off"


async def test_an_answer_that_repeats_itself_is_handed_on_as_it_is(
    wire: Wire, ask: ModelRequest
) -> None:
    loop = "- the same line\n" * 300
    wire.server.script(Reply(loop))

    answer = await wire.open().complete(ask)

    assert answer.text == loop


class _Stalled:
    """An adapter whose streams report tokens, and then nothing more."""

    form: Final[Form] = "anthropic"
    reasons = ()

    def __init__(self) -> None:
        self.reported = asyncio.Event()

    def check(self) -> None:
        pass

    async def complete(self, request: ProviderRequest) -> ProviderResponse:
        raise AssertionError("it is streamed")

    async def stream(
        self, request: ProviderRequest
    ) -> AsyncGenerator[str | Tokens | ProviderResponse, None]:
        yield Tokens(input_tokens=12, output_tokens=0)
        self.reported.set()
        await asyncio.Event().wait()


async def test_a_streamed_call_that_is_cancelled_has_the_tokens_reported_until_then(
    ask: ModelRequest,
) -> None:
    adapter, clock, options = _Stalled(), FixedClock(), ModelOptions(stream=True)
    provider = ProviderModel(adapter, parse_spec("anthropic:x"), clock=clock, options=options)
    usages: list[Usage] = []

    async def record(_: ModelRequest, usage: Usage) -> None:
        usages.append(usage)

    text_model = TextModel(provider, stream=True)
    model = MeteredModel(text_model, record=record, clock=clock)
    call = asyncio.create_task(model.complete(ask))
    async with asyncio.timeout(60):
        await adapter.reported.wait()
    call.cancel()
    await asyncio.wait([call])

    assert [(usage.outcome, usage.input_tokens) for usage in usages] == [("cancelled", 12)]
