"""A program's own parts of a memory are at work behind the service."""

from collections.abc import Sequence

from tests.server.conftest import POLICY, Speaker, served

from remanence import Hooks, Memory
from remanence.protocols import ModelRequest, ObserveRequest
from remanence.server.app import create_app
from remanence.testing import FixedClock


async def test_embedder_extractor_hooks_and_observer_of_a_program_work_behind_the_service() -> None:
    embedded: list[str] = []
    observed: list[ObserveRequest] = []
    asked: dict[str, list[ModelRequest]] = {"observer": [], "extractor": []}

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        embedded.extend(texts)
        return [[float(len(text)), 1.0] for text in texts]

    async def observer(request: ModelRequest) -> str:
        asked["observer"].append(request)
        return "#1 [IMPORTANT Fact] user: lives in Lisbon"

    async def extractor(request: ModelRequest) -> str:
        asked["extractor"].append(request)
        return "[]"

    async def before(request: ObserveRequest) -> ObserveRequest:
        observed.append(request)
        return request

    speaker = Speaker()
    async with Memory.open(
        "sqlite:///:memory:",
        policy=POLICY,
        clock=FixedClock(),
        observer=observer,
        extractor=extractor,
        embedder=embed,
        hooks=Hooks(before_observe=before),
    ) as memory:
        async with served(create_app(memory, model=speaker)) as client:
            words = f"I live in Lisbon. {'It is a fine town by the sea. ' * 40}"
            await client.post("/v1/conversations/trip/chat", text=words, user="ana")
            await client.post("/v1/conversations/trip/chat", text="Where do I live?", user="ana")
        await memory.conversation("trip", user="ana").end()

    assert observed
    assert "Lisbon" in asked["observer"][0].prompt
    assert asked["extractor"]
    assert "Where do I live?" in embedded
