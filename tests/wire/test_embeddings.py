"""Embedders on a real socket: what is sent, what comes back, and how it fails."""

import pydantic_ai.embeddings.openai  # noqa: F401 - takes long to import
import pytest
from tests.wire.reach import KEY
from tests.wire.servers import Fail, ModelServer

from remanence import Memory, Message, Policy
from remanence.errors import ModelError
from remanence.recall.embedders import open_embedder
from remanence.testing import FixedClock


def named(server: ModelServer) -> str:
    return f"openai:text-embedding-3-small@{server.url}/v1"


async def test_texts_are_sent_together_and_their_vectors_come_in_order(
    server: ModelServer,
) -> None:
    vectors = await open_embedder(named(server)).embed(["banana", "tree", "kiwi"])

    assert [list(vector) for vector in vectors] == [[3, 0, 0], [0, 2, 0], [0, 0, 2]]
    (request,) = server.received
    assert request.body["input"] == ["banana", "tree", "kiwi"]
    assert request.body["model"] == "text-embedding-3-small"
    assert request.headers["authorization"] == f"Bearer {KEY}"


async def test_a_memory_recalls_by_the_vectors_of_a_named_embedder(server: ModelServer) -> None:
    policy = Policy.default(note_ratio=1.0)
    async with Memory.open("sqlite:///:memory:", policy=policy, embedder=named(server)) as memory:
        chat = memory.conversation("a", user="ana")
        await chat.append(Message.user("Mama Clara bakes a banana cake."))
        await memory.facts.save("The tree has seven green leaves", user="ana")
        await chat.flush(everything=True)
        (fact,) = await memory.facts.search("eee", user="ana", limit=1)

    assert fact.summary == "The tree has seven green leaves"
    assert {request.path for request in server.received} == {"/v1/embeddings"}


async def test_a_refused_key_is_told_without_the_key(server: ModelServer) -> None:
    server.script(Fail(401, "bad key {key}", "invalid_api_key"))

    with pytest.raises(ModelError) as caught:
        await open_embedder(named(server)).embed(["text"])

    assert caught.value.reason == "auth"
    assert KEY not in str(caught.value)


async def test_no_request_is_sent_while_the_provider_asks_for_a_pause(server: ModelServer) -> None:
    server.script(Fail(429, headers={"retry-after": "30"}))
    clock = FixedClock()
    embedder = open_embedder(named(server), clock=clock)

    with pytest.raises(ModelError, match="fewer calls"):
        await embedder.embed(["text"])
    with pytest.raises(ModelError, match="asked for a pause: try again in 30 s"):
        await embedder.embed(["text"])
    assert len(server.received) == 1

    clock.advance(30)
    assert len(await embedder.embed(["text"])) == 1


async def test_an_answer_of_another_shape_is_a_bad_answer(server: ModelServer) -> None:
    server.script("other protocol")

    with pytest.raises(ModelError, match="not of its protocol") as caught:
        await open_embedder(named(server)).embed(["text"])

    assert caught.value.reason == "bad_answer"


@pytest.mark.parametrize("source", ["nothing", "nobody:model"])
def test_what_is_no_embedder_is_refused_at_once(source: str) -> None:
    with pytest.raises(ModelError) as caught:
        open_embedder(source)

    assert caught.value.reason == "unknown_model"


def test_a_missing_key_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")

    with pytest.raises(ModelError) as caught:
        open_embedder("openai:text-embedding-3-small")

    assert caught.value.reason == "auth"
