"""`remanence worker` as a process of its own, and what it says when it cannot work."""

import asyncio
import os
import secrets
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import CompletedProcess

import httpx2
import psycopg
import pytest
from tests.postgres import new_database, until, url_of

from remanence import Memory, Message, Policy, Settings

Cli = Callable[..., CompletedProcess[str]]

WORDS = "the quick brown fox jumps over a lazy dog near the old river bank at dawn "


@pytest.fixture
def database(postgres: str) -> Iterator[str]:
    with new_database(postgres) as url:
        yield url


@asynccontextmanager
async def worker(database: str, *options: str) -> AsyncIterator[tuple[Process, str]]:
    """Yield a worker and the last line that it prints before it is at work."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "remanence", "worker", "--db", database, *options),
        env={**os.environ, "COLUMNS": "500", "REMANENCE_POLICY__OBSERVE_TOKENS": "100"},
        stdout=PIPE,
    )
    assert process.stdout is not None
    try:
        yield process, (await process.stdout.readline()).decode()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.postgres
async def test_a_worker_does_the_work_of_another_process_and_ends_when_it_is_told(
    database: str,
) -> None:
    policy, settings = Policy(observe_tokens=100), Settings(workers=0)
    async with (
        asyncio.timeout(60),
        Memory.open(database, policy=policy, settings=settings) as memory,
        worker(database, "--health-port", "0") as (process, _),
    ):
        assert process.stdout is not None
        probed = (await process.stdout.readline()).decode().split()[0]
        chat = memory.conversation("a")
        await chat.append(*[Message.user(f"{number} {WORDS * 2}") for number in range(20)])
        observed = "SELECT 1 FROM states WHERE observed_seq > 0"
        with psycopg.connect(database, autocommit=True) as connection:
            await until(lambda: bool(connection.execute(observed).fetchall()))
        async with httpx2.AsyncClient(trust_env=False) as http:
            answered = await http.get(probed)
            metrics = await http.get(probed.replace("readyz", "metrics"))
        process.send_signal(signal.SIGTERM)
        code = await process.wait()

    assert (answered.status_code, answered.json()["status"]) == (200, "ready")
    assert 'remanence_segments_committed_total{generation="0"}' in metrics.text
    assert code == 0


def test_a_worker_needs_a_postgresql_database(cli: Cli) -> None:
    result = cli("worker", "--db", "sqlite:///memory.db")

    assert result.returncode == 1
    assert "needs a PostgreSQL database, but the URL is 'sqlite:///memory.db'" in result.stderr


def test_a_worker_whose_memory_is_switched_off_has_no_work(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "remanence.toml").write_text("[policy]\nenabled = false\n")
    result = cli("worker", "--db", "postgresql://ana@localhost/memory")

    assert result.returncode == 1
    assert "set policy.enabled" in result.stderr


def test_a_worker_names_the_server_that_it_cannot_reach(cli: Cli) -> None:
    result = cli("worker", "--db", "postgresql://ana:secret@127.0.0.1:1/memory")

    assert result.returncode == 1
    assert "check that the server runs and can be reached" in result.stderr
    assert "secret" not in result.stderr


@pytest.mark.postgres
def test_a_worker_creates_no_tables(cli: Cli, database: str) -> None:
    result = cli("worker", "--db", database)

    assert result.returncode == 1
    assert "run 'remanence migrate' on it" in result.stderr
    with psycopg.connect(database) as connection:
        assert (
            connection.execute("SELECT 1 FROM pg_tables WHERE schemaname = 'public'").fetchall()
            == []
        )


@pytest.mark.postgres
@pytest.mark.parametrize("changes", [{"user": "nobody"}, {"dbname": "elsewhere"}])
def test_a_worker_says_what_is_not_there(cli: Cli, database: str, changes: dict[str, str]) -> None:
    result = cli("worker", "--db", url_of(database, **changes))

    assert result.returncode == 1
    assert "create it, or name another one in the URL" in result.stderr


@pytest.mark.postgres
def test_a_worker_with_a_wrong_password_says_so(cli: Cli, postgres: str, database: str) -> None:
    role = f"ana_{secrets.token_hex(8)}"  # others may run this test on the same server
    url = url_of(database, user=role, password="wrong")
    with psycopg.connect(postgres, autocommit=True) as connection:
        (file,) = connection.execute("SHOW hba_file").fetchone() or ("",)
        rules = Path(file).read_text()
        connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'right'")
        try:
            Path(file).write_text(f"local all {role} scram-sha-256\n" + rules)
            connection.execute("SELECT pg_reload_conf()")
            while is_let_in(url):  # the server reads its rules in its own time
                pass
            result = cli("worker", "--db", url)
        finally:
            Path(file).write_text(rules)
            connection.execute(f"DROP ROLE {role}")
            connection.execute("SELECT pg_reload_conf()")

    assert result.returncode == 1
    assert "check user and password of the URL" in result.stderr
    assert "wrong" not in result.stderr


def is_let_in(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True
