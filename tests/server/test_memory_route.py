import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.server.conftest import POLICY, Client

from remanence import Conversation, Memory, Message
from remanence.testing import FixedClock

PATHS = ["/v1/conversations/trip/memory", "/conversations/trip/memory"]


async def filled(memory: Memory, turns: int = 20) -> Conversation:
    conversation = memory.conversation("trip", user="ana")
    for number in range(turns):
        await conversation.append(
            Message.user(
                f"On day {number} I fly with LH {450 + number} to town {number}, and I book room "
                f"{200 + number} in the Hotel Linde for {90 + number} euros."
            ),
            Message.assistant(f"Noted: LH {450 + number}, room {200 + number}."),
        )
        await conversation.flush()
    return conversation


@pytest.mark.req("B-68")
@pytest.mark.parametrize("path", PATHS)
async def test_a_memory_is_told_in_a_few_numbers(client: Client, memory: Memory, path: str) -> None:
    conversation = await filled(memory)
    state = await conversation.state()
    live = await conversation.observations() + await conversation.reflections()
    found = (await client.get(f"{path}?user=ana")).json()

    assert set(found) == {
        "memoryState",
        "observationLog",
        "observationCount",
        "totalObservationTokens",
    }
    assert found["memoryState"]["observed_seq"] == state.observed_seq > 0
    assert found["memoryState"]["lock_version"] == state.lock_version
    assert found["memoryState"]["unobserved_token_count"] == state.unobserved_tokens
    assert found["observationLog"] == {
        "version": max(segment.notes_version for segment in live),
        "lockVersion": max(segment.version for segment in live),
        "tokenCount": sum(segment.tokens for segment in live),
        "textLength": found["observationLog"]["textLength"],
    }
    assert found["observationCount"] > 1
    assert found["totalObservationTokens"] >= found["observationLog"]["tokenCount"]


@pytest.mark.req("B-68")
async def test_the_length_of_the_log_is_that_of_the_text_in_the_tables(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with Memory.open(f"sqlite:///{path}", policy=POLICY, clock=FixedClock()) as memory:
        conversation = await filled(memory)
        found = await conversation.diagnostics()
        live = [s for s in await conversation.observations() if s.text]
    with closing(sqlite3.connect(path)) as connection:
        newest = "SELECT length(text) FROM observation_log ORDER BY version DESC LIMIT 1"
        (length,) = connection.execute(newest).fetchone()

    assert len(live) > 1
    assert found.observation_log is not None
    assert found.observation_log.text_length == length


@pytest.mark.req("B-68")
async def test_the_lock_version_of_the_notes_leads_to_the_entry_that_brought_them(
    client: Client, memory: Memory
) -> None:
    conversation = await filled(memory)
    version = (await client.get(f"{PATHS[0]}?user=ana")).json()["observationLog"]["lockVersion"]

    assert (await conversation.log(version))[-1].kind in ("observed", "reflected")


@pytest.mark.req("B-68")
async def test_the_observed_cursor_is_the_id_of_its_message(client: Client, memory: Memory) -> None:
    conversation = await filled(memory)
    state = await conversation.state()
    message = (await conversation.messages(after=state.observed_seq - 1, limit=1))[0]
    found = (await client.get(f"{PATHS[0]}?user=ana")).json()

    assert found["memoryState"]["observed_cursor_message_id"] == message.id


@pytest.mark.req("B-28", "B-68")
async def test_a_conversation_without_messages_has_no_state_and_no_log(client: Client) -> None:
    response = await client.get("/conversations/nobody/memory")

    assert response.status_code == 200
    assert response.json() == {
        "memoryState": None,
        "observationLog": None,
        "observationCount": 0,
        "totalObservationTokens": 0,
    }


@pytest.mark.req("B-68")
async def test_a_conversation_that_is_not_observed_yet_has_a_state_and_no_log(
    client: Client, memory: Memory
) -> None:
    await memory.conversation("new").append(Message.user("Hello."))
    found = (await client.get("/conversations/new/memory")).json()

    assert found["memoryState"]["last_seq"] == 1
    assert found["observationLog"] is None


@pytest.mark.parametrize("query", ["", "?user=bob"])
async def test_a_conversation_of_another_user_looks_as_if_there_were_none(
    client: Client, memory: Memory, query: str
) -> None:
    await filled(memory, turns=1)
    found = await client.get(f"/conversations/trip/memory{query}")
    nobody = await client.get(f"/conversations/nobody/memory{query}")

    assert (found.status_code, found.json()) == (nobody.status_code, nobody.json())


async def test_tenants_do_not_see_each_others_memory(client: Client, memory: Memory) -> None:
    await filled(memory, turns=1)
    found = (await client.get("/v1/conversations/trip/memory?tenant=other&user=ana")).json()

    assert found["memoryState"] is None
