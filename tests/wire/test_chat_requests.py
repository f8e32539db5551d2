"""What a chat sends: the blocks, breakpoints and order of a context, in both protocols."""

import pytest
from tests.wire.dialects import Reply
from tests.wire.reach import KEY, Wire
from tests.wire.talking import SMALL, SYSTEM, chat_of, conversing, said, texts

from remanence import Conversation, Message, Policy
from remanence.testing import ScriptedObserver, ScriptedReflector

IDENTITY = "You speak for the agency."
HEADING = "## Conversation Context (Observations)"
BRAIN = Policy.brain(observe_tokens=400, observe_max_tokens=2_000, note_ratio=0.2)


async def filled(conversation: Conversation, turns: int = 20) -> None:
    """A conversation that memory has worked on."""
    for number in range(turns):
        await conversation.append(
            Message.user(
                f"On day {number} I fly with LH {450 + number} to town {number}, and I book room "
                f"{200 + number} in the Hotel Linde for {90 + number} euros."
            ),
            Message.assistant(f"Noted: LH {450 + number}, room {200 + number}."),
        )
        await conversation.flush()


@pytest.mark.req("B-29", "B-30")
async def test_the_new_message_ends_the_request_and_stands_in_it_once(wire: Wire) -> None:
    async with conversing() as conversation:
        chat = chat_of(conversation, wire)
        wire.server.script(Reply("Frankfurt."))
        await said(chat, wire, "Where does LH 454 start?")
        reply = await said(chat, wire, "And when?")

    body = wire.server.received[-1].body
    assert reply.text == "[Fact] noted"
    assert texts(body) == [SYSTEM, "Where does LH 454 start?", "Frankfurt.", "And when?"]
    assert bool(body.get("stream")) is wire.stream


@pytest.mark.req("B-16", "B-18", "B-19", "B-20", "B-64")
async def test_identity_system_and_notes_come_in_order_before_the_messages(wire: Wire) -> None:
    async with conversing(BRAIN) as conversation:
        await filled(conversation)
        await said(chat_of(conversation, wire, identity=IDENTITY), wire, "What did I book?")
        notes = [segment.text for segment in await conversation.observations()]
        tail = [message.text for message in (await conversation.snapshot()).tail]

    sent = texts(wire.server.received[-1].body)
    prefix = "\n\n".join(sent[: -len(tail)])
    places = [prefix.index(text) for text in (IDENTITY, SYSTEM, HEADING, *notes)]
    assert notes
    assert places == sorted(places)
    assert sent[-len(tail) :][: len(tail) - 1] == tail[:-1]


@pytest.mark.req("B-63", "B-64", "X-11")
async def test_the_last_note_is_marked_and_each_observation_is_a_block(
    anthropic_wire: Wire,
) -> None:
    async with conversing(SMALL) as conversation:
        await filled(conversation)
        await said(chat_of(conversation, anthropic_wire), anthropic_wire, "What did I book?")
        state = await conversation.state()
        notes = [
            segment.text
            for segment in (*await conversation.reflections(), *await conversation.observations())
            if segment.last_seq <= state.active_seq
        ]

    system = anthropic_wire.server.received[-1].body["system"]
    assert [block["text"] for block in system][-len(notes) :] == notes
    assert system[-1]["cache_control"] == {"type": "ephemeral"}
    assert 1 < str(anthropic_wire.server.received[-1].body).count("cache_control") <= 4


@pytest.mark.req("B-65")
async def test_without_notes_the_system_prompt_is_marked(anthropic_wire: Wire) -> None:
    async with conversing() as conversation:
        await said(chat_of(conversation, anthropic_wire), anthropic_wire, "Hello.")

    body = anthropic_wire.server.received[0].body
    assert body["system"] == [
        {"type": "text", "text": SYSTEM, "cache_control": {"type": "ephemeral"}}
    ]


