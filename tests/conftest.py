"""What holds for every test: no network, no task left behind, the same Hypothesis examples."""

import asyncio
import gc
import ipaddress
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from datetime import datetime
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from hypothesis import settings

from remanence import telemetry
from remanence.cli import main
from remanence.context.context import Context
from remanence.testing import check_extends
from remanence.types import ConversationRef, MemoryState

settings.register_profile(  # the everyday run; `make crash` has the long one
    "default", derandomize=True, deadline=None, max_examples=25, print_blob=True
)
settings.register_profile("long", deadline=None, max_examples=2_000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from looking again and again at modules and collected tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 10, 10)  # of 700 new objects few are in cycles
        gc.enable()


HOST_FIRST_EVENTS = {"socket.getaddrinfo"}
ADDRESS_SECOND_EVENTS = {"socket.connect", "socket.sendmsg", "socket.sendto"}


def is_outside(host: object) -> bool:
    """Whether a host is another machine; a name counts as one, unless it is localhost."""
    name = host.decode() if isinstance(host, bytes) else host
    if not isinstance(name, str) or name in {"", "localhost"}:
        return False
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return True
    return not (address.is_loopback or address.is_unspecified)


class NetworkGuard:
    """An audit hook that fails a test which reaches for another machine."""

    def __init__(self) -> None:
        self.live = False

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.live:
            return
        if event in HOST_FIRST_EVENTS:
            host = arguments[0]
        elif event in ADDRESS_SECOND_EVENTS and isinstance(arguments[1], tuple):
            host = arguments[1][0]
        else:
            return
        if is_outside(host):
            # Its base is BaseException, so that no `except Exception` under test hides it.
            pytest.fail(f"The test reaches for {host!r}; tests talk to loopback only.")


# An audit hook cannot be removed again: one per process, switched by the hook below.
network_guard = NetworkGuard()
sys.addaudithook(network_guard)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Only a test marked `live` leaves the machine, and contexts begin as those before them.

    As a fixture of each test this would take longer than most tests do.
    """
    network_guard.live = item.get_closest_marker("live") is not None
    facts_renewed = item.get_closest_marker("facts_renewed") is not None
    try:
        with telemetry.context_listener(PrefixWatch(facts_renewed=facts_renewed)):
            return (yield)
    finally:
        network_guard.live = False


@pytest.fixture
async def leaked_tasks() -> AsyncIterator[None]:
    yield
    left = asyncio.all_tasks() - {asyncio.current_task()}
    if left:
        pytest.fail(f"The test left tasks running: {sorted(task.get_name() for task in left)}")


@pytest.fixture(autouse=True)
def no_leaked_task(request: pytest.FixtureRequest) -> None:
    """An async test ends with every task that it started."""
    if request.node.get_closest_marker("asyncio"):
        request.getfixturevalue("leaked_tasks")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The evaluation data, which is no part of the repository."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    path = Path(os.environ.get("REMANENCE_DATA", beside))
    if not path.is_dir():
        pytest.skip("needs the evaluation data: name its folder in REMANENCE_DATA")
    return path


@pytest.fixture
def cli(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., CompletedProcess[str]]:
    """Runs a command in an empty directory, without settings from outside."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("REMANENCE_")]:
        monkeypatch.delenv(name)

    def run(*arguments: object) -> CompletedProcess[str]:
        texts = [str(argument) for argument in arguments]
        code = main(texts)
        captured = capsys.readouterr()
        return CompletedProcess(texts, code, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server, one for each process that runs tests."""
    from tests.postgres import running_server  # noqa: PLC0415 - test_guards copies this file alone

    with running_server() as url:
        yield url


class PrefixWatch:
    """Checks each context of a test against the one before it of the same conversation (P3)."""

    def __init__(self, *, facts_renewed: bool = False) -> None:
        self._facts_renewed = facts_renewed
        self._latest: dict[tuple[ConversationRef, int, datetime, int], Context] = {}

    def __call__(self, state: MemoryState, context: object) -> None:
        assert isinstance(context, Context)
        life = (state.ref, state.key, state.created_at, state.erasures)
        if life in self._latest:
            check_extends(self._latest[life], context, facts_renewed=self._facts_renewed)
        self._latest[life] = context
