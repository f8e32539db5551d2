"""REQUIREMENTS 2.1: one engine does what each design asks for where they contradict one another."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.builders import drafting
from tests.requirements.samples import condensing, noting, ranges, scripted, turns

from remanence import Memory, Message, Note, Policy, count_tokens
from remanence.archive.blocks import BlockStore
from remanence.conversation import Conversation
from remanence.errors import ConversationNotFound
from remanence.notes import parse_notes
from remanence.protocols import ReflectRequest
from remanence.testing import FixedClock, ScriptedObserver, ScriptedReflector
from remanence.testing.observers import ReflectAnswer
from remanence.types import Draft

PRESETS = {
    "lango": Policy.lango(enabled=True),
    "zora": Policy.zora(),
    "brain": Policy.brain(),
}
COUNTERS = {"lango": "cjk", "zora": "split", "brain": "flat"}
SMALL = {"observe_tokens": 300, "tail_tokens": 600, "tail_keep_tokens": 0}
REFLECT = {"lango": (300, 900), "zora": (300,), "brain": (300,)}


def small(preset: str) -> Policy:
    return PRESETS[preset].replace(
        **SMALL,
        reflect_tokens=REFLECT[preset],
        keep_last=2,
        note_ratio=0.9,
        observe_max_tokens=8_000,
        reflect_min_interval_seconds=0,
        observe_slice="all",
        observe_gauge="unobserved",
        activate="when_observed",
        block_after=None,
        precompute_at=None,
    )


def words(start: int) -> str:
    """Forty words that no other start has."""
    return " ".join(f"w{start * 100 + n}" for n in range(40))


async def grown(chat: Conversation, messages: Sequence[Message]) -> None:
    """Four messages at a time, which are enough for an observation."""
    for start in range(0, len(messages), 4):
        await chat.append(*messages[start : start + 4])
        await chat.flush()


@pytest.mark.req("C-06")
@pytest.mark.parametrize(("preset", "kept"), [("lango", False), ("zora", True), ("brain", True)])
async def test_replaced_notes_are_deleted_or_kept_as_the_design_has_it(
    preset: str, *, kept: bool, tmp_path: Path
) -> None:
    path = tmp_path / "memory.db"
    async with scripted(
        [noting(200)] * 2,
        [condensing(100)],
        policy=small(preset),
        url=f"sqlite:///{path}",
    ) as (chat, _, reflector):
        await grown(chat, turns(8, tokens=100, counter=COUNTERS[preset]))
        replaced = [segment.id for segment in reflector.requests[0].segments]
        found = []
        for id_ in replaced:
            try:
                found.append(len(await chat.source(id_)) > 0)
            except ConversationNotFound:
                found.append(False)
        live = (await chat.snapshot()).segments

    assert ranges(live) == [(1, 8)]
    assert found == [kept, kept]
    with closing(sqlite3.connect(path)) as connection:
        texts = [row[0] for row in connection.execute("SELECT text FROM observations")]
    assert len(texts) == (2 if kept else 0)


@pytest.mark.req("C-08", "C-12")
@pytest.mark.parametrize(
    ("preset", "line"),
    [
        ("lango", "never restart node 1"),
        ("zora", "[2026-03-02 09:00] CRITICAL never restart node 1"),
        ("brain", "[Decision] never restart node 1"),
    ],
)
async def test_notes_and_reflections_are_written_in_the_form_of_the_design(
    preset: str, line: str
) -> None:
    def noted(first_seq: int) -> Note:
        return Note(
            text="never restart node 1",
            first_seq=first_seq,
            last_seq=first_seq,
            observed_at=datetime(2026, 3, 2, 9, tzinfo=UTC),
            priority="CRITICAL",
            tag="Decision",
        )

    filler = drafting(*(f"background {n} {words(n)}" for n in range(9)))

    def condensed(request: ReflectRequest) -> Draft:
        return Draft(notes=(noted(1),), made_by="scripted/1")

    policy = small(preset).replace(reflect_tokens=(300, 900) if preset == "lango" else (300,))
    first = Draft(notes=(noted(1),), made_by="scripted/1")
    answers: list[ReflectAnswer] = [condensed]
    async with scripted([first, filler], answers, policy=policy) as (chat, _, reflector):
        await chat.append(*turns(4, tokens=100, counter=COUNTERS[preset]))
        await chat.flush()
        (observation,) = await chat.observations()
        await chat.append(*turns(8, tokens=200, counter=COUNTERS[preset], start=4))
        await chat.flush()
        (reflection,) = await chat.reflections()

    assert observation.text.splitlines()[-1] == reflection.text.splitlines()[-1] == line
    assert reflector.requests[0].note_format == policy.note_format
    (parsed,) = parse_notes(reflection.text, policy.note_format, first_seq=1, last_seq=12)
    assert parsed.text == "never restart node 1"


@pytest.mark.req("C-08")
async def test_a_reflection_at_the_end_of_a_session_of_zora_gives_facts_too() -> None:
    async with Memory.open("sqlite:///:memory:", policy=Policy.zora()) as memory:
        chat = memory.conversation("a", user="ana")
        await chat.append(Message.user("I live in Lisbon and keep two cats."))
        await chat.end()
        facts = await memory.facts.list(user="ana")

    assert any("Lisbon" in fact.summary for fact in facts)


@pytest.mark.req("B-40", "C-10", "C-17")
async def test_a_source_is_named_by_index_by_half_open_range_and_by_message_ids(
    tmp_path: Path,
) -> None:
    path, store = tmp_path / "memory.db", BlockStore(tmp_path / "blocks")
    async with scripted(
        [noting(100, head="[Fact] ")] * 2, policy=Policy.brain(), url=f"sqlite:///{path}"
    ) as (
        chat,
        _,
        _,
    ):
        await chat.append(*turns(3, tokens=100, counter="flat"))
        await chat.flush(everything=True)
        await chat.append(*turns(2, tokens=100, counter="flat", start=3))
        await chat.flush(everything=True)
        ids = [message.id for message in await chat.messages()]
        await chat.export_blocks(store)
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT session_key, source_start_index, source_end_index, source_message_from, "
            "source_message_to FROM observations ORDER BY version"
        ).fetchall()
        connection.execute("PRAGMA foreign_keys = ON")
        orphans = connection.execute("PRAGMA foreign_key_check").fetchall()
        keys = {
            table: [row[2] for row in connection.execute(f"PRAGMA foreign_key_list({table})")]
            for table in ("messages", "segments", "states")
        }
    (file,) = (tmp_path / "blocks").rglob("*.jsonl")
    blocks = [json.loads(line) for line in file.read_text().splitlines()]

    assert rows == [
        ("session-1", 1, 3, ids[0], ids[2]),
        ("session-1", 4, 5, ids[3], ids[4]),
    ]
    assert [(block["sessionId"], block["sourceMessageRange"]) for block in blocks] == [
        ("session-1", [0, 3]),
        ("session-1", [3, 5]),
    ]
    assert orphans == []
    assert keys == {table: ["conversations"] for table in keys}


@pytest.mark.req("C-11")
def test_the_three_rules_of_counting_differ_where_their_designs_do() -> None:
    latin, hangul = "x" * 2_100, "메" * 600

    def counted(content: str | Message) -> dict[str, int]:
        return {name: count_tokens(content, model=name) for name in ("cjk", "split", "flat")}

    assert counted(latin) == {"cjk": 525, "split": 600, "flat": 525}
    assert counted(hangul) == {"cjk": 300, "split": 172, "flat": 150}
    assert counted(latin + hangul) == {"cjk": 825, "split": 772, "flat": 675}
    assert counted(Message.user(latin)) == {"cjk": 529, "split": 600, "flat": 525}
    result = counted(Message.tool("c", latin))
    assert result["split"] == 700
    assert result["flat"] == 525
    assert 529 <= result["cjk"] <= 535
    assert count_tokens("x" * 5, model="flat") == 2
    assert {name: policy.token_counter for name, policy in PRESETS.items()} == COUNTERS


@pytest.mark.req("C-18")
@pytest.mark.parametrize(
    ("preset", "kinds", "volatile"),
    [
        ("lango", ["system", "knowledge", "heading", "observation", "observation"], False),
        (
            "zora",
            ["identity", "system", "knowledge", "facts", "heading", "observation", "observation"],
            False,
        ),
        (
            "brain",
            ["identity", "system", "knowledge", "heading", "observation", "observation"],
            True,
        ),
    ],
)
async def test_notes_stand_behind_what_rests_and_before_what_changes_each_turn(
    preset: str, kinds: list[str], *, volatile: bool
) -> None:
    policy = small(preset).replace(reflect_tokens=())
    async with Memory.open(
        "sqlite:///:memory:",
        policy=policy,
        observer=ScriptedObserver([noting(50)] * 2),
        reflector=ScriptedReflector(),
        clock=FixedClock(),
    ) as memory:
        user = None if preset == "lango" else "ana"
        if user:
            await memory.facts.save("Ana keeps bees", user=user)
        chat = memory.conversation("c", user=user)
        ferry = Message.user("The ferry to Almada leaves from pier seven at nine. ".ljust(396, "x"))
        await grown(chat, [ferry, *turns(7, tokens=100, counter=COUNTERS[preset])])
        await chat.append(Message.user("How are my bees?"))
        context = await chat.context(
            identity="" if preset == "lango" else "I am.",
            system="You help.",
            knowledge=["The manual."],
        )
        recalled = await chat.context(recall="Almada ferry")
    request = context.to_anthropic()

    assert [block.kind for block in context.system] == kinds
    marked = [b["text"] for b in request["system"] if "cache_control" in b]
    assert "notes-of" in marked[-1]
    assert marked[-1] == request["system"][-1]["text"]
    newest = "".join(part["text"] for part in request["messages"][-1]["content"])
    assert "leaves from pier seven" in recalled.volatile
    assert not any("pier seven" in block.text for block in recalled.system)
    assert ("Ana keeps bees" in newest) is volatile


@pytest.mark.req("C-29")
async def test_notes_are_listed_by_their_place_on_the_tape_and_a_session_by_its_key(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memory.db"
    policy = small("lango").replace(reflect_tokens=(5_000, 5_000))
    url = f"sqlite:///{path}"
    async with scripted([noting(50)] * 12, policy=policy, url=url) as (chat, _, _):
        await grown(chat, turns(48, tokens=100, counter="cjk"))
        listed = await chat.observations()
        context = await chat.context()
    with closing(sqlite3.connect(path)) as connection:
        keys = connection.execute(
            "SELECT DISTINCT session_key, typeof(session_key) FROM observations"
        ).fetchall()

    shown = [block.segment_id for block in context.system if block.kind == "observation"]
    assert ranges(listed) == [(first, first + 3) for first in range(1, 48, 4)]
    assert [note.source_tokens for note in listed] == [400] * 12  # by characters, with the frames
    assert shown == [segment.id for segment in reversed(listed)]
    assert keys == [("session-1", "text")]
