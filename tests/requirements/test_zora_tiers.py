"""REQUIREMENTS 1.2: what the three tiers of the zora preset hold, and how much."""

import asyncio
import functools
import json
from pathlib import Path

import pytest
from tests.requirements.samples import (
    IN_MEMORY,
    condensing,
    draft,
    grown,
    noting,
    scripted,
    seqs,
    turns,
)

from remanence import Memory, Message, Policy, Settings
from remanence.archive.blocks import BlockStore
from remanence.protocols import ExtractRequest
from remanence.testing import ScriptedObserver, ScriptedReflector, check_coverage
from remanence.types import FactDraft

session = functools.partial(scripted, policy=Policy.zora())


def events(count: int, *, start: int = 0) -> list[Message]:
    return turns(count, tokens=350, counter="split", start=start)


@pytest.mark.req("Z-02", "Z-31", "Z-85")
async def test_the_working_tier_is_the_newest_messages_in_full_and_loses_the_oldest_chunk() -> None:
    said = events(120)
    async with session([noting(900)] * 9) as (chat, _, _):
        await grown(chat, said[:85])
        below = await chat.context()
        await grown(chat, said[85:86])
        above = await chat.context()
        await grown(chat, said[86:])
        later = await chat.context()

    assert seqs(below) == list(range(1, 86))
    assert seqs(above)[0] % 20 == 1
    assert seqs(above)[0] > 20
    for context, last in ((above, 86), (later, 120)):
        assert 20_000 <= context.stats.working_tokens <= 30_000
        assert seqs(context)[-1] == last
        texts = [message.text for message in context.messages]
        assert texts == [message.text for message in said[:last]][-len(texts) :]


@pytest.mark.req("Z-03")
async def test_the_session_tier_holds_the_observers_notes_within_ten_thousand_tokens() -> None:
    async with session([noting(1_000)] * 60, [condensing(3_000)] * 9) as (chat, _, reflector):
        sizes: list[int] = []
        for number in range(30):
            await chat.append(*events(10, start=10 * number))
            await chat.flush()
            context = await chat.context()
            sizes.append(context.stats.session_tokens)
        state = await chat.state()
        segments = (await chat.snapshot()).segments

    assert reflector.requests
    assert max(sizes) <= 10_000
    assert max(sizes) > 8_000
    assert {segment.made_by for segment in segments} == {"scripted/1"}
    check_coverage(context, state, segments)


@pytest.mark.req("Z-04", "Z-27", "Z-35", "Z-62", "Z-93")
async def test_the_cross_session_tier_shows_facts_within_five_thousand_tokens_or_as_configured(
    tmp_path: Path,
) -> None:
    keys = {"cross_session_tier_max_tokens": 500}
    file = tmp_path / "zora.json"
    file.write_text(json.dumps({"memory": {"compression": keys}}))

    async def shown(settings: Settings | Path) -> tuple[int, str]:
        async with Memory.open(IN_MEMORY, settings=settings) as memory:
            for number in range(100, 180):
                text = f"Boat {number} of Ana is called Bella and lies at the pier number {number} "
                await memory.facts.save(text + "since the spring of last year, " * 8, user="ana")
            chat = memory.conversation("b", user="ana")
            await chat.append(Message.user("Hello."))
            context = await chat.context(system="You help.")
        return context.stats.cross_session_tokens, json.dumps(context.to_openai())

    by_default, text = await shown(Settings(preset="zora"))
    configured, short = await shown(file)

    assert 4_500 < by_default <= 5_000
    assert 400 < configured <= 500
    assert all("Boat 179 of Ana" in each for each in (text, short))
    assert not any("Boat 100 of Ana" in each for each in (text, short))


@pytest.mark.req("Z-07", "Z-71", "Z-72", "Z-75")
async def test_appending_is_all_that_the_hosts_loop_does_for_notes_to_be_made() -> None:
    async with session([noting(900)] * 9) as (chat, observer, _):
        await chat.append(Message.user("Hello."))
        await chat.flush()  # nothing is planned any more: from here on appending alone signals
        for message in events(70):
            await chat.append(message)
        async with asyncio.timeout(50):  # before anything is looked at without a signal
            await observer.called.wait()

    assert observer.requests[0].messages[0].seq == 1


