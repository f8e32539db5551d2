import asyncio
from importlib import metadata
from pathlib import Path

import apsw
import pytest

from remanence.errors import NewerSchema
from remanence.protocols import Store
from remanence.stores import open_store
from remanence.stores.migrate import Migration, due, load
from remanence.testing import FixedClock
from remanence.testing.store_contract.samples import (
    ANA,
    OTHER,
    REF,
    START,
    active,
    expect_state,
    fact,
    new,
    observation,
    reflection,
    said_again,
    user,
)
from remanence.types import Erasure

BACKEND = "remanence.stores.sqlite"
STEPS = tuple(Migration(number=n, name=f"step {n}", sql="") for n in (1, 2, 3))


def url(path: Path) -> str:
    return f"sqlite:///{path}"


def rows(path: Path, sql: str) -> list[tuple[object, ...]]:
    with apsw.Connection(str(path)) as connection:
        found: list[tuple[object, ...]] = connection.execute(sql).fetchall()
    connection.close()
    return found


@pytest.mark.parametrize(
    ("applied", "numbers"), [((), [1, 2, 3]), ((1,), [2, 3]), ((1, 2, 3), []), ((1, 3), [2])]
)
def test_what_is_not_applied_is_due_in_order(applied: tuple[int, ...], numbers: list[int]) -> None:
    assert [step.number for step in due(STEPS, applied, database="x")] == numbers


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_each_step_has_a_number_of_its_own(backend: str) -> None:
    steps = load(f"remanence.stores.{backend}")

    assert [step.number for step in steps] == list(range(1, len(steps) + 1))


def test_a_later_schema_names_both_versions_and_a_remedy() -> None:
    with pytest.raises(NewerSchema, match=r"'memory\.db'.* 7.* 3: install a newer remanence"):
        due(STEPS, (1, 2, 3, 7), database="'memory.db'")


def test_migrations_are_numbered_from_one_on_without_a_gap() -> None:
    steps = load(BACKEND)

    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    assert all(step.name and step.sql for step in steps)


