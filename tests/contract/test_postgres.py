from collections.abc import Iterator

import pytest
from tests.postgres import empty, new_database, running_server

from remanence.protocols import Store
from remanence.stores import open_store
from remanence.testing.store_contract import OpenStore, StoreContract

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with running_server() as server, new_database(server) as url:
        yield url


class TestPostgres(StoreContract):
    @pytest.fixture
    def open_again(self, database: str) -> OpenStore:
        empty(database)

        async def open_handle() -> Store:
            return await open_store(database)

        return open_handle