@pytest.mark.req("Z-48")
async def test_notes_of_one_topic_are_kept_and_shown_in_the_order_that_the_observer_gave() -> None:
    texts = ("rent: the flat costs 900", "rent: paid on the 3rd", "trip: leaves at noon")
    async with session([draft(*texts)] + [noting(900)] * 9) as (chat, _, _):
        await grown(chat, events(100))
        segment = (await chat.observations())[0]
        context = await chat.context()

    shown = next(block.text for block in context.system if block.segment_id == segment.id)
    assert [note.text for note in segment.notes] == list(texts)
    assert segment.text.splitlines() == [f"NOTE {text}" for text in texts]
    assert shown == segment.text


class Facts:
    """An extractor with one fact for each call."""

    name = "scripted/1"

    def __init__(self) -> None:
        self.requests: list[ExtractRequest] = []

    async def extract(self, request: ExtractRequest) -> tuple[FactDraft, ...]:
        self.requests.append(request)
        number = len(self.requests)
        summary = f"Ana rides horse {number}"
        first = request.messages[0].seq
        return (
            FactDraft(
                summary=summary, type="skill", tags=("riding",), first_seq=first, last_seq=first
            ),
        )


@pytest.mark.req("Z-52", "Z-58", "Z-82")
async def test_a_reflection_leaves_items_in_the_structured_memory_and_condensed_notes() -> None:
    extractor = Facts()
    async with Memory.open(
        IN_MEMORY,
        policy=Policy.zora(),
        observer=ScriptedObserver([noting(1_900)] * 12),
        reflector=ScriptedReflector([condensing(2_000)] * 3),
        extractor=extractor,
    ) as memory:
        chat = memory.conversation("a", user="ana")
        await grown(chat, events(190))
        reflections = await chat.reflections()
        observations = await chat.observations()
        items = await memory.facts.list(user="ana")
        found = await memory.facts.search("horse", user="ana")
        by_id = [await memory.facts.get(item.id, user="ana") for item in items]

    [reflection] = reflections
    assert reflection.first_seq == 1
    assert reflection.tokens < reflection.source_tokens / 10
    assert reflection.last_seq + 1 == observations[0].first_seq
    assert len(items) == len(extractor.requests) >= 1
    assert {(item.type, item.tags, item.conversation) for item in items} == {
        ("skill", ("riding",), "a")
    }
    assert set(found) == set(items) == set(by_id)
    assert sum(len(request.messages) for request in extractor.requests) == reflection.last_seq


@pytest.mark.req("Z-22")
async def test_blocks_are_below_zoras_directory_unless_another_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    other = tmp_path / "other"
    async with session([noting(50)]) as (chat, _, _):
        await chat.append(*events(10))
        await chat.flush(everything=True)
        await chat.export_blocks(BlockStore())
        await chat.export_blocks(BlockStore(other))

    for directory in (tmp_path / ".zora" / "memory" / "observations", other):
        assert [file.name for file in directory.iterdir()] == ["session-1.jsonl"]


@pytest.mark.req("Z-21", "Z-25")
async def test_the_blocks_of_a_session_tell_of_its_notes_and_its_end_those_of_all(
    tmp_path: Path,
) -> None:
    settings = Settings(url=IN_MEMORY, preset="zora", blocks_directory=str(tmp_path))
    async with Memory.open(
        settings=settings,
        observer=ScriptedObserver([noting(50)]),
        reflector=ScriptedReflector([condensing(40)]),
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(*events(10))
        await chat.flush(everything=True)
        await chat.export_blocks(BlockStore(tmp_path))
        [note] = await chat.observations()
        await chat.end()
        [gist] = await chat.reflections()

    [own, *_] = written(tmp_path / "a.jsonl")
    [across] = written(tmp_path / "cross-session.jsonl")
    stamp = int(note.created_at.timestamp() * 1_000)
    assert str(own.pop("id")).startswith(f"obs_{stamp}_")
    assert own == {
        "sessionId": "a",
        "createdAt": note.created_at.isoformat(),
        "tier": "session",
        "observations": note.text,
        "sourceMessageRange": [0, 10],
        "estimatedTokens": note.tokens,
    }
    assert (across["tier"], across["observations"]) == ("cross-session", gist.text)


def written(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