async def test_each_migration_is_recorded_with_its_time_and_version(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    await (await open_store(url(path))).close()

    recorded = rows(path, "SELECT number, name, version FROM schema_migrations ORDER BY number")

    version = metadata.version("remanence")
    assert recorded == [(step.number, step.name, version) for step in load(BACKEND)]


async def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    query = (
        "SELECT * FROM schema_migrations UNION ALL SELECT rootpage, name, sql, 0 FROM sqlite_schema"
    )
    contents = []
    for _ in range(2):
        await (await open_store(url(path))).close()
        contents.append(rows(path, query))

    assert contents[0] == contents[1]


async def test_a_new_database_is_in_wal_mode_and_bears_our_mark(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    await (await open_store(url(path))).close()

    assert rows(path, "PRAGMA journal_mode") == [("wal",)]
    assert rows(path, "PRAGMA application_id") == [(int.from_bytes(b"rema"),)]


async def test_many_that_open_a_new_file_at_once_all_succeed(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with asyncio.TaskGroup() as group:
        opening = [group.create_task(open_store(url(path))) for _ in range(8)]
    stores = [task.result() for task in opening]

    appended = [await store.append(REF, [user("x")], user=None) for store in stores]

    assert [state.last_seq for _, state in appended] == list(range(1, 9))
    assert len(rows(path, "SELECT * FROM schema_migrations")) == len(load(BACKEND))
    for store in stores:
        await store.close()


async def test_a_migration_that_fails_leaves_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with apsw.Connection(str(path)) as connection:
        connection.execute("CREATE TABLE t (n)")
        connection.execute("DROP TABLE t")
    connection.close()

    with pytest.raises(Exception, match="no space"):
        await open_store(url(path), pragmas={"max_page_count": 5})

    assert rows(path, "SELECT name FROM sqlite_schema") == []
    await (await open_store(url(path))).close()


async def test_a_row_of_each_table_goes_with_its_conversation(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store: Store = await open_store(url(path))
    await active(store, [(1, 2)])
    tables = ("conversations", "states", "messages", "segments", "journal")
    count = " UNION ALL ".join(f"SELECT count(*) > 0 FROM {table}" for table in tables)
    filled = rows(path, count)

    await store.delete(REF)

    assert filled == [(1,)] * len(tables)
    assert rows(path, count) == [(0,)] * len(tables)
    await store.close()


async def test_names_that_users_know_are_views(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    await (await open_store(url(path))).close()

    views = {name for (name,) in rows(path, "SELECT name FROM sqlite_schema WHERE type = 'view'")}

    assert views == {"observations", "observation_log", "reflections", "memory_state"}


async def test_times_are_kept_as_readable_text(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = await open_store(url(path))
    await store.append(REF, [user("x").replace(created_at=START)], user=None)
    await store.close()

    assert rows(path, "SELECT created_at FROM messages") == [("2024-05-17T09:30:00.000000+00:00",)]


async def test_the_log_of_an_older_file_is_given_the_end_of_its_tape(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = await open_store(url(path), clock=FixedClock(START))
    await active(store, [(1, 2), (3, 4)])
    log = await store.log(REF)
    await store.close()
    undo_views(path)

    store = await open_store(url(path))

    assert await store.log(REF) == log
    assert [entry.last_seq for entry in log] == [4] * len(log)
    await store.close()


async def test_segments_of_an_older_file_have_no_dropped_lines(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = await open_store(url(path), clock=FixedClock(START))
    await active(store, [(1, 2)])
    segments = await store.segments(REF, live=True)
    await store.close()
    undo_dropped_lines(path)

    store = await open_store(url(path))

    assert await store.segments(REF, live=True) == segments
    assert segments[0].dropped == ()
    await store.close()


def undo_dropped_lines(path: Path) -> None:
    """Make a file what it was before dropped lines were kept."""
    with apsw.Connection(str(path)) as connection:
        connection.execute("ALTER TABLE segments DROP COLUMN dropped")
        connection.execute("DELETE FROM schema_migrations WHERE name = 'dropped_lines'")
    connection.close()


def undo_views(path: Path) -> None:
    """Make a file what it was before the views."""
    with apsw.Connection(str(path)) as connection:
        for view in ("observations", "observation_log", "reflections", "memory_state"):
            connection.execute(f"DROP VIEW {view}")
        connection.execute("DROP INDEX segments_by_time")
        connection.execute("ALTER TABLE journal DROP COLUMN last_seq")
        connection.execute("DELETE FROM schema_migrations WHERE name = 'views'")
    connection.close()


async def test_notes_of_an_older_file_are_numbered_from_one_on(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = await open_store(url(path), clock=FixedClock(START))
    await active(store, [(1, 2), (3, 4), (5, 6)])
    segments = await store.segments(REF, live=True)
    await store.close()
    undo_notes_versions(path)

    store = await open_store(url(path))

    assert await store.segments(REF, live=True) == segments
    assert [segment.notes_version for segment in segments] == [1, 2, 3]
    await store.close()


def undo_notes_versions(path: Path) -> None:
    """Make a file what it was before notes had versions of their own."""
    views = ("observations", "observation_log", "reflections")
    with apsw.Connection(str(path)) as connection:
        for view in views:
            connection.execute(f"DROP VIEW {view}")
        connection.execute("DROP INDEX segments_by_version")
        connection.execute("ALTER TABLE segments DROP COLUMN notes_version")
        for view in views:
            connection.execute(f"CREATE VIEW {view} AS SELECT 1")
        connection.execute("DELETE FROM schema_migrations WHERE name = 'notes_versions'")
    connection.close()


async def test_a_fact_of_an_older_file_is_kept_and_can_be_repeated(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = await open_store(url(path), clock=FixedClock(START))
    await active(store, [(1, 2)])
    known = fact("f1", "keeps bees", conversation=REF.id, first_seq=1, last_seq=1)
    await store.save_facts(new(known))
    await store.close()
    undo_fact_repetitions(path)

    store = await open_store(url(path))

    assert await store.facts(ANA) == (known,)
    again = fact("f2", "keeps bees", conversation=OTHER.id)
    await store.save_facts(said_again("f1", again))
    await store.delete(REF)
    assert await store.facts(ANA) == (again,)
    await store.close()


def undo_fact_repetitions(path: Path) -> None:
    """Make a file what it was before repetitions of facts were kept."""
    with apsw.Connection(str(path)) as connection:
        connection.execute("DROP TABLE fact_repetitions")
        connection.execute("DELETE FROM schema_migrations WHERE name = 'fact_repetitions'")
    connection.close()


async def test_wishes_and_saved_facts_of_an_older_file_have_a_worth(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = await open_store(url(path), clock=FixedClock(START))
    wish = fact("f1", "answer in Dutch", tags=("instruction", "wish"))
    saved = fact("f3", "keeps bees", made_by="saved", tags=("wish",))
    await store.save_facts(new(wish, fact("f2", "likes figs"), saved))
    await store.close()
    undo_worth_of_facts(path)

    store = await open_store(url(path))

    assert await store.lasting_facts(ANA, limit=9) == (saved, wish)
    await store.close()


def undo_worth_of_facts(path: Path) -> None:
    """Make a file what it was before facts had a worth."""
    with apsw.Connection(str(path)) as connection:
        connection.execute("DROP INDEX facts_by_worth")
        connection.execute("ALTER TABLE facts DROP COLUMN worth")
        connection.execute("DELETE FROM schema_migrations WHERE name = 'worth_of_facts'")
    connection.close()


async def test_notes_whose_reflection_was_erased_are_replaced_ones_in_an_older_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memory.db"
    store = await open_store(url(path), clock=FixedClock(START))
    state = await active(store, [(1, 2), (3, 4)])
    inner = reflection(1, 2)
    state = expect_state(await store.commit_reflection(state, inner, ["g0-1-2"]))
    outer = reflection(1, 4, generation=2)
    state = expect_state(await store.commit_reflection(state, outer, ["g1-1-2", "g0-3-4"]))
    anew = observation(3, 4, id="anew", generation=2)
    erasure = Erasure(tombstones=(), segments=("g0-3-4", outer.id), remade=(inner, anew))
    await store.forget(state, erasure, at=START)
    await store.close()
    undo_replaced_by_erased(path)

    store = await open_store(url(path))
    await store.close()

    assert rows(path, "SELECT id, superseded FROM observations") == [("g0-1-2", 5)]
    assert rows(path, "SELECT id, superseded FROM reflections") == [
        ("g1-1-2", None),
        ("anew", None),
    ]


def undo_replaced_by_erased(path: Path) -> None:
    """Make a file what it was before replaced segments outlived the erased one that replaced them."""
    with apsw.Connection(str(path)) as connection:
        for view in ("observations", "reflections"):
            connection.execute(f"DROP VIEW {view}")
            connection.execute(f"CREATE VIEW {view} AS SELECT 1")
        connection.execute("DELETE FROM schema_migrations WHERE name = 'replaced_by_erased'")
    connection.close()
