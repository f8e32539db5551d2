"""Long real conversations under each preset, with kills and restarts."""

import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from remanence import Conversation, Memory, Policy
from remanence.cli.transcripts import open_transcript
from remanence.testing import check_coverage, check_tiling
from remanence.types import Message
from remanence.wire.validate import anthropic_problems, openai_problems

KILLS = 4
PRESETS = ("default", "lango", "zora", "brain")
LONG = (
    "locomo/conv-43.jsonl",
    "transcripts/coding-meme-ai-generator-with-voting.jsonl",
    "transcripts/airline-agent.jsonl",
)
OTHERS = (("acme", "bob"), ("other", "ana"))
FOREIGN = "Codeword zebra-7731 belongs to somebody else"

Run: TypeAlias = Callable[..., Awaitable[list[list[Any]]]]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "preset"),
    [
        ("locomo/conv-26.jsonl", "default"),
        *(
            pytest.param(name, preset, marks=pytest.mark.slow)
            for name in LONG
            for preset in PRESETS
        ),
    ],
)
async def test_a_real_conversation_that_is_killed_keeps_every_promise(
    tmp_path: Path, data_dir: Path, run_processes: Run, name: str, preset: str
) -> None:
    path, transcript = tmp_path / "memory.db", data_dir / name
    policy = getattr(Policy, preset)(enabled=True)
    said = [entry.message for entry in open_transcript(transcript).entries()]
    url = f"sqlite:///{path}"
    async with Memory.open(url, policy=policy) as memory:
        for tenant, user in OTHERS:
            await memory.facts.save(FOREIGN, user=user, tenant=tenant)

    order = {"path": str(path), "transcript": str(transcript), "preset": preset}
    told = await lives(run_processes, order | {"tenant": "acme", "user": "ana"}, len(said))

    assert told[-1] == ["ended", len(said), len(said) if policy.extract_facts else 0]
    for _, _, cross_session_tokens, context_tokens in told[:-1]:
        assert cross_session_tokens <= policy.facts_budget
        assert context_tokens <= policy.context_tokens
    async with Memory.open(url, policy=policy) as memory:
        await check_conversation(memory.conversation("a", user="ana", tenant="acme"), policy, said)
        if policy.extract_facts:
            await check_facts(memory)
        assert [p for p in await memory.check() if p.level == "error"] == []


async def lives(run: Run, order: dict[str, Any], messages: int) -> list[list[Any]]:
    """What was told in several lives: all but the last one are killed, one of them at its end."""
    chance = random.Random(f"{order['transcript']} {order['preset']}")
    told: list[list[Any]] = []
    for life in range(KILLS):
        left = messages - max((seq for _, seq, *_ in told), default=0)
        # A message may have been appended by a process that died before it told.
        events = chance.randint(1, left // 2) if life < KILLS - 1 else left - 1
        told += await run(
            kill_after=(events, 0.05 * chance.random()), task="replay", processes=1, **order
        )
        assert told[-1][0] == "appended"
    return told + await run(task="replay", processes=1, **order)


async def check_conversation(chat: Conversation, policy: Policy, said: list[Message]) -> None:
    """All is on the tape, accounted for in a valid request, and every tier is in its budget."""
    context = await chat.context(system="You help.")
    state = await chat.flush()
    snapshot = await chat.snapshot()
    kept = await chat.messages()
    assert [(m.id, m.text) for m in kept] == [(m.id, m.text) for m in said]
    check_tiling(snapshot.state, snapshot.segments)
    check_coverage(context, snapshot.state, snapshot.segments)
    assert not anthropic_problems(context.to_anthropic())
    assert not openai_problems(context.to_openai())

    assert state.failures == 0
    newest = max(sum(message.tokens for message in kept[-policy.keep_last :]), 1)
    assert context.stats.working_tokens <= max(policy.tail_tokens, newest)
    assert context.stats.session_tokens <= sum(policy.reflect_tokens) + policy.observe_tokens
    for generation, budget in enumerate(policy.reflect_tokens):
        tokens = sum(s.tokens for s in snapshot.segments if s.generation == generation)
        assert tokens <= budget + policy.observe_tokens * policy.note_ratio


async def check_facts(memory: Memory) -> None:
    """What was said is known in another conversation of this user, and to nobody else."""
    facts = await memory.facts.list(user="ana", tenant="acme")
    assert facts
    query = facts[0].summary
    assert facts[0] in await memory.facts.search(query, user="ana", tenant="acme", limit=20)
    mine = await seen(memory, "acme", "ana", query)
    assert any(fact.summary in mine for fact in facts)
    assert FOREIGN not in mine
    for tenant, user in (*OTHERS, ("other", "bob")):
        theirs = await seen(memory, tenant, user, query)
        assert not [fact.summary for fact in facts if fact.summary in theirs]
        assert (FOREIGN in theirs) == ((tenant, user) in OTHERS)


async def seen(memory: Memory, tenant: str, user: str, query: str) -> str:
    """All that a new conversation of a user shows of what was said in others."""
    chat = memory.conversation(f"{user} looks", user=user, tenant=tenant)
    await chat.append(Message.user("What do you know about a codeword?"))
    found = [hit.snippet for hit in await chat.recall(f"{query} codeword", limit=50)]
    listed = [fact.summary for fact in await memory.facts.list(user=user, tenant=tenant)]
    context = await chat.context(system="You help.", recall=query)
    return "\n".join([*found, *listed, context.to_text()])
