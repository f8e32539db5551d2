import asyncio
import socket
from collections.abc import AsyncGenerator
from datetime import timedelta

import pytest
from tests.server.conftest import Client, Speaker, served

from remanence import Memory, Message
from remanence.chat import BROKEN_OFF, open_chat_model
from remanence.chat.questions import ASK_AGAIN
from remanence.errors import ModelError
from remanence.protocols import ModelRequest
from remanence.providers import ModelOptions
from remanence.server.app import create_app
from remanence.types import ImagePart, TextPart

CHAT = "/v1/conversations/trip/chat"
FORK = "/v1/conversations/trip/fork"


async def kept(memory: Memory, user: str | None = None) -> list[str]:
    trip = memory.conversation("trip", user=user)
    return [message.text for message in await trip.messages()]


async def test_a_turn_is_answered_and_kept(
    client: Client, memory: Memory, speaker: Speaker
) -> None:
    response = await client.post(CHAT, text="Which gate?", user="ana")

    assert response.status_code == 200
    assert (response.json()["text"], response.json()["complete"]) == ("Gate B42.", True)
    assert response.json()["usage"]["cache_read_tokens"] == 80
    assert await kept(memory, "ana") == ["Which gate?", "Gate B42."]
    assert [block.text for block in speaker.requests[0].context.system] == ["You help."]


async def test_an_answer_is_regenerated_and_a_message_edited_in_a_fork(
    client: Client, memory: Memory, speaker: Speaker
) -> None:
    speaker.script.extend(["Gate A1.", "Seat 1A.", "Seat 2B.", "Bus 9."])
    for text in ("Which gate?", "Which seat?"):
        await client.post(CHAT, text=text)

    begun = await client.post(FORK, id="again", last_seq=3)
    again = await client.post("/v1/conversations/again/chat")
    await client.post(FORK, id="edited", last_seq=2)
    await client.post("/v1/conversations/edited/chat", text="Which bus?")

    assert (begun.status_code, begun.json()["id"], begun.json()["last_seq"]) == (201, "again", 3)
    assert again.json()["text"] == "Seat 2B."
    texts = [message.text for message in await memory.conversation("edited").messages()]
    assert texts == ["Which gate?", "Gate A1.", "Which bus?", "Bus 9."]
    assert await kept(memory) == ["Which gate?", "Gate A1.", "Which seat?", "Seat 1A."]


@pytest.mark.parametrize(
    ("path", "body", "status", "detail"),
    [
        ("none/fork?user=ana", {"id": "b", "last_seq": 1}, 404, "no conversation 'none'"),
        ("trip/fork?user=ana", {"id": "b", "last_seq": 3}, 422, "which ends at 2"),
        ("trip/fork?user=ana", {"id": "b", "last_seq": 0}, 422, "#/last_seq"),
        ("trip/fork?user=ana", {"id": "..", "last_seq": 1}, 422, "cannot be a name"),
        (
            "trip/fork?user=ana",
            {"id": "trip", "last_seq": 1},
            409,
            "'trip' already has messages: use another id",
        ),
        ("trip/fork?user=bob", {"id": "b", "last_seq": 1}, 409, "not open to user 'bob'"),
    ],
)
async def test_a_fork_that_is_impossible_is_refused(
    client: Client, memory: Memory, path: str, body: dict[str, object], status: int, detail: str
) -> None:
    trip = memory.conversation("trip", user="ana")
    await trip.append(Message.user("Which gate?"), Message.assistant("Gate B42."))

    response = await client.post(f"/v1/conversations/{path}", **body)

    assert response.status_code == status
    assert detail in response.json()["detail"]
    assert [state.ref.id for state in await memory.conversations()] == ["trip"]


async def test_a_turn_has_the_time_zone_of_the_user(client: Client, memory: Memory) -> None:
    await client.post(CHAT, text="Which gate?", timezone="Asia/Tokyo")
    refused = await client.post(CHAT, text="Which gate?", timezone="Tokyo")

    (question, _) = await memory.conversation("trip").messages()
    assert question.created_at is not None
    assert question.created_at.utcoffset() == timedelta(hours=9)
    assert refused.status_code == 422
    assert "use the name of a time zone, such as Europe/Berlin" in refused.json()["detail"]


