"""The tables of the source designs, read from the file by another SQLite client."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.requirements.samples import TINY

from remanence import Memory, Message, count_tokens
from remanence.stores import open_store
from remanence.testing import FixedClock, ScriptedObserver, ScriptedReflector
from remanence.testing.store_contract.samples import observation, tape
from remanence.types import Draft, Note, Segment

SEPARATOR = "\n\n---\n\n"


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        yield connection


def read(path: Path, sql: str, *values: object) -> list[dict[str, Any]]:
    with opened(path) as connection:
        return [dict(row) for row in connection.execute(sql, values)]


class Lived:
    """A conversation that was observed, activated and reflected, and what its API says of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.messages: tuple[Message, ...] = ()
        self.live: tuple[Segment, ...] = ()
        self.lock_version = 0
        self.observed_seq = 0
        self.unobserved_tokens = 0


@pytest.fixture
async def lived(tmp_path: Path) -> Lived:
    lived = Lived(tmp_path / "memory.db")
    clock = FixedClock()
    async with Memory.open(
        f"sqlite:///{lived.path}",
        policy=TINY,
        observer=ScriptedObserver(),
        reflector=ScriptedReflector(),
        clock=clock,
    ) as memory:
        for id_ in ("chat", "other"):
            chat = memory.conversation(id_, user="ana", tenant="acme")
            for number in range(30 if id_ == "chat" else 8):
                clock.advance(30)
                await chat.append(Message.user(f"In town {number} I stay at the Hotel Linde."))
                await chat.append(Message.assistant(f"Noted: the Hotel Linde in town {number}."))
                await chat.flush()
        chat = memory.conversation("chat", user="ana", tenant="acme")
        snapshot = await chat.snapshot()
        lived.messages = await chat.messages()
    state = snapshot.state
    lived.live, lived.lock_version = snapshot.segments, state.lock_version
    lived.observed_seq, lived.unobserved_tokens = state.observed_seq, state.unobserved_tokens
    return lived


@pytest.mark.req("B-01", "B-07", "B-08", "L-53", "L-57")
async def test_observations_stay_readable_with_their_source_also_after_a_reflection(
    lived: Lived,
) -> None:
    rows = read(lived.path, "SELECT * FROM observations WHERE conversation_id = 'chat'")

    ids = {message.seq: message.id for message in lived.messages}
    for row in rows:
        assert row["source_message_from"] == ids[row["source_start_index"]]
        assert row["source_message_to"] == ids[row["source_end_index"]]
        assert row["session_key"] == "chat"
        assert row["content"] == row["text"]
        assert json.loads(row["tags"]) == ["Fact"]
        assert row["token_count"] == count_tokens(row["text"], model=TINY.model) > 0
        assert (row["tenant"], row["user"]) == ("acme", "ana")
    made = {segment.id: segment for segment in lived.live if segment.generation == 0}
    for row in rows:
        if row["id"] in made:
            segment = made[row["id"]]
            assert row["token_count"] == segment.tokens
            assert datetime.fromisoformat(row["created_at"]) == segment.created_at
    assert all(row["created_at"].startswith("2026-03-02T09:") for row in rows)
    live = [row["id"] for row in rows if row["superseded"] is None]
    assert live == [segment.id for segment in lived.live if segment.generation == 0]
    assert [row["source_start_index"] - 1 for row in rows] == [
        0,
        *(row["source_end_index"] for row in rows[:-1]),
    ]
    assert len(live) < len(rows)


@pytest.mark.req("B-02", "B-03", "B-09", "B-41")
async def test_the_highest_version_of_the_log_is_the_text_that_is_live(lived: Lived) -> None:
    rows = read(
        lived.path,
        "SELECT * FROM observation_log WHERE conversation_id = 'chat' ORDER BY version DESC",
    )

    assert rows[0]["text"] == SEPARATOR.join(segment.text for segment in lived.live)
    assert rows[0]["token_count"] == sum(segment.tokens for segment in lived.live)
    newest = max(lived.live, key=lambda segment: segment.version)
    assert datetime.fromisoformat(rows[0]["created_at"]) == newest.created_at
    assert rows[0]["version"] == newest.notes_version
    assert rows[0]["lock_version"] == newest.version
    assert [row["version"] for row in rows] == list(range(len(rows), 0, -1))
    times = [row["created_at"] for row in rows]
    assert times == sorted(times, reverse=True)
    assert times[-1] < times[0]
    assert len({row["version"] for row in rows}) == len({row["id"] for row in rows}) == len(rows)


@pytest.mark.req("B-04", "B-60", "L-54", "LS-03")
async def test_a_reflection_names_the_version_of_the_log_that_it_replaces(lived: Lived) -> None:
    rows = read(
        lived.path, "SELECT * FROM reflections WHERE conversation_id = 'chat' ORDER BY version"
    )
    logs = {
        row["version"]: row
        for row in read(lived.path, "SELECT * FROM observation_log WHERE conversation_id = 'chat'")
    }

    for row in rows:
        before, after = logs[row["replaces_version"]], logs[row["version"]]
        assert row["replaces_version"] == row["version"] - 1
        assert after["token_count"] < before["token_count"]
        assert row["output_text"] in after["text"]
        assert row["output_text"] == row["content"] != ""
        assert row["generation"] >= 1
    assert rows


