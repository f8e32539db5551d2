from pathlib import Path

import pytest

from remanence.engine.local import LocalEngine
from remanence.protocols import Store
from remanence.stores import open_store
from remanence.testing.engine_contract import EngineContract
from remanence.testing.store_contract import OpenStore


class TestLocalEngine(EngineContract):
    make_engine = LocalEngine

    @pytest.fixture
    def open_again(self, tmp_path: Path) -> OpenStore:
        async def open_handle() -> Store:
            return await open_store(f"sqlite:///{tmp_path / 'memory.db'}")

        return open_handle