async def test_a_turn_is_streamed_as_events(client: Client, memory: Memory) -> None:
    events = await client.events(CHAT, text="Which gate?")

    assert events[:2] == [("text", {"text": "Gate"}), ("text", {"text": " B42."})]
    assert (events[2][0], events[2][1]["text"]) == ("done", "Gate B42.")
    assert await kept(memory) == ["Which gate?", "Gate B42."]


async def test_a_piece_is_sent_before_the_answer_is_complete(
    client: Client, speaker: Speaker
) -> None:
    speaker.gate = asyncio.Event()
    body = {"text": "Which gate?", "stream": True}
    async with asyncio.timeout(60), client.http.stream("POST", CHAT, json=body) as response:
        lines = response.aiter_lines()
        first = [await anext(lines), await anext(lines)]
        speaker.gate.set()
        rest = [line async for line in lines]

    assert first == ["event: text", 'data: {"text": "Gate"}']
    assert "event: done" in rest


async def test_what_was_said_to_a_client_that_goes_away_is_kept_and_marked(
    client: Client, memory: Memory, speaker: Speaker
) -> None:
    speaker.gate = asyncio.Event()
    body = {"text": "Which gate?", "stream": True}
    async with asyncio.timeout(60):
        async with client.http.stream("POST", CHAT, json=body) as response:
            await anext(response.aiter_lines())
        await speaker.broken_off.wait()
    speaker.gate = None
    response = await client.post(CHAT)

    question, said, _, answer = await kept(memory)
    assert (question, said) == ("Which gate?", f"Gate\n{BROKEN_OFF}")
    assert response.json()["text"] == answer == "Gate B42."
    assert speaker.requests[-1].context.messages[-1].role == "user"


@pytest.mark.parametrize("key", [{}, {"idempotency-key": "k-1"}])
async def test_a_text_whose_answer_was_broken_off_is_answered_but_not_kept_again_when_it_is_sent_again(
    client: Client, memory: Memory, speaker: Speaker, key: dict[str, str]
) -> None:
    speaker.gate = asyncio.Event()
    body = {"text": "Which gate?"}
    streamed = client.http.stream("POST", CHAT, json={**body, "stream": True}, headers=key)
    async with asyncio.timeout(60):
        async with streamed as response:
            await anext(response.aiter_lines())
        await speaker.broken_off.wait()
    speaker.gate = None
    again = await client.http.post(CHAT, json=body, headers=key)
    new = await client.http.post(CHAT, json=body)

    said, answer = f"Gate\n{BROKEN_OFF}", "Gate B42."
    assert (again.status_code, again.json()["text"]) == (200, answer)
    assert new.json()["text"] == answer
    first, second, reminder, *rest = await kept(memory)
    assert (first, second, rest) == ("Which gate?", said, [answer, "Which gate?", answer])
    assert reminder == ASK_AGAIN.text


@pytest.mark.parametrize("next_answer", ["14C.", ModelError("overloaded", "busy")])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_broken_off_turn_is_refused_when_it_is_sent_again_after_the_next_one(
    client: Client, memory: Memory, speaker: Speaker, stream: bool, next_answer: str | ModelError
) -> None:
    speaker.gate = asyncio.Event()
    body, headers = {"text": "Which gate?", "stream": True}, {"idempotency-key": "b1"}
    async with asyncio.timeout(60):
        async with client.http.stream("POST", CHAT, json=body, headers=headers) as response:
            await anext(response.aiter_lines())
        await speaker.broken_off.wait()
    speaker.gate = None
    speaker.script.append(next_answer)
    await client.post(CHAT, text="Which seat?")
    before = await kept(memory)
    body["stream"] = stream
    refused = [await client.http.post(CHAT, json=body, headers=headers) for _ in range(2)]
    anew = await client.http.post(CHAT, json=body, headers={"idempotency-key": "b2"})

    assert [response.status_code for response in refused] == [409, 409]
    assert refused[0].json()["type"].endswith("duplicate_message")
    assert "'b1'" in refused[0].json()["detail"]
    assert "under a new id" in refused[0].json()["detail"]
    assert (anew.status_code, len(speaker.requests)) == (200, 3)
    assert await kept(memory) == [*before, "Which gate?", "Gate B42."]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_that_is_sent_again_under_its_key_is_answered_once(
    client: Client, memory: Memory, speaker: Speaker, stream: bool
) -> None:
    body, headers = {"text": "Which gate?", "stream": stream}, {"idempotency-key": "k-1"}
    first = await client.http.post(CHAT, json=body, headers=headers)
    await client.post(CHAT, text="And the seat?")
    again = await client.http.post(CHAT, json={"text": "Which gate?"}, headers=headers)
    other = await client.http.post(CHAT, json={"text": "Which seat?"}, headers=headers)

    assert "Gate B42." in first.text
    assert (again.status_code, again.json()["text"]) == (200, "Gate B42.")
    assert (again.json()["calls"], again.json()["usage"]["cost_usd"]) == ([], 0.0)
    assert other.status_code == 409
    assert len(speaker.requests) == 2
    assert await kept(memory) == ["Which gate?", "Gate B42.", "And the seat?", "Gate B42."]
    assert (await memory.conversation("trip").messages())[0].id == "k-1"


