"""Whatever clients send at once through two proxies on one database, each history has its tape."""

import asyncio
import itertools
from collections.abc import Sequence
from datetime import timedelta

import httpx2
import pytest
from hypothesis import given, settings, strategies as st
from tests.server.histories import Clients, Move, Provider

from remanence import Memory, Policy
from remanence.server.app import create_app
from remanence.testing import FixedClock
from remanence.testing.clock import START

pytestmark = pytest.mark.timeout(1_800)

IS_LONG = settings.get_current_profile_name() == "long"
POLICY = Policy(
    observe_tokens=60, tail_tokens=120, tail_keep_tokens=30, keep_last=2, note_ratio=1.0
)
LIVES = itertools.count()
"""Each life begins on a day of its own, so that their contexts are told apart."""

MOVES = st.builds(
    Move,
    client=st.integers(0, 2),
    action=st.sampled_from(["say", "say", "say", "regenerate", "edit", "copy", "follow"]),
    form=st.sampled_from(["chat", "responses", "messages"]),
    proxy=st.integers(0, 1),
    at=st.integers(0, 9),
    calls=st.sampled_from([0, 0, 1, 2]),
    fails=st.sampled_from([False, False, False, True]),
    streams=st.booleans(),
)
ROUNDS = st.lists(
    st.one_of(
        st.lists(MOVES, min_size=1, max_size=3, unique_by=lambda move: move.client),
        st.sampled_from(["restart", "observe"]),
    ),
    min_size=1,
    max_size=25,
)


async def live(rounds: Sequence[list[Move] | str]) -> None:
    clock = FixedClock(START + timedelta(days=next(LIVES)))
    async with (
        Provider().running() as provider,
        Memory.open("sqlite:///:memory:", policy=POLICY, clock=clock) as memory,
    ):
        assert isinstance(provider, Provider)

        def proxy() -> httpx2.AsyncClient:
            app = create_app(memory, openai_url=provider.url, anthropic_url=provider.url)
            return httpx2.AsyncClient(
                transport=httpx2.ASGITransport(app=app), base_url="http://localhost", timeout=60
            )

        clients = Clients(provider, [proxy(), proxy()])
        for number, moves in enumerate(rounds):
            if moves == "restart":
                clients.proxies[number % 2] = proxy()
            elif moves == "observe":
                for state in await memory.conversations():
                    await memory.conversation(state.ref.id, tenant=state.ref.tenant).flush()
            else:
                assert isinstance(moves, list)
                await clients.round(moves)
        await clients.check(memory)


@settings(max_examples=1_000 if IS_LONG else 25)
@given(ROUNDS)
def test_each_history_is_on_the_tape_that_it_belongs_to(rounds: list[list[Move] | str]) -> None:
    asyncio.run(live(rounds))
