"""A PostgreSQL server that is gone for a while: what clients of the service see."""

import asyncio

import pytest
from tests.postgres import WAIT_SECONDS, crash, new_database, restart, running_server
from tests.server.conftest import served

from remanence import Memory, Settings
from remanence.server.app import create_app

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(120)]

MESSAGE = {"role": "user", "content": "My flight is LH 454."}


async def test_requests_in_an_outage_learn_that_the_database_refuses_and_it_is_used_when_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with running_server(own=True) as server, new_database(server) as database:
        async with (
            Memory.open(database, settings=Settings(workers=0)) as memory,
            served(create_app(memory)) as client,
        ):
            await asyncio.to_thread(crash, database, kill=False)
            requests = [
                asyncio.create_task(client.get("/v1/conversations/trip/messages"))
                for _ in range(30)
            ]
            refused = [await request for request in requests]
            readiness = await client.get("/readyz")
            await asyncio.to_thread(restart, database)
            async with asyncio.timeout(WAIT_SECONDS):
                while (await client.get("/readyz")).status_code != 200:
                    pass
            appended = await client.post("/v1/conversations/trip/messages", messages=[MESSAGE])

    for response in refused:
        assert response.status_code == 503
        assert response.headers["retry-after"] == "2"
        assert response.json()["detail"] == "the database refused the connection: try again later"
    assert readiness.status_code == 503
    assert "the database refused the connection" in readiness.text
    assert appended.status_code == 201
    assert ".s.PGSQL" in caplog.text, "the log names the server"