async def test_a_turn_that_failed_is_answered_when_it_is_sent_again_under_its_key(
    client: Client, memory: Memory, speaker: Speaker
) -> None:
    speaker.script.append(ModelError("overloaded", "busy"))
    body, headers = {"text": "Which gate?"}, {"idempotency-key": "k-1"}
    failed = await client.http.post(CHAT, json=body, headers=headers)
    again = await client.http.post(CHAT, json=body, headers=headers)

    assert (failed.status_code, again.json()["text"]) == (503, "Gate B42.")
    assert await kept(memory) == ["Which gate?", "Gate B42."]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_without_a_text_that_is_sent_again_under_its_key_gets_its_answer(
    client: Client, memory: Memory, speaker: Speaker, stream: bool
) -> None:
    speaker.script.append(ModelError("overloaded", "busy"))
    await client.post(CHAT, text="Which gate?")
    headers = {"idempotency-key": "k-1"}
    first = await client.http.post(CHAT, json={"stream": stream}, headers=headers)
    again = await client.http.post(CHAT, json={}, headers=headers)
    other = await client.http.post(CHAT, json={}, headers={"idempotency-key": "k-2"})

    assert "Gate B42." in first.text
    assert (again.status_code, again.json().get("text")) == (200, "Gate B42.")
    assert (other.status_code, len(speaker.requests)) == (422, 2)
    assert await kept(memory) == ["Which gate?", "Gate B42."]


async def test_a_turn_without_a_text_is_answered_once_whatever_is_said_after_it(
    client: Client, memory: Memory, speaker: Speaker
) -> None:
    trip, headers = memory.conversation("trip"), {"idempotency-key": "k-1"}
    await trip.append(Message.user("Which gate?"))
    await client.http.post(CHAT, json={}, headers=headers)
    await trip.append(Message.user("And when?"))
    again = await client.http.post(CHAT, json={}, headers=headers)

    assert (again.status_code, again.json().get("text")) == (200, "Gate B42.")
    assert len(speaker.requests) == 1


async def test_a_turn_without_a_text_under_the_key_of_a_text_asks_no_model(
    client: Client, speaker: Speaker
) -> None:
    speaker.script.append(ModelError("overloaded", "busy"))
    headers = {"idempotency-key": "k-1"}
    await client.http.post(CHAT, json={"text": "Which gate?"}, headers=headers)
    wrong = await client.http.post(CHAT, json={}, headers=headers)

    assert wrong.status_code == 409
    assert "use another id" in wrong.json()["detail"]
    assert len(speaker.requests) == 1


async def test_a_failed_turn_that_the_next_one_answered_is_not_asked_again(
    client: Client, speaker: Speaker
) -> None:
    speaker.script += [ModelError("overloaded", "come back later"), "B42 and 14C.", "Window."]
    path, first = "/v1/conversations/trip/chat", {"idempotency-key": "k-1"}
    body = {"text": "Which gate?"}
    await client.http.post(path, json=body, headers=first)
    await client.post(path, text="And which seat?")
    await client.post(path, text="Window or aisle?")

    again = await client.http.post(path, json=body, headers=first)

    assert again.json()["text"] == "B42 and 14C."
    assert len(speaker.requests) == 3


