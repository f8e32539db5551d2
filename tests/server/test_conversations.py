"""What a client does with conversations and facts: begin, name a channel, look, erase."""

import pytest
from tests.server.conftest import Client, Speaker, served

from remanence import Memory
from remanence.errors import ModelError
from remanence.server.app import create_app

CHAT = "/v1/conversations/trip/chat"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_conversation_without_an_id_gets_one_and_goes_on_under_it(
    client: Client, memory: Memory, stream: bool
) -> None:
    if stream:
        name, done = (await client.events("/v1/chat", text="Which gate?", user="ana"))[-1]
        assert name == "done"
    else:
        done = (await client.post("/v1/chat", text="Which gate?", user="ana")).json()
    other = await client.post("/v1/chat", text="Which gate?", user="ana")
    id_ = str(done["conversation"])
    again = await client.post(f"/v1/conversations/{id_}/chat", text="And when?", user="ana")

    assert again.json()["conversation"] == again.headers["x-conversation-id"] == id_
    assert other.json()["conversation"] != id_
    kept = await memory.conversation(id_, user="ana").messages()
    assert [message.text for message in kept] == [
        "Which gate?",
        "Gate B42.",
        "And when?",
        "Gate B42.",
    ]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_that_failed_names_the_conversation_that_it_began(
    client: Client, memory: Memory, speaker: Speaker, stream: bool
) -> None:
    speaker.script.append(ModelError("overloaded", "busy"))
    failed = await client.post("/v1/chat", text="Which gate?", stream=stream)
    id_ = failed.headers["x-conversation-id"]
    answered = await client.post(f"/v1/conversations/{id_}/chat")

    assert failed.status_code == 503
    assert answered.json()["text"] == "Gate B42."


async def test_a_turn_may_bring_an_identity_of_its_own(client: Client, speaker: Speaker) -> None:
    await client.post(CHAT, text="Which gate?", identity="You are Ada.")
    await client.post(CHAT, text="And when?")

    first, second = (request.context.system for request in speaker.requests)
    assert (first[0].kind, first[0].text) == ("identity", "You are Ada.")
    assert [block.kind for block in second] == ["system"]


async def test_the_channel_of_a_turn_reaches_the_model_and_no_later_turn(
    client: Client, speaker: Speaker
) -> None:
    await client.post(CHAT, text="Which gate?", channel="whatsapp")
    await client.post(CHAT, text="And when?")
    long = await client.post(CHAT, text="And where?", channel="x" * 101)

    written, plain = (request.context.volatile for request in speaker.requests)
    assert "whatsapp" in written
    assert "whatsapp" not in plain
    assert (long.status_code, "#/channel" in long.json()["detail"]) == (422, True)


async def test_the_identity_stands_before_the_system_prompt(
    memory: Memory, speaker: Speaker
) -> None:
    app = create_app(memory, model=speaker, identity="You are Zora.", system="You help.")
    async with served(app) as client:
        await client.post(CHAT, text="Which gate?")

    blocks = [block.text for block in speaker.requests[0].context.system]
    assert blocks == ["You are Zora.", "You help."]


async def test_a_conversation_is_erased_for_its_user_alone(client: Client, memory: Memory) -> None:
    await client.post(CHAT, text="My pin is 4711.", user="ana")
    path = "/v1/conversations/trip"
    strangers = [await client.http.delete(f"{path}{query}") for query in ("", "?user=bob")]
    before = await memory.conversation("trip", user="ana").messages()
    deleted = await client.http.delete(f"{path}?user=ana")
    again = await client.http.delete(f"{path}?user=ana")

    assert [answer.status_code for answer in strangers] == [404, 404]
    assert strangers[1].json() == again.json()
    assert len(before) == 2
    assert deleted.status_code == 200
    assert deleted.json()["conversations"] == ["trip"]
    assert again.status_code == 404
    assert await memory.conversation("trip", user="ana").messages() == ()


async def test_facts_of_a_user_are_listed_searched_and_forgotten(
    client: Client, memory: Memory
) -> None:
    old = await memory.facts.save("Ana lives in Lisbon.", user="ana")
    home = await memory.facts.save("Ana lives in Porto.", user="ana", replaces=old.id)
    food = await memory.facts.save("Ana is vegetarian.", user="ana", tags=["food"])
    await memory.facts.save("Bob lives in Oslo.", user="bob")

    async def ids(query: str) -> list[str]:
        found = (await client.get(f"/v1/facts?{query}")).json()["facts"]
        return [fact["id"] for fact in found]

    listed = (await client.get("/v1/facts?user=ana")).json()["facts"]
    assert {fact["summary"] for fact in listed} == {"Ana lives in Porto.", "Ana is vegetarian."}
    assert next(fact for fact in listed if fact["id"] == food.id)["tags"] == ["food"]
    assert await ids("user=ana&query=Porto&limit=1") == [home.id]
    assert set(await ids("user=ana&history=true")) == {old.id, home.id, food.id}
    assert await ids("user=ana&tenant=other") == []
    of_another = await client.http.delete(f"/v1/facts/{food.id}?user=bob")
    forgotten = await client.http.delete(f"/v1/facts/{food.id}?user=ana")
    again = await client.http.delete(f"/v1/facts/{food.id}?user=ana")
    assert [answer.status_code for answer in (of_another, forgotten, again)] == [404, 204, 404]
    assert await ids("user=ana") == [home.id]


@pytest.mark.parametrize(
    "query", ["", "?user=", "?user=ana&limit=0", "?user=a%0Ab", "?user=ana&query="]
)
async def test_a_wrong_query_for_facts_is_a_problem(client: Client, query: str) -> None:
    response = await client.get(f"/v1/facts{query}")

    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"


async def test_an_id_beyond_ascii_is_encoded_in_the_header_as_in_a_path(client: Client) -> None:
    reply = await client.post("/v1/conversations/K%C3%B6ln/chat", text="Which gate?")

    assert reply.json()["conversation"] == "Köln"
    assert reply.headers["x-conversation-id"] == "K%C3%B6ln"
