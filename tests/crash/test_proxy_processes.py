"""Two services on one PostgreSQL, with clients that send histories through both, and kills."""

import signal
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import get_args

import pytest
from tests.postgres import new_database
from tests.server.histories import Action, Clients, Form, Move, Provider
from tests.server.process import Service, service

from remanence import Memory, Policy

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(1_800)]

SEEDS = 10
ROUNDS = 40
KILLED_EVERY = 10
OBSERVED_EARLY = {
    "REMANENCE_POLICY__OBSERVE_TOKENS": "100",
    "REMANENCE_POLICY__TAIL_TOKENS": "200",
    "REMANENCE_POLICY__TAIL_KEEP_TOKENS": "50",
    "REMANENCE_POLICY__KEEP_LAST": "2",
}


def moves(random: Random) -> list[Move]:
    return [
        Move(
            client=client,
            action=random.choice(("say", "say", *get_args(Action))),
            form=random.choice(get_args(Form)),
            proxy=random.randrange(2),
            at=random.randrange(10),
            calls=random.choice((0, 0, 1, 2)),
            fails=random.random() < 0.1,
            streams=random.random() < 0.5,
        )
        for client in range(random.randint(1, 3))
    ]


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_each_history_is_on_its_tape_though_two_services_write_and_are_killed(
    tmp_path: Path, postgres: str, seed: int
) -> None:
    random = Random(seed)
    with new_database(postgres) as database:
        async with AsyncExitStack() as stack:
            provider = await stack.enter_async_context(Provider().running())
            assert isinstance(provider, Provider)
            urls = ("--openai-url", provider.url, "--anthropic-url", provider.url)

            async def start() -> Service:
                running = service(tmp_path, "--db", database, *urls, **OBSERVED_EARLY)
                return await stack.enter_async_context(running)

            services = [await start(), await start()]
            clients = Clients(provider, [each.http for each in services])
            for number in range(1, ROUNDS + 1):
                await clients.round(moves(random))
                if number % KILLED_EVERY == 0:
                    at = random.randrange(2)
                    await services[at].end(random.choice((signal.SIGKILL, signal.SIGTERM)))
                    services[at] = await start()
                    clients.proxies[at] = services[at].http
        async with Memory.open(database, policy=Policy(enabled=False)) as memory:
            await clients.check(memory)
