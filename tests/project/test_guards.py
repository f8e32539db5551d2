import asyncio
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
DOCUMENTATION_ADDRESS = "192.0.2.1"  # RFC 5737: routed nowhere

LEAKING = """
import asyncio

async def test_that_leaves_a_task():
    test_that_leaves_a_task.task = asyncio.create_task(asyncio.sleep(60), name="forgotten")
"""


def test_a_connection_to_another_machine_fails_the_test() -> None:
    with socket.socket() as client, pytest.raises(pytest.fail.Exception, match="loopback only"):
        client.connect((DOCUMENTATION_ADDRESS, 80))


def test_a_datagram_to_another_machine_fails_the_test() -> None:
    with (
        socket.socket(type=socket.SOCK_DGRAM) as client,
        pytest.raises(pytest.fail.Exception, match="loopback only"),
    ):
        client.sendto(b"", (DOCUMENTATION_ADDRESS, 80))


@pytest.mark.parametrize("host", ["example.invalid", b"example.invalid"])
def test_looking_up_a_name_fails_the_test(host: str | bytes) -> None:
    with pytest.raises(pytest.fail.Exception, match="loopback only"):
        socket.getaddrinfo(host, 80)


async def test_a_server_on_loopback_is_reachable() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"here")
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "localhost", 0, family=socket.AF_INET)
    async with server, asyncio.timeout(60):
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("localhost", port, family=socket.AF_INET)
        assert await reader.read() == b"here"
        writer.close()
        await writer.wait_closed()


def test_a_task_that_outlives_its_test_fails_it(tmp_path: Path) -> None:
    shutil.copy(CONFTEST, tmp_path)
    (tmp_path / "test_leaking.py").write_text(LEAKING)

    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--asyncio-mode=auto", tmp_path],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        text=True,
    )

    assert "1 passed, 1 error" in run.stdout
    assert "The test left tasks running: ['forgotten']" in run.stdout
