"""What the usual calls cost does not grow with the tape, counted in steps of SQLite's machine."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest

from remanence.clock import Clock, SystemClock
from remanence.protocols import EVERYTHING
from remanence.stores.sql import facts, retention, search, segments, states, tape
from remanence.stores.sqlite import Database, SQLiteStore
from remanence.stores.sqlite.fts import Connection, find_unindexed, index_aside
from remanence.testing.store_contract.samples import ANA, REF, fact, observation, user
from remanence.types import ConversationRef, FactChanges, Keep, Message, Retention, ToolCallPart

CALL = Message.assistant(tool_calls=[ToolCallPart(id="c1", name="n", arguments="{}")])
NOW = datetime(2024, 1, 1, tzinfo=UTC)
CLOCK = SystemClock()


def connect(path: Path, messages: int) -> Connection:
    """A database with a tape of so many messages, the last of which is a tool call."""
    connection = Database(path=str(path), durability="normal").open_writer(CLOCK)
    batch = [*[user(f"message {number}") for number in range(messages - 1)], CALL]
    with connection:
        append(connection, *batch)
    return connection


def append(connection: Connection, *messages: Message) -> tape.TapeWrite:
    entries = [tape.entry(message, CLOCK, NOW) for message in messages]
    return tape.append(connection, REF, entries, NOW, user=None, any_user=True)


def state_and_tail(connection: Connection) -> None:
    state = states.by_ref(connection, REF)
    assert state is not None
    segments.live(connection, state.key)
    read = tape.tail(connection, state.key, tail_seq=1, max_tokens=200)
    assert len(read) == 21  # the call has no tokens


def observe_and_activate(connection: Connection) -> None:
    state = states.by_ref(connection, REF)
    assert state is not None
    first, last = state.observed_seq + 1, state.observed_seq + 9
    after = segments.commit_observation(connection, state, observation(first, last))
    assert after is not None
    assert segments.activate(connection, after, active_seq=last, tail_seq=last + 1, at=NOW)


WORKS: dict[str, Callable[[Connection], object]] = {
    "append": lambda connection: append(connection, user("new")),
    "append with an id": lambda connection: append(connection, user("new", id="m1")),
    "append a tool result": lambda connection: append(connection, Message.tool("c1", "done")),
    "snapshot": state_and_tail,
    "messages": lambda connection: tape.messages(
        connection, REF, after=500, limit=None, max_tokens=100
    ),
    "observe and activate": observe_and_activate,
}


def steps(connection: Connection, work: Callable[[Connection], object]) -> int:
    """How many times ten steps of SQLite's virtual machine the work takes."""
    count = 0

    def step() -> bool:
        nonlocal count
        count += 1
        return False

    connection.set_progress_handler(step, 10)
    with connection:
        work(connection)
    connection.set_progress_handler(None)
    return count


def test_a_page_of_conversations_takes_as_many_steps_at_the_end_as_at_the_start(
    tmp_path: Path,
) -> None:
    connection = connect(tmp_path / "memory.db", 1)
    with connection:
        for number in range(2_000):
            ref = ConversationRef("default", f"{number:04}")
            tape.append(connection, ref, [tape.entry(user("x"), CLOCK, NOW)], NOW, user=None)
    late = ConversationRef("default", "1980")

    def page(tenant: str | None, after: ConversationRef | None) -> int:
        return steps(
            connection,
            lambda connection: states.page(connection, tenant=tenant, after=after, limit=10),
        )

    for tenant in (None, "default"):
        assert 0 < page(tenant, late) <= 1.2 * page(tenant, None)
    connection.close()


def test_a_page_of_a_users_conversations_takes_as_many_steps_beside_many_of_others(
    tmp_path: Path,
) -> None:
    connection = connect(tmp_path / "memory.db", 1)

    def page_steps() -> int:
        return steps(connection, lambda c: states.page(c, tenant="default", user="ana", limit=10))

    def add(names: range, owner: str) -> None:
        with connection:
            for number in names:
                ref = ConversationRef("default", f"{number:04}")
                tape.append(connection, ref, [tape.entry(user("x"), CLOCK, NOW)], NOW, user=owner)

    add(range(1_998, 2_000), "ana")
    alone = page_steps()
    add(range(1_998), "ben")

    assert 0 < page_steps() <= 1.2 * alone
    connection.close()


@pytest.mark.parametrize("name", WORKS)
def test_a_call_takes_as_many_steps_on_a_long_tape_as_on_a_short_one(
    tmp_path: Path, name: str
) -> None:
    taken = []
    for messages in (1_000, 10_000):
        connection = connect(tmp_path / f"{messages}.db", messages)
        taken.append(steps(connection, WORKS[name]))
        connection.close()

    short, long = taken
    assert 0 < long <= 1.2 * short


def test_ten_times_as_many_parallel_results_take_ten_times_as_many_steps_to_append(
    tmp_path: Path,
) -> None:
    def result_steps(number: int) -> int:
        connection = connect(tmp_path / f"{number}.db", 1)
        ids = [f"p{n}" for n in range(number)]
        calls = [ToolCallPart(id=id_, name="n", arguments="{}") for id_ in ids]
        content = tuple(part for id_ in ids for part in Message.tool(id_, "done").content)
        append(connection, Message.assistant(tool_calls=calls))
        results = Message(role="tool", content=content)
        taken = steps(connection, lambda connection: append(connection, results))
        connection.close()
        return taken

    assert result_steps(1_000) < 11 * result_steps(100)


