"""A chat with several models, tried in order."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.wire.dialects import Reply
from tests.wire.reach import Wire
from tests.wire.servers import Fail, Step
from tests.wire.talking import ONE_TRY, chat_of, conversing, said

from remanence import Chat
from remanence.chat import calls_tools, open_chat_model
from remanence.errors import InvalidArgument, ModelError
from remanence.testing import FixedClock


class Clocked:
    """A chain on the same server, whose first link is `first:…`, and time that a test moves."""

    def __init__(self, wire: Wire) -> None:
        self.clock = FixedClock()
        self.wire = wire
        model = wire.spec.partition(":")[2]
        self.specs = [wire.spec, f"{wire.provider}:next-{model}"]

    def asked(self) -> list[str]:
        """Which models were asked, in order."""
        models = (received.body["model"] for received in self.wire.server.received)
        return ["next" if model.startswith("next-") else "first" for model in models]


@contextmanager
def scripted(wire: Wire, *steps: Step) -> Iterator[Clocked]:
    wire.server.script(*steps)
    yield Clocked(wire)


async def test_the_next_model_answers_where_the_first_fails_and_both_calls_are_recorded(
    wire: Wire,
) -> None:
    with scripted(wire, Fail(503), Reply("Gate B42.")) as chain:
        async with conversing(clock=chain.clock) as conversation:
            reply = await said(chat_of(conversation, wire, model=chain.specs), wire, "Which gate?")
            spent = {total.model: total for total in await conversation.usage()}

    assert reply.text == "Gate B42."
    assert chain.asked() == ["first", "next"]
    assert reply.usage.model.startswith(f"{wire.provider}:next-")
    assert [total.failed_calls for _, total in sorted(spent.items())] == [1, 0]


async def test_the_names_of_a_chats_models_may_be_one_text(wire: Wire) -> None:
    with scripted(wire, Fail(503), Reply("Gate B42.")) as chain:
        async with conversing(clock=chain.clock) as conversation:
            chat = chat_of(conversation, wire, model=", ".join(chain.specs))
            reply = await said(chat, wire, "Which gate?")

    assert reply.text == "Gate B42."
    assert chain.asked() == ["first", "next"]


async def test_a_model_that_failed_is_left_alone_for_a_while_by_every_chat_that_shares_it(
    wire: Wire,
) -> None:
    with scripted(wire, Fail(503)) as chain:
        async with conversing(clock=chain.clock) as conversation:
            shared = open_chat_model(chain.specs, clock=chain.clock, options=ONE_TRY)
            for text in ("One.", "Two."):
                await said(Chat(conversation, model=shared), wire, text)
            chain.clock.advance(61)
            await said(Chat(conversation, model=shared), wire, "Three.")

    assert chain.asked() == ["first", "next", "next", "first"]


async def test_where_all_fail_the_last_failure_is_told_and_the_first_is_asked_again(
    wire: Wire,
) -> None:
    with scripted(wire, Fail(503), Fail(500)) as chain:
        async with conversing(clock=chain.clock) as conversation:
            chat = chat_of(conversation, wire, model=chain.specs)
            with pytest.raises(ModelError) as failed:
                await said(chat, wire, "Which gate?")
            chain.clock.advance(1)
            await said(chat, wire)

    assert failed.value.reason == "server"
    assert chain.asked() == ["first", "next", "first"]


@pytest.mark.parametrize("trouble", ["broken off", "error event"])
async def test_a_stream_that_gave_text_is_not_begun_again_by_the_next_model(
    stream_wire: Wire, trouble: Step
) -> None:
    with scripted(stream_wire, trouble) as chain:
        async with conversing(clock=chain.clock) as conversation:
            chat = chat_of(conversation, stream_wire, model=chain.specs)
            with pytest.raises(ModelError):
                await said(chat, stream_wire, "Which gate?")
            reply = await said(chat, stream_wire)

    assert chain.asked() == ["first", "next"]
    assert reply.text == "[Fact] noted"


async def test_a_chain_needs_a_model_and_has_tools_where_each_link_can() -> None:
    with pytest.raises(InvalidArgument, match="name at least one model"):
        open_chat_model([], clock=FixedClock())

    assert calls_tools("openai:a", "anthropic:b")
    assert not calls_tools("openai:a, google:b")
    assert not calls_tools("openai:a", "google:b")
