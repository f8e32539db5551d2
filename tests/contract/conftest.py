"""A PostgreSQL database for the tests of a process, and a store on it."""

from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest
from tests.postgres import empty, new_database

from remanence.protocols import Store
from remanence.stores import open_store


@pytest.fixture(scope="session")
def database(postgres: str) -> Iterator[str]:
    with new_database(postgres) as url:
        yield url


@pytest.fixture
async def store(database: str) -> AsyncIterator[Store]:
    empty(database)
    store = await open_store(database)
    yield store
    await store.close()


@pytest.fixture
def server(database: str, store: Store) -> Iterator[psycopg.Connection]:
    """A connection beside those of the store."""
    assert store is not None
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection
