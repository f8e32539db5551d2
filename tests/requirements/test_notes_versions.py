"""Versions of the notes count what a reader of them can tell apart, and nothing else."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.requirements.samples import condensing, noting, turns

from remanence import Memory, Policy
from remanence.conversation import Conversation
from remanence.testing import FixedClock, ScriptedObserver, ScriptedReflector

HOUR = 3_600.0


async def version(chat: Conversation) -> int | None:
    log = (await chat.diagnostics()).observation_log
    return log.version if log else None


@pytest.mark.req("B-02", "B-41", "B-54")
async def test_the_log_of_notes_grows_by_one_with_each_observation_and_reflection(
    tmp_path: Path,
) -> None:
    clock = FixedClock()
    observer = ScriptedObserver([noting(500), RuntimeError("down"), noting(500), noting(500)])
    policy = Policy.brain(reflect_tokens=(1_100,), retry_seconds=60)
    versions: list[int | None] = []
    async with Memory.open(
        f"sqlite:///{tmp_path / 'brain.db'}",
        policy=policy,
        observer=observer,
        reflector=ScriptedReflector([condensing(300)]),
        clock=clock,
    ) as memory:
        chat = memory.conversation("c", user="ana")
        for start in (0, 76, 152):
            await chat.append(*turns(76, tokens=400, counter="flat", start=start))
            await chat.flush()
            versions.append(await version(chat))
            clock.advance(HOUR)
            await chat.flush(retry=True)
            versions.append(await version(chat))
        commits = (await chat.state()).lock_version
        reflection = (await chat.reflections())[0]
    with closing(sqlite3.connect(tmp_path / "brain.db")) as connection:
        log = connection.execute("SELECT version, lock_version FROM observation_log").fetchall()
        replaced = connection.execute("SELECT replaces_version FROM reflections").fetchall()

    # The second observation fails once. The third brings the log over its threshold.
    assert versions == [1, 1, 1, 2, 4, 4]
    assert commits > 4
    assert [row[0] for row in log] == [1, 2, 3, 4]
    assert log[-1][1] == reflection.version
    assert replaced == [(3,)]


@pytest.mark.req("B-03", "L-18")
@pytest.mark.parametrize("preset", [Policy.lango, Policy.brain])
async def test_versions_never_go_back_also_where_replaced_notes_are_deleted(
    preset: Callable[..., Policy],
) -> None:
    policy = preset(
        enabled=True,
        observe_tokens=1_000,
        token_counter="flat",
        reflect_tokens=(900, 900),
        reflect_scope="kind",
        reflect_min_interval_seconds=0.0,
    )
    versions: list[int] = []
    async with Memory.open(
        "sqlite:///:memory:",
        policy=policy,
        observer=ScriptedObserver([noting(400)] * 9),
        reflector=ScriptedReflector([condensing(100)] * 9),
    ) as memory:
        chat = memory.conversation("c")
        for start in range(0, 44, 11):
            await chat.append(*turns(11, tokens=100, counter="flat", start=start))
            await chat.flush()
            versions.append(await version(chat) or 0)
        made = len([entry for entry in await chat.log() if entry.kind in ("observed", "reflected")])

    assert versions == sorted(set(versions))
    assert versions[-1] == made