def test_a_batch_of_old_vectors_takes_as_many_steps_on_a_long_tape_as_on_a_short_one(
    tmp_path: Path,
) -> None:
    rules, late = Retention(vectors=Keep(days=30)), NOW + timedelta(days=99)

    def prune(connection: Connection) -> None:
        state = states.by_ref(connection, REF)
        assert state is not None
        pruned = retention.prune(connection, [state], rules, at=late, limit=20)
        assert pruned.vectors == 20

    taken = []
    for messages in (1_000, 5_000):
        connection = connect(tmp_path / f"{messages}.db", messages)
        with connection:
            connection.execute(
                "INSERT INTO vectors (item, model, conversation, vector) "
                "SELECT key, 'm', conversation, x'00000000' FROM messages"
            )
        taken.append(steps(connection, prune))
        connection.close()
    assert 0 < taken[1] <= 1.2 * taken[0]


def test_messages_outside_of_the_index_are_read_once_for_all_searches(tmp_path: Path) -> None:
    connection = connect(tmp_path / "memory.db", 1_000)

    def count_hits(word: str) -> int:
        return len(find_unindexed(connection, REF, word, limit=2_000, only=EVERYTHING))

    assert count_hits("message") == 999
    assert not index_aside(connection, REF)
    with connection:
        append(connection, user("one more message"))
    assert count_hits("message") == 1_000
    again = steps(connection, lambda _: count_hits("999"))
    assert 0 < again < 100
    connection.close()


@pytest.mark.parametrize(("characters", "at_most"), [(5, 5), (200, 15), (30_000, 1_000)])
def test_a_step_of_the_index_takes_many_short_messages_or_few_long_ones(
    tmp_path: Path, characters: int, at_most: int
) -> None:
    connection = Database(path=str(tmp_path / "memory.db")).open_writer(CLOCK)
    with connection:
        append(connection, *[user("x" * characters) for _ in range(1_000)])

    count = 1
    while search.index_some(connection, 1):
        count += 1

    assert at_most / 2 < count <= at_most
    assert connection.execute("SELECT indexed_seq FROM states").get == 1_000
    connection.close()


def test_a_page_of_facts_takes_as_many_steps_at_the_end_of_thousands_as_of_a_few(
    tmp_path: Path,
) -> None:
    def page_steps(number: int) -> tuple[int, int]:
        connection = connect(tmp_path / f"{number}.db", 1)
        saved = [fact(f"f{n}", f"fact {n}") for n in range(number)]
        with connection:
            facts.save(connection, FactChanges(facts=tuple(saved)))
        late = saved[20].id  # the last written come first
        first, last = (
            steps(connection, partial(facts.of_owner, owner=ANA, after=after, limit=10))
            for after in (None, late)
        )
        assert len(facts.of_owner(connection, ANA, after=late, limit=50)) == 20
        connection.close()
        return first, last

    few, many = page_steps(100), page_steps(2_000)
    assert 0 < many[0] <= 1.2 * few[0]
    assert 0 < many[1] <= 1.2 * few[1]


def test_the_facts_of_most_worth_take_as_many_steps_among_thousands_as_among_a_few(
    tmp_path: Path,
) -> None:
    def lasting_steps(number: int) -> int:
        connection = connect(tmp_path / f"{number}.db", 1)
        saved = [fact(f"f{n}", f"fact {n}") for n in range(number)]
        worth = {each.id: place / 7 % 1 for place, each in enumerate(saved)}
        with connection:
            facts.save(connection, FactChanges(facts=tuple(saved), worth=worth))
        taken = steps(connection, partial(facts.lasting, owner=ANA, limit=50))
        connection.close()
        return taken

    few, many = lasting_steps(100), lasting_steps(2_000)
    assert 0 < many <= 1.2 * few


class CountedDatabase(Database):
    """A database that counts every hundredth step of its writer in `counts`."""

    counts: ClassVar[list[int]] = []

    def open_writer(self, clock: Clock) -> Connection:
        def step() -> bool:
            self.counts.append(1)
            return False

        connection = super().open_writer(clock)
        connection.set_progress_handler(step, 100)
        return connection


async def test_ten_times_as_many_conversations_take_ten_times_as_many_steps_to_forget_their_user(
    tmp_path: Path,
) -> None:
    async def forget_steps(number: int) -> int:
        database = CountedDatabase(path=str(tmp_path / f"{number}.db"), durability="normal")
        store = SQLiteStore(database, clock=CLOCK)
        await store.open()
        async with asyncio.TaskGroup() as group:
            for name in range(number):
                ref = ConversationRef("default", str(name))
                group.create_task(store.append(ref, [user("x", id="m1")], user="ana"))
        database.counts.clear()
        await store.forget_user(ANA)
        taken = len(database.counts)
        assert await store.conversations(tenant="default", user="ana", limit=1) == ()
        await store.close()
        return taken

    assert 0 < await forget_steps(1_000) < 12 * await forget_steps(100)
