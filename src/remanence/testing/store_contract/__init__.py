"""The contract of `Store`, as a test class to inherit from.

    class TestMyStore(StoreContract):
        @pytest.fixture
        async def open_again(self, tmp_path):
            async def open_handle():
                return await open_my_store(tmp_path)
            return open_handle

Each call of `open_again` opens another handle on the same database; the suite closes them. The
suite needs the extra `testing`, and `asyncio_mode = "auto"` in pytest's settings.
"""

from remanence.errors import MissingExtra

try:
    import pytest_asyncio  # noqa: F401 - it runs the asynchronous tests, and imports pytest
except ModuleNotFoundError as error:
    raise MissingExtra("testing", error.name or "pytest-asyncio") from error

from remanence.testing.store_contract.activation import ActivationContract
from remanence.testing.store_contract.api_keys import APIKeyContract
from remanence.testing.store_contract.call_limits import CallLimitContract
from remanence.testing.store_contract.erasure import ErasureContract
from remanence.testing.store_contract.events import EventContract
from remanence.testing.store_contract.facts import FactContract
from remanence.testing.store_contract.failures import FailureContract
from remanence.testing.store_contract.forgetting import ForgettingContract
from remanence.testing.store_contract.forking import ForkContract
from remanence.testing.store_contract.handles import HandleContract, OpenStore
from remanence.testing.store_contract.ledger import LedgerContract
from remanence.testing.store_contract.looks import LookContract
from remanence.testing.store_contract.observations import ObservationContract
from remanence.testing.store_contract.reading import ReadingContract
from remanence.testing.store_contract.reflections import ReflectionContract
from remanence.testing.store_contract.repetitions import RepetitionContract
from remanence.testing.store_contract.retention import RetentionContract
from remanence.testing.store_contract.search import SearchContract
from remanence.testing.store_contract.tape import TapeContract
from remanence.testing.store_contract.turns import TurnContract
from remanence.testing.store_contract.vectors import VectorContract

__all__ = ["OpenStore", "StoreContract"]


class StoreContract(
    TapeContract,
    ReadingContract,
    ObservationContract,
    ActivationContract,
    ReflectionContract,
    FailureContract,
    LookContract,
    SearchContract,
    FactContract,
    RepetitionContract,
    VectorContract,
    ErasureContract,
    ForgettingContract,
    ForkContract,
    LedgerContract,
    RetentionContract,
    EventContract,
    HandleContract,
    APIKeyContract,
    CallLimitContract,
    TurnContract,
):
    """The whole contract of `remanence.protocols.Store`."""