@pytest.mark.req("B-05", "B-10", "B-15", "B-70")
async def test_the_state_of_a_conversation_is_one_row(lived: Lived) -> None:
    [row] = read(lived.path, "SELECT * FROM memory_state WHERE conversation_id = 'chat'")

    assert row["observed_cursor_message_id"] == lived.messages[lived.observed_seq - 1].id
    assert row["unobserved_token_count"] == lived.unobserved_tokens
    assert row["observation_token_count"] == sum(segment.tokens for segment in lived.live)
    assert row["lock_version"] == lived.lock_version
    assert row["last_observer_run"].startswith("2026-03-02T09:")
    assert row["last_reflector_run"].startswith("2026-03-02T09:")


@pytest.mark.req("B-11")
async def test_the_second_of_two_writers_with_the_same_version_changes_nothing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memory.db"
    store = await open_store(f"sqlite:///{path}")
    expected = await tape(store, 2)
    first = await store.commit_observation(expected, observation(1, 2, id="obs_first"))

    second = await store.commit_observation(expected, observation(1, 1, id="obs_second"))

    await store.close()
    [row] = read(path, "SELECT * FROM memory_state")
    assert first is not None
    assert second is None
    assert row["lock_version"] == first.lock_version == expected.lock_version + 1
    assert [r["id"] for r in read(path, "SELECT id FROM observations")] == ["obs_first"]


@pytest.mark.req("L-55")
async def test_a_session_is_named_by_a_plain_string(lived: Lived) -> None:
    rows = read(lived.path, "SELECT DISTINCT session_key, tenant FROM observations")

    assert [(row["session_key"], row["tenant"]) for row in rows] == [
        ("chat", "acme"),
        ("other", "acme"),
    ]


@pytest.mark.req("LS-04")
@pytest.mark.parametrize("column", ["session_key = 'chat'", "created_at > '2026'"])
async def test_looking_up_by_session_and_time_uses_indexes(lived: Lived, column: str) -> None:
    for tenant in ("", "tenant = 'acme' AND "):
        sql = f"EXPLAIN QUERY PLAN SELECT text FROM observations WHERE {tenant}{column}"

        plan = [row["detail"] for row in read(lived.path, sql)]

        assert not [step for step in plan if step.startswith(("SCAN s", "SCAN c"))]


@pytest.mark.req("LS-05")
async def test_observations_are_listed_by_time_of_creation_ascending(lived: Lived) -> None:
    rows = read(lived.path, "SELECT created_at FROM observations WHERE conversation_id = 'chat'")

    times = [row["created_at"] for row in rows]
    assert times == sorted(times)


@pytest.mark.req("B-06", "L-56")
async def test_tables_and_views_come_with_the_first_opening_and_stay_at_the_next(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memory.db"
    schemas = []
    for _ in range(2):
        async with Memory.open(f"sqlite:///{path}"):
            pass
        schemas.append(read(path, "SELECT name, sql FROM sqlite_schema ORDER BY name"))

    assert schemas[0] == schemas[1]
    assert read(path, "SELECT * FROM memory_state") == []


@pytest.mark.req("L-58")
async def test_switching_memory_off_leaves_notes_in_the_tables_and_out_of_the_context(
    lived: Lived,
) -> None:
    count = "SELECT count(*) AS n FROM observations"
    before = read(lived.path, count)

    policy = TINY.replace(enabled=False)
    async with Memory.open(f"sqlite:///{lived.path}", policy=policy) as memory:
        context = await memory.conversation("chat", user="ana", tenant="acme").context(
            system="You help."
        )

    assert [block.text for block in context.system] == ["You help."]
    assert [message.text for message in context.messages] == [m.text for m in lived.messages]
    assert read(lived.path, count) == before


@pytest.mark.req("LS-06", "X-14")
async def test_deleting_a_conversation_empties_its_rows_and_no_others(lived: Lived) -> None:
    async with Memory.open(f"sqlite:///{lived.path}", policy=TINY) as memory:
        assert await memory.conversation("chat", user="ana", tenant="acme").delete()

    for view in ("observations", "observation_log", "memory_state"):
        rows = read(lived.path, f"SELECT DISTINCT conversation_id FROM {view}")
        assert [row["conversation_id"] for row in rows] == ["other"]


@pytest.mark.req("B-01")
async def test_an_observation_without_notes_has_no_tags(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    tagged = Draft(
        notes=(
            Note(text="oat milk", first_seq=2, last_seq=2, tag="Preference"),
            Note(text="take the train", first_seq=2, last_seq=2, tag="Decision"),
        ),
        made_by="scripted/1",
    )
    nothing = Draft(notes=(), made_by="scripted/1", nothing=True)
    observer = ScriptedObserver([nothing, tagged])
    async with Memory.open(f"sqlite:///{path}", policy=TINY, observer=observer) as memory:
        chat = memory.conversation("chat")
        for _ in range(2):
            await chat.append(Message.user(" ".join(["word"] * 60)))
            await chat.flush(everything=True)

    rows = read(path, "SELECT tags FROM observations ORDER BY version")

    tags = [row["tags"] and json.loads(row["tags"]) for row in rows]
    assert tags == [None, ["Preference", "Decision"]]
