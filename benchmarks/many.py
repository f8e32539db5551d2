"""A database of many conversations: the time of a context, and of opening a memory."""

import argparse
import asyncio
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import psycopg
from tests.postgres import new_database, running_server

from benchmarks.rows import Row, percentile, show
from remanence import Memory, Settings
from remanence.stores import open_store

MESSAGES = 100
"""Messages of each conversation, of 20 tokens each, so that nothing is due."""
TOKENS = 20
AT = "2026-03-02T09:00:00.000000+00:00"
QUIET = Settings(workers=0)
READS = 400
FEW = 1_000
PART = 10_000
OPEN_SECONDS = 60
STATE = (
    "UPDATE states SET last_seq = {n}, last_sum_tokens = {n} * 20, indexed_seq = {n}, "
    "last_message_at = '{at}', look_tokens = 8000"
)
OPEN = """
import asyncio, sys, time
from remanence import Memory, Settings
began = time.perf_counter()
async def main():
    async with Memory.open(sys.argv[1], settings=Settings(engine=sys.argv[2])) as memory:
        await memory.conversation("chat-7").context(system="You help.")
        print(time.perf_counter() - began)
asyncio.run(main())
"""


def measure(*, full: bool = False) -> list[Row]:
    """Contexts of two databases on one PostgreSQL server by turns, and openings of both stores."""
    many = 100_000 if full else 10_000
    with (
        running_server(own=True) as server,
        new_database(server) as small,
        new_database(server) as large,
        tempfile.TemporaryDirectory() as folder,
    ):
        fill(small, FEW)
        seconds = fill(large, many)
        few, much = asyncio.run(contexts(small, FEW, large, many))
        file = f"sqlite:///{Path(folder) / 'many.db'}"
        fill_file(file, many)
        openings = {"PostgreSQL": opening(large), "SQLite": opening(file)}
    total = f"{many * MESSAGES:,} messages in {many:,} conversations"
    return [
        Row(
            what=f"context at {total} ÷ at {FEW * MESSAGES:,} in {FEW:,}, PostgreSQL",
            measured=statistics.median(much) / statistics.median(few),
            target=1.2,
            detail=f"{statistics.median(much):.2f} and {statistics.median(few):.2f} ms; p99 "
            f"{percentile(much, 0.99):.2f} and {percentile(few, 0.99):.2f} ms; "
            f"{READS} conversations at random; loaded in {seconds:,.0f} s",
        ),
        *(
            Row(
                what=f"opening and the first context at {many:,} conversations, {store}",
                measured=inside,
                unit="s",
                target=0.5,
                detail=f"{whole:.2f} s with the interpreter and imports",
            )
            for store, (inside, whole) in openings.items()
        ),
    ]


def fill(url: str, conversations: int) -> float:
    """Create conversations with messages by COPY; return the seconds."""
    asyncio.run(_create(url))
    began = time.perf_counter()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")  # no triggers, no foreign keys
        for first in range(1, conversations + 1, PART):
            keys = range(first, min(first + PART, conversations + 1))
            _copy(connection, "conversations (key, tenant, id, created_at)", _names(keys))
            _copy(connection, "states (conversation)", (f"{key}\n" for key in keys))
            _copy(
                connection,
                "messages (conversation, seq, tokens, sum_tokens, id, role, kind, content, created_at)",
                map(_tape, keys),
            )
        connection.execute(STATE.format(n=MESSAGES, at=AT))
        connection.execute(
            "SELECT setval(pg_get_serial_sequence('conversations', 'key'), %s)", (conversations,)
        )
        connection.execute("VACUUM ANALYZE conversations, states, messages")
        connection.execute("CHECKPOINT")
    return time.perf_counter() - began


def _copy(connection: psycopg.Connection, table: str, parts: Iterator[str]) -> None:
    with connection.cursor().copy(f"COPY {table} FROM STDIN".encode()) as copy:
        for part in parts:
            copy.write(part)


def _names(keys: range) -> Iterator[str]:
    return (f"{key}\tdefault\tchat-{key}\t{AT}\n" for key in keys)


def _tape(key: int) -> str:
    """Return the rows of a conversation."""
    return "".join(
        f"{key}\t{seq}\t{TOKENS}\t{seq * TOKENS}\tmsg_{seq}\t{'user' if seq % 2 else 'assistant'}\t"
        f'message\t"text {seq} of conversation {key}, which has {"some more words " * 4}"\t{AT}\n'
        for seq in range(1, MESSAGES + 1)
    )


async def _create(url: str) -> None:
    await (await open_store(url)).close()


def fill_file(url: str, conversations: int) -> None:
    """Create conversations of one message each in a SQLite file."""
    asyncio.run(_create(url))
    connection = apsw.Connection(url.removeprefix("sqlite:///"))
    with connection:
        connection.executemany(
            "INSERT INTO conversations (key, tenant, id, created_at) VALUES (?, 'default', ?, ?)",
            ((key, f"chat-{key}", AT) for key in range(1, conversations + 1)),
        )
        connection.execute("INSERT INTO states (conversation) SELECT key FROM conversations")
        connection.execute(
            "INSERT INTO messages (conversation, seq, tokens, sum_tokens, id, role, kind, content, "
            "created_at) SELECT key, 1, 20, 20, 'msg_1', 'user', 'message', '\"Hello.\"', ? "
            "FROM conversations",
            (AT,),
        )
        connection.execute(STATE.format(n=1, at=AT))
    connection.close()


async def contexts(small: str, few: int, large: str, many: int) -> tuple[list[float], list[float]]:
    """Return the milliseconds of contexts of random conversations of both, by turns."""
    chance = random.Random(1)
    taken: tuple[list[float], list[float]] = ([], [])
    async with (
        Memory.open(small, settings=QUIET) as one,
        Memory.open(large, settings=QUIET) as other,
    ):
        for number in range(READS + 20):
            for memory, count, times in ((one, few, taken[0]), (other, many, taken[1])):
                chat = memory.conversation(f"chat-{chance.randint(1, count)}")
                began = time.perf_counter()
                context = await chat.context(system="You help.")
                if number >= 20:  # statements are prepared by then
                    times.append(1_000 * (time.perf_counter() - began))
                assert len(context.messages) == MESSAGES
    return taken


def opening(url: str, *, count: int = 5) -> tuple[float, float]:
    """Return the median seconds of opening a memory in fresh processes, and of the processes."""
    engine = "procrastinate" if url.startswith("postgresql:") else "local"
    inside, whole = [], []
    for _ in range(count + 1):  # the first one plans a look at each conversation
        began = time.perf_counter()
        result = subprocess.run(
            (sys.executable, "-c", OPEN, url, engine),
            capture_output=True,
            text=True,
            check=True,
            timeout=OPEN_SECONDS,
        )
        whole.append(time.perf_counter() - began)
        inside.append(float(result.stdout))
    return statistics.median(inside[1:]), statistics.median(whole[1:])


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="10,000,000 messages, some 6 GB")
    show(measure(full=parser.parse_args().full))


if __name__ == "__main__":
    main()
