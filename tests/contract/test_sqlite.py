from pathlib import Path

import pytest

from remanence.protocols import Store
from remanence.stores import open_store
from remanence.testing.store_contract import OpenStore, StoreContract


class TestSQLiteFile(StoreContract):
    @pytest.fixture
    def open_again(self, tmp_path: Path) -> OpenStore:
        async def open_handle() -> Store:
            return await open_store(f"sqlite:///{tmp_path / 'memory.db'}")

        return open_handle


class TestSQLiteInMemory(StoreContract):
    durable = False

    @pytest.fixture
    def open_again(self) -> OpenStore:
        async def open_handle() -> Store:
            return await open_store("sqlite:///:memory:")

        return open_handle