async def test_a_conversation_that_begins_twice_under_one_key_is_one(
    client: Client, memory: Memory, speaker: Speaker
) -> None:
    body, headers = {"text": "Which gate?"}, {"idempotency-key": "k-1"}
    first = await client.http.post("/v1/chat", json=body, headers=headers)
    again = await client.http.post("/v1/chat", json=body, headers=headers)

    assert first.json()["conversation"] == again.json()["conversation"]
    assert (len(speaker.requests), len(await memory.conversations())) == (1, 1)


async def test_a_turn_may_bring_images_in_a_providers_form(
    client: Client, speaker: Speaker
) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    content = [{"type": "text", "text": "What is it?"}, image]
    await client.post(CHAT, message={"role": "user", "content": content})
    wrong = await client.post(CHAT, message={"role": "assistant", "content": "Hi."})

    (message,) = speaker.requests[0].context.messages
    assert message.text == "What is it?"
    assert [type(part) for part in message.content] == [TextPart, ImagePart]
    assert wrong.status_code == 422


async def test_users_may_begin_conversations_under_the_same_key(client: Client) -> None:
    headers = {"idempotency-key": "1"}
    begun, chats = [], []
    for user in ("ana", "bo", "ana"):
        path = f"/v1/conversations?user={user}"
        begun.append(await client.http.post(path, headers=headers))
        body = {"text": "Which gate?", "user": user}
        chats.append(await client.http.post("/v1/chat", json=body, headers=headers))

    assert [response.status_code for response in (*begun, *chats)] == [201] * 3 + [200] * 3
    ana, bo, again = [response.json()["id"] for response in begun]
    assert ana == again != bo
    assert [response.json()["conversation"] for response in chats] == [ana, bo, ana]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_goes_away_before_the_first_word_ends_the_turn(
    client: Client, memory: Memory, speaker: Speaker, stream: bool
) -> None:
    speaker.gate, speaker.waits_first = asyncio.Event(), True
    async with asyncio.timeout(60):
        asked = asyncio.create_task(client.post(CHAT, text="Which gate?", stream=stream))
        await speaker.asked.wait()
        asked.cancel()
        await speaker.broken_off.wait()
        speaker.gate = None
        again = await client.post(CHAT, text="Which gate?")

    assert again.json()["text"] == "Gate B42."
    assert await kept(memory) == ["Which gate?", "Gate B42."]


async def test_a_stream_is_kept_alive_before_its_first_word(
    memory: Memory, speaker: Speaker
) -> None:
    speaker.gate, speaker.waits_first = asyncio.Event(), True
    app = create_app(memory, model=speaker, keep_alive_seconds=0.01)
    body = {"text": "Which gate?", "stream": True}
    async with (
        asyncio.timeout(60),
        served(app) as client,
        client.http.stream("POST", CHAT, json=body) as response,
    ):
        lines = response.aiter_lines()
        first = [await anext(lines) for _ in range(4)]
        speaker.gate.set()
        rest = [line async for line in lines]

    assert first == [": keep-alive", ""] * 2
    assert "event: done" in rest
    assert response.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    ("reason", "status"), [("auth", 502), ("overloaded", 503), ("timeout", 504), ("refused", 502)]
)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_model_that_fails_is_a_problem_and_the_turn_can_go_on(
    client: Client, memory: Memory, speaker: Speaker, reason: str, status: int, stream: bool
) -> None:
    speaker.script.append(ModelError(reason, f"speaker: {reason}"))
    response = await client.post(CHAT, text="Which gate?", stream=stream)
    again = await client.post(CHAT, text="Which gate?")

    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    assert (response.json()["reason"], response.json()["status"]) == (reason, status)
    assert again.status_code == 200
    assert await kept(memory) == ["Which gate?", "Gate B42."]


async def test_an_error_is_sent_whatever_characters_it_quotes(memory: Memory) -> None:
    async def fail(request: ModelRequest) -> AsyncGenerator[str, None]:
        if "Seat?" in request.prompt:
            yield "12"
        raise ValueError("it wrote \ud83d")

    model = open_chat_model(fail, clock=memory.clock, options=ModelOptions(attempts=1))
    async with served(create_app(memory, model=model)) as client:
        response = await client.post(CHAT, text="Gate?", stream=True)
        events = await client.events(CHAT, text="Seat?")

    assert response.status_code == 502
    assert response.json()["detail"].endswith("raised ValueError: it wrote ?")
    assert [name for name, _ in events] == ["text", "error"]
    assert str(events[1][1]["detail"]).endswith("raised ValueError: it wrote ?")