async def test_without_a_system_prompt_the_messages_are_marked_all_the_same(
    anthropic_wire: Wire,
) -> None:
    async with conversing() as conversation:
        await said(chat_of(conversation, anthropic_wire, system=""), anthropic_wire, "Hello.")

    body = anthropic_wire.server.received[0].body
    assert "system" not in body
    assert body["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}


@pytest.mark.req("B-22", "B-64", "B-66", "X-11")
async def test_what_changes_each_turn_follows_the_last_mark(anthropic_wire: Wire) -> None:
    async with conversing(SMALL) as conversation:
        await filled(conversation)
        chat = chat_of(conversation, anthropic_wire, channel="telegram")
        await said(chat, anthropic_wire, "What did I book?")

    content = anthropic_wire.server.received[-1].body["messages"][-1]["content"]
    assert content[-2]["text"] == "What did I book?"
    assert "cache_control" in content[-2]
    assert "The user writes from telegram." in content[-1]["text"]
    assert "Current time:" in content[-1]["text"]
    assert "cache_control" not in content[-1]


@pytest.mark.req("B-22")
async def test_the_web_is_a_channel_without_a_hint(wire: Wire) -> None:
    async with conversing() as conversation:
        await said(chat_of(conversation, wire, channel="web"), wire, "Hello.")

    assert texts(wire.server.received[0].body) == [SYSTEM, "Hello."]


@pytest.mark.req("B-23", "B-24", "B-26")
async def test_the_messages_after_the_notes_are_sent_word_for_word(wire: Wire) -> None:
    async with conversing(BRAIN) as conversation:
        await filled(conversation)
        await conversation.append(Message.user("What did I book?"))
        snapshot = await conversation.snapshot()
        await said(chat_of(conversation, wire), wire)

    sent = texts(wire.server.received[-1].body)
    after_notes = [m for m in snapshot.tail if m.seq > snapshot.state.active_seq]
    assert snapshot.state.active_seq > 0
    assert len(snapshot.tail) >= BRAIN.keep_last
    assert len(snapshot.tail) >= len(after_notes)
    assert [text for text in sent if text in {m.text for m in snapshot.tail}] == [
        message.text for message in snapshot.tail
    ]


@pytest.mark.req("B-25", "B-28")
async def test_before_any_notes_all_messages_are_sent(wire: Wire) -> None:
    async with conversing(Policy.brain()) as conversation:
        before = await conversation.context()
        for number in range(20):
            await conversation.append(Message.user(f"Question {number}"), Message.assistant("Yes."))
        await said(chat_of(conversation, wire), wire, "The last one")

    assert (before.stats.observe_due, before.stats.reflect_due) == (False, False)
    assert len(texts(wire.server.received[0].body)) == 1 + 40 + 1


@pytest.mark.req("B-17", "B-27")
async def test_a_context_tells_that_an_observation_is_due() -> None:
    async with conversing(BRAIN, observer=ScriptedObserver([RuntimeError("down")])) as conversation:
        await conversation.append(Message.user("Which gate?"))
        before = (await conversation.context()).stats
        await conversation.append(Message.user(" ".join(f"word{n}" for n in range(2_000))))
        after = (await conversation.context()).stats

    assert (before.observe_due, after.observe_due) == (False, True)


@pytest.mark.req("B-17", "B-27")
async def test_a_context_tells_that_a_reflection_is_due() -> None:
    policy = BRAIN.replace(reflect_tokens=(60,))
    async with conversing(
        policy, reflector=ScriptedReflector([RuntimeError("down")] * 9)
    ) as conversation:
        before = (await conversation.context()).stats
        await filled(conversation)
        after = (await conversation.context()).stats

    assert (before.reflect_due, after.reflect_due) == (False, True)


async def test_calls_of_a_conversation_name_one_cache_without_telling_its_id(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{wire.server.url}/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", wire.server.url)
    async with conversing() as conversation:
        chat = chat_of(conversation, wire, model=wire.name)
        await said(chat, wire, "Hello.")
        await said(chat, wire, "Hello again.")

    keys = [request.body.get("prompt_cache_key") for request in wire.server.received]
    if wire.provider == "anthropic":
        assert keys == [None, None]
    else:
        assert keys[0] is not None
        assert keys[0] == keys[1]
        assert "trip" not in keys[0]


async def test_a_streamed_answer_asks_for_its_usage(stream_wire: Wire) -> None:
    async with conversing() as conversation:
        await said(chat_of(conversation, stream_wire), stream_wire, "Hello.")

    options = stream_wire.server.received[0].body.get("stream_options")
    assert options == ({"include_usage": True} if stream_wire.provider == "openai" else None)


async def test_without_memory_a_request_is_the_system_text_and_the_messages(wire: Wire) -> None:
    async with conversing(Policy.lango()) as conversation:
        chat = chat_of(conversation, wire)
        await said(chat, wire, "Hello.")
        await said(chat, wire, "Hello again.")

    body = wire.server.received[-1].body
    assert texts(body) == [SYSTEM, "Hello.", "[Fact] noted", "Hello again."]
    assert "cache_control" not in str(body)


async def test_base_url_and_key_come_from_the_providers_own_variables(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", wire.server.url)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{wire.server.url}/v1")
    async with conversing() as conversation:
        await said(chat_of(conversation, wire, model=wire.name), wire, "Hello.")

    assert KEY in str(wire.server.received[0].headers)
