"""Errors of the host's code that are no `Exception` count as failures, like all others."""

import asyncio
from collections.abc import Sequence
from typing import cast

from remanence import Memory, Message, Policy
from remanence.engine.hooks import Hooks
from remanence.protocols import ExtractRequest, ModelRequest, ObserveRequest
from remanence.recall.indexer import MAX_TRIES
from remanence.testing import ScriptedObserver
from remanence.types import Draft, FactDraft, FactType, MemoryState

POLICY = Policy(observe_tokens=100, tail_tokens=400, tail_keep_tokens=50, keep_last=1)
WORDS = "the quick brown fox jumps over a lazy dog near the old river bank at dawn "


class Panic(BaseException):
    """An error such as tokenizers in Rust and test frameworks raise."""


class PanickingObserver(ScriptedObserver):
    """Panics in conversation `a`."""

    async def observe(self, request: ObserveRequest) -> Draft:
        if request.conversation.id == "a":
            raise Panic("index out of bounds")
        return await super().observe(request)


class PanickingExtractor:
    """Finds no facts, as it panics."""

    name = "panicking/1"

    async def extract(self, request: ExtractRequest) -> tuple[FactDraft, ...]:
        raise Panic("index out of bounds")


class RumourExtractor:
    """Gives its fact an unknown type."""

    name = "rumours/1"

    async def extract(self, request: ExtractRequest) -> tuple[FactDraft, ...]:
        return (FactDraft(summary="Likes tea", type=cast("FactType", "rumour")),)


async def panicking_model(request: ModelRequest) -> str:
    raise Panic("index out of bounds")


async def observe_all(memory: Memory, name: str) -> MemoryState:
    """Append a few turns to a conversation, and wait for its background work."""
    chat = memory.conversation(name, user="ana")
    await chat.append(*(Message.user(f"Question {number}: {WORDS}") for number in range(12)))
    async with asyncio.timeout(60):
        return await chat.flush(everything=True)


async def test_a_panicking_observer_fails_and_other_conversations_are_observed() -> None:
    async with Memory.open(
        "sqlite:///:memory:", policy=POLICY, observer=PanickingObserver()
    ) as memory:
        failed = await observe_all(memory, "a")
        other = await observe_all(memory, "b")

    assert failed.failures == 1
    assert "Panic: index out of bounds" in str(failed.last_error)
    assert other.unobserved_tokens == 0


async def test_a_panicking_extractor_fails_and_the_notes_are_written() -> None:
    async with Memory.open(
        "sqlite:///:memory:", policy=POLICY, extractor=PanickingExtractor()
    ) as memory:
        state = await observe_all(memory, "a")

    assert state.facts_failure is not None
    assert "Panic: index out of bounds" in state.facts_failure.message
    assert state.unobserved_tokens == 0


async def test_a_fact_of_an_unknown_type_is_refused_by_name() -> None:
    async with Memory.open(
        "sqlite:///:memory:", policy=POLICY, extractor=RumourExtractor()
    ) as memory:
        state = await observe_all(memory, "a")
        facts = await memory.facts.list(user="ana")

    assert facts == ()
    assert state.facts_failure is not None
    assert "rumours/1 returned a fact whose type='rumour'" in state.facts_failure.message


async def test_a_panicking_hook_is_named_in_the_failure() -> None:
    async def panic(request: ObserveRequest) -> ObserveRequest:
        raise Panic("index out of bounds")

    async with Memory.open(
        "sqlite:///:memory:", policy=POLICY, hooks=Hooks(before_observe=panic)
    ) as memory:
        state = await observe_all(memory, "a")

    assert state.observe_failure is not None
    assert state.observe_failure.reason == "hook_failed"
    assert "before_observe" in state.observe_failure.message


async def test_a_panicking_model_hands_its_request_to_the_next_of_its_chain() -> None:
    asked: list[str] = []

    async def second(request: ModelRequest) -> str:
        asked.append(request.purpose)
        return "* [1] The fox jumps."

    async with Memory.open(
        "sqlite:///:memory:", policy=POLICY, observer=[panicking_model, second]
    ) as memory:
        await observe_all(memory, "a")

    assert "observe" in asked


async def test_a_text_at_which_the_embedder_panics_blocks_the_others_for_some_tries_only() -> None:
    made: list[str] = []

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        if any("Question 3" in text for text in texts):
            raise Panic("index out of bounds")
        made.extend(texts)
        return [[1.0, 0.0] for _ in texts]

    async with Memory.open("sqlite:///:memory:", policy=POLICY, embedder=embed) as memory:
        for _ in range(MAX_TRIES):
            await observe_all(memory, "a")

    assert any("Question 4" in text for text in made)


async def test_a_recall_whose_embedder_panics_finds_words() -> None:
    async def embed(texts: Sequence[str]) -> list[list[float]]:
        raise Panic("index out of bounds")

    async with Memory.open("sqlite:///:memory:", policy=POLICY, embedder=embed) as memory:
        await observe_all(memory, "a")
        hits = await memory.conversation("a", user="ana").recall("fox")

    assert hits