@pytest.mark.parametrize("stream", [False, True])
async def test_the_address_of_a_model_is_in_the_log_and_not_in_an_answer(
    memory: Memory,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    stream: bool,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "zz-test")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    options = ModelOptions(attempts=1)
    model = open_chat_model(f"openai:m@{address}/v1", clock=memory.clock, options=options)
    async with served(create_app(memory, model=model)) as client:
        response = await client.post(CHAT, text="Which gate?", stream=stream)

    assert response.json()["detail"] == "openai:m could not be reached, or broke off"
    assert f"at {address}" in caplog.text


async def test_a_pause_that_the_model_asks_for_is_passed_on(
    client: Client, speaker: Speaker
) -> None:
    speaker.script.append(ModelError("rate_limit", "slow down", retry_after_seconds=40.2))
    response = await client.post(CHAT, text="Which gate?")

    assert (response.status_code, response.headers["retry-after"]) == (503, "41")


async def test_turns_of_one_conversation_do_not_mix(
    client: Client, memory: Memory, speaker: Speaker
) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(4):
            group.create_task(client.post(CHAT, text=f"Question {number}", stream=number % 2 == 0))

    messages = await memory.conversation("trip").messages()
    assert [message.role for message in messages] == ["user", "assistant"] * 4


async def test_a_server_without_a_model_says_how_to_get_one_and_that_is_no_error(
    memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(create_app(memory)) as client:
        response = await client.post(CHAT, text="Which gate?")

    assert [r for r in caplog.records if r.exc_info or r.levelname == "ERROR"] == []
    assert response.status_code == 503
    assert "--model" in response.json()["detail"]
    assert await kept(memory) == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"txt": "Hello."}, "#/txt"),
        ({"text": 7}, "#/text"),
        ({"text": " "}, "is empty"),
        ({}, "nothing to answer"),
        ({"text": "Hi.", "message": {"role": "user", "content": "Ho."}}, "a text and a message"),
        ({"text": "Hi.", "tenant": "a\nb"}, "is not a name"),
    ],
)
async def test_a_wrong_request_is_a_problem_that_names_what_is_wrong(
    client: Client, memory: Memory, body: dict[str, object], words: str
) -> None:
    response = await client.post(CHAT, **body)

    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"
    assert words in response.json()["detail"]
    assert await kept(memory) == []


async def test_the_model_may_look_into_the_memory_of_the_user_that_a_turn_names(
    memory: Memory, speaker: Speaker
) -> None:
    async with served(create_app(memory, model=speaker, tools=True)) as client:
        await client.post(CHAT, text="Which gate?", user="ana")
        await client.post("/v1/conversations/other/chat", text="Which gate?")

    named, unnamed = speaker.requests
    assert {tool.name for tool in named.tools} >= {"memory_search", "memory_save", "recall"}
    assert unnamed.tools == ()


@pytest.mark.parametrize("stranger", [{"user": "bob"}, {}])
async def test_a_conversation_of_another_user_is_refused_without_naming_that_user(
    client: Client, memory: Memory, speaker: Speaker, stranger: dict[str, object]
) -> None:
    await client.post(CHAT, text="My pin is 4711.", user="ana")
    refused = await client.post(CHAT, text="Which pin?", **stranger)
    streamed = await client.post(CHAT, text="Which pin?", stream=True, **stranger)
    unnamed = await client.post(CHAT, text="Which pin?", user="")

    assert (refused.status_code, streamed.status_code) == (409, 409)
    assert refused.json()["type"].endswith("wrong_user")
    assert "ana" not in refused.text + streamed.text
    assert unnamed.status_code == 422
    assert len(speaker.requests) == 1
    assert await kept(memory, "ana") == ["My pin is 4711.", "Gate B42."]


async def test_turns_of_one_conversation_do_not_mix_whatever_user_they_name(
    client: Client, memory: Memory
) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(4):
            named = {"user": "ana"} if number % 2 else {}
            group.create_task(client.post(CHAT, text=f"Question {number}", **named))

    messages = await memory.conversation("trip", user="ana").messages()
    assert [message.role for message in messages] == ["user", "assistant"] * (len(messages) // 2)
