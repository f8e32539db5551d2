import os
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from remanence.protocols import Store
from remanence.stores import open_store
from remanence.types import ConversationRef

KILLS = int(os.environ.get("REMANENCE_TEST_KILLS", "20"))
LIVES_OF_A_FILE = 25
MOST_EVENTS = 40
LONGEST_PAUSE_SECONDS = 0.02  # from the last event that is waited for until the kill

Events: TypeAlias = list[list[Any]]  # what a process told: its name, then what belongs to it
Run: TypeAlias = Callable[..., Awaitable[Events]]


@dataclass
class Acknowledged:
    """What a conversation was told to hold."""

    texts: dict[int, str] = field(default_factory=dict)
    segments: set[str] = field(default_factory=set)
    observed_seq: int = 0
    being_deleted: bool = False


def take_in(acknowledged: dict[str, Acknowledged], events: Events) -> None:
    """Follow what a child told."""
    for name, *rest in events:
        known = acknowledged.setdefault(rest[0], Acknowledged()) if rest else Acknowledged()
        match name, rest:
            case "appended", (_, texts):
                known.texts.update((int(seq), text) for seq, text in texts.items())
            case "observed", (_, segment_id, last_seq):
                known.segments.add(segment_id)
                known.observed_seq = last_seq
            case "reflected", (_, segment_id, _):
                known.segments.add(segment_id)
            case "deleting", _:
                known.being_deleted = True
            case "deleted", (conversation,):
                acknowledged[conversation] = Acknowledged()


async def check_conversation(store: Store, id_: str, known: Acknowledged) -> Acknowledged:
    """Compare a conversation with what was acknowledged, and return what it holds now."""
    ref = ConversationRef("default", id_)
    messages = await store.messages(ref, after=0, limit=None)
    segments = await store.segments(ref, live=False)
    state = await store.state(ref)
    texts = {message.seq: message.text for message in messages}
    assert list(texts) == list(range(1, len(texts) + 1))
    check_appends(list(texts.values()))
    if not known.being_deleted:
        assert known.texts.items() <= texts.items()
        assert known.segments <= {segment.id for segment in segments}
        assert known.observed_seq <= (state.observed_seq if state else 0)
    return Acknowledged(texts=texts, segments={segment.id for segment in segments})


def check_appends(texts: list[str]) -> None:
    """Each append is there as a whole, in one piece."""
    while texts:
        name, _, count = texts[0].split()
        whole = [f"{name} {place} {count}" for place in range(int(count))]
        assert texts[: len(whole)] == whole
        texts = texts[len(whole) :]


def moment_of_death(chance: random.Random) -> tuple[int, float]:
    """A number of events and a pause; every fifth life may end before its store is open."""
    events = chance.choice([0, *[chance.randint(1, MOST_EVENTS)] * 4])
    return events, LONGEST_PAUSE_SECONDS * chance.random()


@pytest.mark.timeout(60 + 3 * KILLS)
async def test_nothing_acknowledged_is_lost_by_a_killed_process(
    tmp_path: Path, run_processes: Run
) -> None:
    acknowledged: dict[str, Acknowledged] = {}
    told = 0
    for seed in range(KILLS):
        if seed % LIVES_OF_A_FILE == 0:
            acknowledged.clear()
        path = tmp_path / f"memory-{seed // LIVES_OF_A_FILE}.db"

        events = await run_processes(
            kill_after=moment_of_death(random.Random(seed)),
            path=str(path),
            task="live",
            processes=1,
            seed=seed,
        )

        told += len(events)
        take_in(acknowledged, events)
        store = await open_store(f"sqlite:///{path}")
        await store.scrub(if_due=True)
        assert await store.check() == (), f"after the life of seed {seed}"
        for id_ in ("a", "b", "c"):
            known = acknowledged.get(id_, Acknowledged())
            acknowledged[id_] = await check_conversation(store, id_, known)
        await store.close()
    assert told > KILLS, "the processes were killed before they did anything"
