"""Forgetting: the text is gone from the memory and from the bytes of its files."""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import apsw
import pytest
from tests.server.conftest import memory_on
from tests.slow import slow_except

from remanence import Conversation, Hooks, Memory, Message, Policy, Settings
from remanence.engine.forgetting import Forgetting
from remanence.errors import (
    ConversationNotFound,
    InvalidArgument,
    ModelError,
    StoreError,
    StoreUnavailable,
    WrongUser,
)
from remanence.protocols import ExtractRequest, ObserveRequest
from remanence.stores import open_store
from remanence.testing import FaultyStore, FixedClock, check_coverage, check_tiling
from remanence.testing.store_contract.samples import START
from remanence.types import (
    Draft,
    Erasure,
    Fact,
    FactChanges,
    FactDraft,
    Note,
    Owner,
    Receipt,
    ToolCallPart,
)
from remanence.types.receipt import chain, digest, tombstone

WORDS = (b"xylophone", b"quetzalcoatl", b"8814-2207")
SECRET = "My xylophone teacher Quetzalcoatl has the number 8814-2207."


def traces(path: Path) -> list[tuple[str, bytes]]:
    """Return the words of the secret that are left in the database's files, with the file."""
    files = [file for file in path.parent.iterdir() if file.name.startswith(path.name)]
    return [
        (file.name, word)
        for file in files
        for word in WORDS
        if word[:8] in file.read_bytes().lower()
    ]


def filler(number: int) -> Message:
    return Message.user(f"Line {number}: the meeting on day {number} was about chapter {number}.")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@asynccontextmanager
async def impatient(path: Path, settings: Settings | None = None) -> AsyncIterator[Memory]:
    """Yield a memory that waits 0.1 s, not 5 s, for others that hold its file."""
    store = await open_store(f"sqlite:///{path}", pragmas={"busy_timeout": 100})
    async with memory_on(store, FixedClock(), settings) as memory:
        yield memory
    await store.close()


async def test_a_nearly_full_disk_is_left_writable_and_the_erasure_repeated(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with Memory.open(f"sqlite:///{path}", settings=Settings(workers=0)) as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user(SECRET, id="m1"))
    size = path.stat().st_size
    async with Memory.open(f"sqlite:///{path}", settings=Settings(workers=0)) as memory:
        chat = memory.conversation("a")
        os.truncate(path, shutil.disk_usage(tmp_path).free)  # a hole, which takes no space

        with pytest.raises(StoreUnavailable, match=r"MB of free space.*repeat the erasure"):
            await chat.forget("m1")
        await chat.append(Message.user("more"))
        os.truncate(path, size)
        receipt = await chat.forget("m1")

    assert receipt.erased
    assert traces(path) == []


async def test_a_large_log_of_earlier_writes_needs_no_free_space_for_an_erasure(path: Path) -> None:
    async with Memory.open(f"sqlite:///{path}", settings=Settings(workers=0)) as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user(SECRET, id="m1"))
        os.truncate(f"{path}-wal", shutil.disk_usage(path.parent).free)  # a hole

        receipt = await chat.forget("m1")

        assert receipt.erased
        assert traces(path) == []


async def test_no_byte_of_a_deleted_conversation_is_left_when_delete_returns(path: Path) -> None:
    async with Memory.open(f"sqlite:///{path}") as memory:
        other = memory.conversation("other", user="ana")
        chat = memory.conversation("chat", user="ana")
        for number in range(40):
            await other.append(*[filler(number * 10 + line) for line in range(10)])
            await chat.append(Message.user(f"{number}. {SECRET}"))
        await chat.end()
        await chat.recall("teacher")
        assert traces(path)

        was = (await chat.messages())[0]

        receipt = await chat.delete()

        assert receipt is not None
        assert (receipt.conversations, len(receipt.messages)) == (("chat",), 40)
        assert receipt.messages[0].digest == digest(was, receipt.salt)
        assert await chat.delete() is None
        assert traces(path) == []
        assert len(await other.messages()) == 400
        assert [p for p in await memory.check() if p.level != "info"] == []


async def test_no_byte_of_a_forgotten_fact_is_left_when_forget_returns(path: Path) -> None:
    async with Memory.open(f"sqlite:///{path}") as memory:
        for number in range(30):
            await memory.facts.save(f"Fact {number} is about chapter {number}", user="ana")
        fact = await memory.facts.save(SECRET, user="ana")
        assert traces(path)

        await memory.facts.forget(fact.id, user="ana")

        assert traces(path) == []
        assert len(await memory.facts.list(user="ana")) == 30


class Sentences:
    """An extractor that does not say from which message a fact is."""

    name = "sentences"

    async def extract(self, request: ExtractRequest) -> tuple[FactDraft, ...]:
        return tuple(FactDraft(summary=m.text) for m in request.messages if m.role == "user")


async def test_what_was_read_for_facts_before_its_message_was_forgotten_becomes_none(
    path: Path,
) -> None:
    class Late(Sentences):
        async def extract(self, request: ExtractRequest) -> tuple[FactDraft, ...]:
            found = await super().extract(request)
            if any(SECRET in draft.summary for draft in found):
                await chat.forget(message_ids[0])
            return found

    async with Memory.open(f"sqlite:///{path}", extractor=Late()) as memory:
        chat = memory.conversation("a", user="ana")
        stored = await chat.append(Message.user(SECRET), Message.user("I like tea."))
        message_ids = [message.id or "" for message in stored]
        async with asyncio.timeout(20):
            await chat.flush(everything=True)
        facts = await memory.facts.list(user="ana")

        assert [fact.summary for fact in facts] == ["I like tea."]
        assert traces(path) == []


async def test_facts_without_a_source_go_with_the_messages_that_were_read_for_them(
    path: Path,
) -> None:
    async with Memory.open(f"sqlite:///{path}", extractor=Sentences()) as memory:
        chat = memory.conversation("a", user="ana")
        (message, _) = await chat.append(Message.user(SECRET), Message.assistant("Noted."))
        await chat.flush(everything=True)
        assert message.id is not None
        receipt = await chat.forget(message.id)

        assert len(receipt.facts) == 1
        assert traces(path) == []


@pytest.mark.parametrize("forgotten", [1, 2])
async def test_a_fact_that_quotes_a_question_goes_with_it_and_with_the_answer(
    path: Path, forgotten: int
) -> None:
    async with Memory.open(f"sqlite:///{path}") as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(
            Message.assistant("How many xylophones does Quetzalcoatl bring?"),
            Message.user("fourteen then."),
        )
        await chat.end()
        (fact,) = await memory.facts.list(user="ana")
        assert "Quetzalcoatl" in fact.summary

        message_id = (await chat.messages())[forgotten - 1].id
        assert message_id is not None

        await chat.forget(message_id)

        assert await memory.facts.list(user="ana", history=True) == ()


@pytest.mark.parametrize(
    ("reply", "forgotten", "is_erased"),
    [
        ("Noted.", "m1", True),
        ("Noted.", "m3", False),
        ("Noted.", "m5", True),
        ("Shall I put 18:15 in the calendar?", "m3", True),  # one of two quotations may be from it
    ],
)
async def test_a_correction_goes_with_either_message_and_not_with_one_between_them(
    path: Path, reply: str, forgotten: str, is_erased: bool
) -> None:
    async with Memory.open(f"sqlite:///{path}") as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(
            Message.user("My yoga class starts at 18:15 on Thursdays.", id="m1"),
            Message.assistant("Enjoy it!", id="m2"),
            Message.user("I was at the clinic with a rash yesterday.", id="m3"),
            Message.assistant(reply, id="m4"),
            Message.user("sorry, 18:45", id="m5"),
        )
        await chat.end()
        (fact,) = await memory.facts.list(user="ana")
        assert fact.summary.startswith("“My yoga class")
        assert fact.summary.endswith("18:45")

        await chat.forget(forgotten)

        found = await memory.facts.list(user="ana")
        assert (fact in found) is not is_erased


async def test_messages_of_a_conversation_that_was_begun_anew_are_left_alone(path: Path) -> None:
    async with Memory.open(f"sqlite:///{path}") as memory:
        chat = memory.conversation("a", user="ana")
        store = await open_store(f"sqlite:///{path}")
        gone = await chat.append(Message.user(SECRET))
        await chat.delete()
        await chat.append(Message.user("Something else."))
        forgetting = Forgetting(
            store=store,
            segment_writer=Any,  # type: ignore[arg-type]  # it is not reached
            clock=FixedClock(),
            count=lambda _: 1,
            salt="salt",
            erase_outside=Any,  # type: ignore[arg-type]  # it is not reached
        )

        with pytest.raises(StoreError, match="was deleted"):
            await forgetting.forget(chat.ref, Owner("default", "ana"), gone, set())
        await store.close()

        assert [message.text for message in await chat.messages()] == ["Something else."]


@pytest.mark.parametrize("what", ["a fact", "a conversation"])
async def test_forgetting_again_erases_what_another_reader_had_kept(path: Path, what: str) -> None:
    async with impatient(path) as memory:
        chat = memory.conversation("a", user="ana")
        if what == "a fact":
            fact = await memory.facts.save(SECRET, user="ana")
        else:
            await chat.append(Message.user(SECRET))

        async def forget() -> object:
            if what == "a fact":
                return await memory.facts.forget(fact.id, user="ana")
            return await chat.delete()

        reader = apsw.Connection(str(path))
        reader.execute("BEGIN; SELECT count(*) FROM messages").get  # noqa: B018 - a snapshot
        with pytest.raises(StoreUnavailable, match="repeat the erasure"):
            await forget()
        reader.close()
        assert traces(path)

        assert await forget(), "it is the one that finishes the erasure"
        assert not await forget()

        assert traces(path) == []


@pytest.mark.parametrize("what", ["a fact", "a conversation"])
async def test_forgetting_again_finishes_what_a_crash_had_interrupted(
    path: Path, what: str
) -> None:
    async with Memory.open(f"sqlite:///{path}") as memory:
        chat = memory.conversation("a", user="ana")
        store = await open_store(f"sqlite:///{path}")
        if what == "a fact":
            fact = await memory.facts.save(SECRET, user="ana")
            await store.forget_fact(fact.owner, fact.id)  # all that was done before the crash
        else:
            await chat.append(Message.user(SECRET))
            await store.delete(chat.ref)
        await store.close()

        if what == "a fact":
            assert not await memory.facts.forget(fact.id, user="ana")
        else:
            assert await chat.delete() is None

        assert traces(path) == []


async def test_copies_that_sqlite_left_on_other_pages_are_gone_too(path: Path) -> None:
    random = Random(1)
    owner = Owner("default", "ana")
    facts = [
        Fact(
            id=f"fact_{number}",
            tenant="default",
            user="ana",
            summary=f"{random.randrange(10**9)} Number{number:03}. {'z' * random.randint(10, 600)}",
            type="knowledge",
            created_at=START,
            valid_from=START,
        )
        for number in range(300)
    ]
    random.shuffle(facts)
    store = await open_store(f"sqlite:///{path}")
    await store.save_facts(FactChanges(facts=tuple(facts)))

    for fact in facts[:250]:
        await store.forget_fact(owner, fact.id)
    await store.scrub()

    content = b"".join(file.read_bytes() for file in path.parent.glob("memory.db*"))
    left = [fact.id for fact in facts if fact.summary.split()[1].encode() in content]
    assert sorted(left) == sorted(fact.id for fact in facts[250:])
    await store.close()


SMALL = Policy.default(
    observe_tokens=200,
    tail_tokens=400,
    tail_keep_tokens=100,
    keep_last=2,
    reflect_tokens=(300, 600),
    reflect_min_interval_seconds=0,
    max_context_tokens=4_000,
)


async def fill(chat: Conversation, *, messages: int, secret_at: int) -> str:
    """Append messages, one of them the secret, let all be observed, and return the secret's id."""
    for number in range(1, messages + 1):
        text = SECRET if number == secret_at else filler(number).text
        await chat.append(Message.user(text, id=f"m{number}"), Message.assistant("Noted."))
        if number % 20 == 0:
            await chat.flush()
            await chat.context()
    await chat.flush(everything=True)
    return f"m{secret_at}"


async def require_sound(memory: Memory, chat: Conversation) -> None:
    state, snapshot, context = await chat.state(), await chat.snapshot(), await chat.context()
    check_tiling(state, snapshot.segments)
    check_coverage(context, state, snapshot.segments)
    assert [problem for problem in await memory.check() if problem.level == "error"] == []
    assert "quetzal" not in context.to_text().lower()


@pytest.mark.parametrize("secret_at", slow_except([3, 40, 119, 120], [40, 120]))
async def test_no_byte_of_a_forgotten_message_is_left_and_its_place_stays(
    path: Path, secret_at: int
) -> None:
    async with Memory.open(f"sqlite:///{path}", policy=SMALL) as memory:
        chat = memory.conversation("chat", user="ana")
        secret_id = await fill(chat, messages=120, secret_at=secret_at)
        assert await chat.reflections()
        before = await chat.messages()
        was = next(message for message in before if message.id == secret_id)

        receipt = await chat.forget(secret_id)

        assert traces(path) == []
        messages = await chat.messages()
        (tomb,) = (message for message in messages if message.kind == "forgotten")
        assert (tomb.seq, tomb.id, tomb.role, tomb.created_at) == (
            was.seq,
            was.id,
            was.role,
            was.created_at,
        )
        assert tomb.digest == digest(was, receipt.salt) == receipt.messages[0].digest
        assert [m for m in messages if m != tomb] == [m for m in before if m.id != secret_id]
        assert receipt.kept == chain(messages)
        assert receipt.segments
        assert await chat.recall("xylophone") == ()
        await require_sound(memory, chat)


async def test_no_note_quotes_a_forgotten_message(path: Path) -> None:
    async with Memory.open(f"sqlite:///{path}") as memory:
        chat = memory.conversation("chat", user="ana")
        question = Message.assistant("The Quetzalcoatl room or the other one?", id="secret")
        asked, answer = Message.user("Where do we meet?"), Message.user("the first one then")
        await chat.append(asked, question, answer, Message.assistant("Noted."))
        await chat.flush(everything=True)
        (observation,) = await chat.observations()
        assert "“The Quetzalcoatl room or the other one?” – the first one" in observation.text

        await chat.forget("secret")

        texts = [segment.text for segment in await chat.observations()]
        assert "first one" in " ".join(texts)
        assert "“" not in " ".join(texts)
        assert traces(path) == []


async def test_what_stood_beside_a_forgotten_message_is_noted_again(path: Path) -> None:
    async with Memory.open(f"sqlite:///{path}") as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(
            Message.user(SECRET, id="secret"),
            Message.user("I live in Lisbon, Rua Augusta 12."),
        )
        await chat.flush(everything=True)

        receipt = await chat.forget("secret")

        (observation,) = await chat.observations()
        assert observation.id not in receipt.segments
        assert "Lisbon" in observation.text
        assert "Quetzalcoatl" not in observation.lost


async def test_a_receipt_says_which_notes_are_new_and_how_many_lines_differ(path: Path) -> None:
    async with Memory.open(f"sqlite:///{path}", observer=Quoting()) as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(Message.user(SECRET, id="secret"), filler(1))
        await chat.flush(everything=True)

        receipt = await chat.forget("secret")

        (observation,) = await chat.observations()
        assert receipt.remade == (observation.id,)
        assert (receipt.notes_gone, receipt.notes_new) == (1, len(observation.notes))
        assert "Line 1" in observation.notes[0].text


async def test_a_receipt_names_facts_made_from_a_message_and_earlier_ones_hold_again(
    path: Path,
) -> None:
    async with Memory.open(f"sqlite:///{path}") as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(Message.user("I live in Lisbon.", id="old"))
        await chat.end()
        await chat.append(Message.user("I live in Quetzalcoatl now.", id="new"))
        await chat.end()
        assert ["Quetzal" in f.summary for f in await memory.facts.list(user="ana")] == [True]

        receipt = await chat.forget("new")

        assert len(receipt.facts) == 1
        assert ["Lisbon" in f.summary for f in await memory.facts.list(user="ana")] == [True]
        assert traces(path) == []


@pytest.mark.parametrize("what", ["conversation", "user"])
async def test_a_receipt_names_facts_of_the_history_too(path: Path, what: str) -> None:
    async with Memory.open(f"sqlite:///{path}") as memory:
        chat = memory.conversation("chat", user="ana")
        for city in ("Lisbon", "Porto"):
            await chat.append(Message.user(f"I live in {city} now."))
            await chat.end()
        facts = await memory.facts.list(user="ana", history=True)
        receipt = await (chat.delete() if what == "conversation" else memory.forget_user("ana"))

    assert receipt is not None
    assert len(facts) == 2
    assert set(receipt.facts) == {fact.id for fact in facts}


async def test_a_message_that_is_forgotten_again_is_not_in_the_receipt_again(path: Path) -> None:
    async with Memory.open(f"sqlite:///{path}") as memory:
        chat = memory.conversation("chat")
        await chat.append(Message.user("Hello.", id="one"), Message.user("Bye.", id="two"))
        await chat.forget("one")
        receipt = await chat.forget("one", "two")

    assert [message.id for message in receipt.messages] == ["two"]


CALL = ToolCallPart(id="call", name="look_up", arguments="{}")


@pytest.mark.parametrize(
    ("message", "altered"),
    [
        (Message.assistant(tool_calls=[CALL]), replace(CALL, name="pay")),
        (Message.assistant(tool_calls=[CALL]), replace(CALL, id="other")),
        (Message.user(SECRET), CALL),
    ],
)
async def test_a_changed_call_of_a_tombstone_does_not_fit_the_receipt(
    message: Message, altered: ToolCallPart
) -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("chat")
        await chat.append(message.replace(id="one"))
        receipt = await chat.forget("one")
        (tomb,) = await chat.messages()

    assert chain([tomb]) == receipt.kept
    assert chain([tomb.replace(content=(altered,))]) != receipt.kept


@asynccontextmanager
async def with_blocks(path: Path, folder: Path) -> AsyncIterator[tuple[Memory, Conversation]]:
    """A memory with a conversation whose messages are also in a file of blocks."""
    settings = Settings(blocks_directory=str(folder / "blocks"))
    async with Memory.open(f"sqlite:///{path}", settings=settings) as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(Message.user(SECRET, id="secret"), filler(1))
        await chat.end()
        yield memory, chat


async def test_forgetting_a_message_again_changes_nothing_and_the_receipt_says_so(
    path: Path, tmp_path: Path
) -> None:
    async with with_blocks(path, tmp_path) as (memory, chat):
        first = await chat.forget("secret")
        await chat.end()
        file = tmp_path / "blocks" / "chat.jsonl"
        before, log, events = (
            await chat.state(),
            await chat.log(),
            await memory.read_events(after=0),
        )
        blocks = file.read_bytes()

        again = await chat.forget("secret")

        assert (first.erased, again.erased) == (True, False)
        assert (again.messages, again.segments, again.files) == ((), (), ())
        assert again.kept == chain(await chat.messages())
        assert await chat.state() == before
        assert await chat.log() == log
        assert await memory.read_events(after=0) == events
        assert blocks.count(b"\n") == 1
        assert file.read_bytes() == blocks


async def test_forgetting_a_message_again_erases_the_bytes_that_a_crash_had_left(
    path: Path,
) -> None:
    async with Memory.open(f"sqlite:///{path}", settings=Settings(workers=0)) as memory:
        chat = memory.conversation("chat")
        await chat.append(Message.user("Never mind.", id="other"))
        await chat.forget("other")  # behind the erasure that opening a memory begins
        (message,) = await chat.append(Message.user(SECRET, id="secret"))
        store = await open_store(f"sqlite:///{path}")
        erasure = Erasure(tombstones=(tombstone(message, "salt"),))
        await store.forget(await chat.state(), erasure, at=START)  # all that was done before
        await store.close()
        assert traces(path)

        receipt = await chat.forget("secret")

        assert (receipt.erased, receipt.messages) == (False, ())
        assert traces(path) == []


async def test_forgetting_a_message_again_erases_the_blocks_that_a_crash_had_left(
    path: Path, tmp_path: Path
) -> None:
    async with with_blocks(path, tmp_path) as (_, chat):
        file = tmp_path / "blocks" / "chat.jsonl"
        left = file.read_bytes()
        await chat.forget("secret")
        file.write_bytes(left)

        receipt = await chat.forget("secret")

        assert (receipt.erased, receipt.files) == (True, (str(file),))
        assert file.read_bytes() == b""


@pytest.mark.parametrize("first", ["one", "two"])
async def test_a_fact_said_in_two_conversations_stays_until_both_are_deleted(
    path: Path, first: str
) -> None:
    async with Memory.open(f"sqlite:///{path}", extractor=Sentences()) as memory:
        chats = {name: memory.conversation(name, user="ana") for name in ("one", "two")}
        for chat in chats.values():
            await chat.append(Message.user(SECRET))
            await chat.end()
        second = chats["two" if first == "one" else "one"]

        await chats[first].delete()
        left = await memory.facts.list(user="ana")
        assert [(fact.summary, fact.conversation) for fact in left] == [(SECRET, second.ref.id)]
        assert await memory.facts.search("xylophone", user="ana") == left
        await second.delete()

        assert await memory.facts.list(user="ana", history=True) == ()
        assert traces(path) == []


async def test_a_fact_said_in_two_messages_stays_in_the_words_of_the_one_that_is_left(
    path: Path,
) -> None:
    async with Memory.open(f"sqlite:///{path}", extractor=Sentences()) as memory:
        chat = memory.conversation("chat", user="ana")
        words = "My piano teacher Ines comes each Monday evening and brings bread, cake and {} tea."
        for id_, colour in (("first", "xylophone"), ("second", "yellow")):
            await chat.append(Message.user(words.format(colour), id=id_))
            await chat.end()
        (fact,) = await memory.facts.list(user="ana")

        receipt = await chat.forget("first")
        left = await memory.facts.list(user="ana", history=True)
        await chat.forget("second")

        assert receipt.facts == (fact.id,)
        assert [each.summary for each in left] == [words.format("yellow")]
        assert await memory.facts.list(user="ana", history=True) == ()
        assert traces(path) == []


async def test_a_fact_that_is_forgotten_by_its_id_goes_however_often_it_was_said(
    path: Path,
) -> None:
    async with Memory.open(f"sqlite:///{path}", extractor=Sentences()) as memory:
        for name in ("one", "two", "three"):
            chat = memory.conversation(name, user="ana")
            await chat.append(Message.user(SECRET, id=name))
            await chat.end()
        (fact,) = await memory.facts.list(user="ana")

        await chat.forget("three", facts=[fact.id])

        assert await memory.facts.list(user="ana", history=True) == ()


async def test_an_unknown_id_is_named_with_a_remedy_for_the_library_and_the_shell(
    path: Path,
) -> None:
    async with Memory.open(f"sqlite:///{path}") as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(Message.user("Hello.", id="m"))
        fact = await memory.facts.save("I keep bees", user="ana")

        for messages, facts, problem in (
            (["x"], [], "conversation 'chat' has no message 'x': find the ids by a query"),
            ([fact.id], [], "it is the id of a fact, so name it as a fact"),
            (["m"], ["x"], "the user of conversation 'chat' has no fact 'x'"),
        ):
            with pytest.raises(InvalidArgument, match=problem):
                await chat.forget(*messages, facts=facts)
        (message,) = await chat.messages()

        assert message.text == "Hello."


async def test_a_fact_that_was_also_saved_by_hand_outlives_its_conversation(path: Path) -> None:
    async with Memory.open(f"sqlite:///{path}", extractor=Sentences()) as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(Message.user("I keep bees."))
        await chat.end()
        for _ in range(2):
            await memory.facts.save("I keep bees", user="ana")

        await chat.delete()

        (fact,) = await memory.facts.list(user="ana")
        assert (fact.summary, fact.conversation, fact.made_by) == ("I keep bees", None, "saved")


@pytest.mark.parametrize(
    ("forgotten", "current"), [("rome", "Bern"), ("oslo", "Bern"), ("bern", "Oslo")]
)
async def test_the_latest_value_that_is_left_is_current_when_another_is_forgotten(
    path: Path, forgotten: str, current: str
) -> None:
    async with Memory.open(f"sqlite:///{path}") as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(Message.user("I live in Rome.", id="rome"))
        await chat.end()
        for city in ("Oslo", "Bern"):  # both are read at once
            await chat.append(Message.user(f"I live in {city} now.", id=city.lower()))
        await chat.end()

        await chat.forget(forgotten)

        assert [current in f.summary for f in await memory.facts.list(user="ana")] == [True]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (2, 1, 0), (1, 2, 0)])
async def test_a_value_counts_from_when_it_was_said_in_whatever_order_conversations_end(
    path: Path, order: tuple[int, ...]
) -> None:
    async with Memory.open(f"sqlite:///{path}", clock=FixedClock()) as memory:
        chats = [memory.conversation(name, user="ana") for name in ("one", "two", "three")]
        for day, (chat, city) in enumerate(
            zip(chats, ("Rome", "Oslo", "Bern"), strict=True), start=1
        ):
            at = START + timedelta(days=day)
            await chat.append(Message.user(f"I live in {city}.", created_at=at))
        for number in order:
            await chats[number].end()

        current = []
        for chat in reversed(chats):
            (fact,) = await memory.facts.list(user="ana")
            current.append(fact.summary)
            await chat.delete()

        assert current == ["I live in Bern.", "I live in Oslo.", "I live in Rome."]
        assert await memory.facts.list(user="ana", history=True) == ()


async def test_a_query_names_candidates_and_erases_nothing(path: Path) -> None:
    async with Memory.open(f"sqlite:///{path}") as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(Message.user("My phone number is 8814-2207.", id="a"), filler(2))
        await chat.append(Message.user("Call 8814-2207, please.", id="b"))
        fact = await memory.facts.save("The user's phone number is 8814-2207", user="ana")

        found = await chat.forget(query="8814-2207")

        assert (found.erased, found.message_ids, found.facts) == (False, ("a", "b"), (fact.id,))
        assert found.messages[1].text == "user: Call 8814-2207, please."
        assert [m.kind for m in await chat.messages()] == ["message"] * 3
        receipt = await chat.forget(*found.message_ids, facts=found.facts)
        assert (receipt.erased, receipt.message_ids, receipt.facts) == (
            True,
            ("a", "b"),
            (fact.id,),
        )
        assert not any(message.text for message in receipt.messages)
        assert traces(path) == []


async def test_a_query_finds_a_fact_by_its_tags(path: Path) -> None:
    async with Memory.open(f"sqlite:///{path}") as memory:
        fact = await memory.facts.save("Ana keeps bees", user="ana", tags=["xylophone"])

        found = await memory.conversation("chat", user="ana").forget(query="Xylophone")

    assert found.facts == (fact.id,)


@pytest.mark.parametrize("query", ["speaker", "home", "wish", "xylo"])
async def test_a_query_finds_no_fact_by_a_part_of_a_tag_or_a_tag_that_nobody_gave_it(
    path: Path, query: str
) -> None:
    async with Memory.open(f"sqlite:///{path}") as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(
            Message.user("I live in Lisbon."),
            Message.user("Please answer in short sentences."),
            Message.user("I have two cats.", name="Bo"),
        )
        await chat.end()
        facts = await memory.facts.list(user="ana")
        await memory.facts.save("Ana keeps bees", user="ana", tags=["xylophone"])

        found = await chat.forget(query=query)

    tags = {tag for fact in facts for tag in fact.tags}
    assert {"slot:home", "speaker:Bo", "wish"} <= tags
    assert found.facts == ()


@pytest.mark.parametrize("query", ["912345678", "912-345-678"])
async def test_a_query_finds_a_number_in_whatever_groups_its_digits_are(
    path: Path, query: str
) -> None:
    texts = ("Call +351 912 345 678.", "Call 912345678.", "+351912345678", "(+351) 912-345-678")
    async with Memory.open(f"sqlite:///{path}") as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(*map(Message.user, texts), Message.user("I have 3 cats and 2 dogs."))
        fact = await memory.facts.save("The number is 912 345 678", user="ana")

        found = await chat.forget(query=query)

        assert [message.seq for message in found.messages] == [1, 2, 3, 4]
        assert fact.id in found.facts


async def test_a_query_of_a_few_digits_finds_the_number_as_it_is_written(path: Path) -> None:
    async with Memory.open(f"sqlite:///{path}") as memory:
        chat = memory.conversation("chat", user="ana")
        texts = ("Version 1.5 is out.", "It costs 15 euros.", "See page 1-5.")
        await chat.append(*map(Message.user, texts))

        found = await chat.forget(query="15")

        assert [message.seq for message in found.messages] == [2]


async def test_a_query_looks_in_all_conversations_of_the_user_if_it_is_asked_to(path: Path) -> None:
    async with Memory.open(f"sqlite:///{path}") as memory:
        for name, user in (("one", "ana"), ("two", "ana"), ("three", "bo")):
            chat = memory.conversation(name, user=user)
            await chat.append(Message.user("My phone number is 8814-2207.", id="m"))
        chat = memory.conversation("four", user="ana")

        here = await chat.forget(query="8814-2207")
        found = await chat.forget(query="8814-2207", everywhere=True)
        for message in found.messages:
            await chat.sibling(message.conversation).forget(message.id)

        assert here.messages == ()
        assert [message.conversation for message in found.messages] == ["one", "two"]
        assert {hit.conversation for hit in await memory.recall("8814-2207", user="bo")} == {
            "three"
        }
        assert await memory.recall("8814-2207", user="ana") == ()
        with pytest.raises(WrongUser):
            await chat.sibling("three").forget("m")
        with pytest.raises(InvalidArgument, match="only a query looks everywhere"):
            await chat.forget("m", everywhere=True)


async def test_a_query_finds_a_fact_by_the_words_in_which_it_was_said_again(path: Path) -> None:
    async with Memory.open(f"sqlite:///{path}", extractor=Sentences()) as memory:
        for name, place in (("one", "at the opera"), ("two", "at the opera for them")):
            chat = memory.conversation(name, user="ana")
            await chat.append(Message.user(f"My teacher sings {place}."))
            await chat.end()
        (fact,) = await memory.facts.list(user="ana")

        found = await memory.conversation("three", user="ana").forget(query="for them")

        assert found.facts == (fact.id,)


async def test_what_is_not_there_cannot_be_forgotten(path: Path) -> None:
    async with Memory.open(f"sqlite:///{path}") as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(filler(1))

        with pytest.raises(InvalidArgument, match="no message 'nothing'"):
            await chat.forget("nothing")
        with pytest.raises(InvalidArgument, match="nothing to forget"):
            await chat.forget()
        with pytest.raises(InvalidArgument, match="only finds candidates"):
            await chat.forget("m1", query="phone")


async def test_a_retried_append_of_a_forgotten_message_brings_nothing_back(path: Path) -> None:
    async with Memory.open(f"sqlite:///{path}") as memory:
        chat = memory.conversation("chat")
        message = Message.user(SECRET, id="secret")
        await chat.append(message)
        await chat.forget("secret")

        (again,) = await chat.append(message)

        assert again.kind == "forgotten"
        assert traces(path) == []


async def test_an_observation_under_way_brings_nothing_back(path: Path) -> None:
    reached, opened = asyncio.Event(), asyncio.Event()

    class Slow:
        async def observe(self, request: ObserveRequest) -> Draft:
            text = " ".join(message.text for message in request.messages)
            if "Quetzalcoatl" in text:
                reached.set()
                await opened.wait()
            last = request.messages[-1].seq
            note = Note(text=text[:200], first_seq=request.messages[0].seq, last_seq=last)
            return Draft(notes=(note,), made_by="slow/1")

    async with Memory.open(f"sqlite:///{path}", observer=Slow()) as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(Message.user(SECRET, id="secret"), filler(1), filler(2))
        async with asyncio.TaskGroup() as group:
            group.create_task(chat.flush(everything=True))
            await reached.wait()
            await chat.forget("secret")
            opened.set()

        assert (await chat.state()).observed_seq == 3
        assert "Line 1" in (await chat.observations())[0].text
        assert traces(path) == []


async def test_a_call_and_its_result_stay_paired_when_one_is_forgotten(path: Path) -> None:
    async with Memory.open(f"sqlite:///{path}") as memory:
        chat = memory.conversation("chat")
        call = ToolCallPart(id="call_1", name="lookup", arguments=f'{{"q": "{SECRET}"}}')
        await chat.append(
            Message.user("Look it up."),
            Message.assistant(tool_calls=[call], id="call"),
            Message.tool("call_1", SECRET, id="result"),
        )

        await chat.forget("call", "result")

        request = (await chat.context()).to_openai()["messages"]
        assert request[1]["tool_calls"][0]["function"] == {"name": "lookup", "arguments": "{}"}
        assert (request[2]["tool_call_id"], request[2]["content"]) == ("call_1", "[forgotten]")
        assert traces(path) == []


async def test_a_file_that_a_deletion_did_not_rewrite_is_clean_after_the_next_one(
    path: Path,
) -> None:
    async with Memory.open(f"sqlite:///{path}") as memory:
        for name in ("first", "second"):
            await memory.conversation(name).append(Message.user(SECRET))
        receipt = await memory.conversation("first").delete(scrub=False)
        problems = await memory.check()
        await memory.conversation("second").delete()

        assert receipt is not None
        assert [problem.what[:26] for problem in problems] == ["the file was not rewritten"]
        assert traces(path) == []
        assert await memory.check() == ()


async def test_blocks_are_rewritten_and_daily_notes_of_people_are_named(
    path: Path, tmp_path: Path
) -> None:
    settings = Settings(
        blocks_directory=str(tmp_path / "blocks"), daily_directory=str(tmp_path / "days")
    )
    async with Memory.open(f"sqlite:///{path}", settings=settings) as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(Message.user(SECRET, id="secret"), filler(1))
        await chat.end()
        day = await memory.note(f"Ana said: {SECRET}", user="ana")
        files = list((tmp_path / "blocks").iterdir())
        assert any(b"Quetzalcoatl" in file.read_bytes() for file in files)

        receipt = await chat.forget("secret")

        assert not any(b"Quetzalcoatl" in file.read_bytes() for file in files)
        assert receipt.files
        assert set(receipt.files) <= set(map(str, files))
        assert receipt.still_in == (str(day),)


@pytest.mark.parametrize("what", ["a message", "a user"])
async def test_blocks_that_could_not_be_written_go_when_it_is_forgotten_again(
    tmp_path: Path, what: str
) -> None:
    settings = Settings(url="sqlite:///:memory:", blocks_directory=str(tmp_path))
    async with Memory.open(settings=settings, policy=Policy.zora()) as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(Message.user(SECRET, id="secret"))
        await chat.end()
        across = tmp_path / "cross-session.jsonl"
        in_the_way = across.with_name(f"{across.name}.new")
        in_the_way.mkdir()

        async def forget() -> Receipt:
            if what == "a message":
                return await chat.forget("secret")
            return await memory.forget_user("ana")

        with pytest.raises(StoreUnavailable, match="cannot be read or written"):
            await forget()
        assert b"Quetzalcoatl" in across.read_bytes()
        in_the_way.rmdir()
        await forget()

    assert across.read_bytes() == b""


async def test_blocks_of_other_messages_that_name_a_value_go_when_it_is_forgotten_again(
    tmp_path: Path,
) -> None:
    settings = Settings(url="sqlite:///:memory:", blocks_directory=str(tmp_path))
    policy = Policy.default(observe_tokens=10, keep_last=0, note_ratio=1.0)
    async with Memory.open(settings=settings, policy=policy, observer=Quoting()) as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(Message.user(SECRET, id="secret"))
        await chat.end()
        await chat.append(Message.user("Line 2 is about the harbour, about boats and more boats."))
        await chat.end()
        file = tmp_path / "chat.jsonl"
        assert file.read_bytes().count(b"8814-2207") == 2
        in_the_way = file.with_name(f"{file.name}.new")
        in_the_way.mkdir()

        with pytest.raises(StoreUnavailable, match="cannot be read or written"):
            await chat.forget("secret")
        in_the_way.rmdir()
        receipt = await chat.forget("secret")

    assert b"8814-2207" not in file.read_bytes()
    assert receipt.message_ids == ("secret",)
    assert len(receipt.segments) == 2


async def erase(memory: Memory, what: str) -> Receipt | None:
    """Erase the message "secret" of Ana's conversation "chat", the conversation, or Ana."""
    chat = memory.conversation("chat", user="ana")
    if what == "a message":
        return await chat.forget("secret")
    return await (chat.delete() if what == "the conversation" else memory.forget_user("ana"))


async def embed_length(texts: Sequence[str]) -> list[list[float]]:
    return [[1.0, float(len(text) % 7)] for text in texts]


@pytest.mark.parametrize("what", ["a message", "the conversation", "the user"])
async def test_a_receipt_names_notes_vectors_and_files_whatever_is_erased(
    path: Path, tmp_path: Path, what: str
) -> None:
    blocks = tmp_path / "blocks"
    settings = Settings(blocks_directory=str(blocks))
    async with Memory.open(
        f"sqlite:///{path}", settings=settings, policy=Policy.zora(), embedder=embed_length
    ) as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(Message.user(SECRET, id="secret"))
        await chat.end()
        (reflection,) = await chat.reflections()

        receipt = await erase(memory, what)

    assert receipt is not None
    assert len(receipt.segments) == 2  # with the observation that was condensed
    assert receipt.segments[-1] == reflection.id
    assert receipt.notes_gone == len(reflection.notes) > 0
    assert receipt.vectors == 1 + receipt.notes_gone
    assert receipt.files == (str(blocks / "chat.jsonl"), str(blocks / "cross-session.jsonl"))


@pytest.mark.parametrize("what", ["a message", "the conversation", "the user"])
async def test_an_erasure_that_failed_at_a_file_is_repeated_in_a_new_process(
    path: Path, tmp_path: Path, what: str
) -> None:
    blocks = tmp_path / "blocks"
    settings = Settings(blocks_directory=str(blocks))
    async with Memory.open(f"sqlite:///{path}", settings=settings) as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(Message.user(SECRET, id="secret"), filler(1))
        await chat.end()
        across = blocks / "cross-session.jsonl"
        across.write_bytes((blocks / "chat.jsonl").read_bytes())
        in_the_way = across.with_name(f"{across.name}.new")
        in_the_way.mkdir()
        with pytest.raises(StoreUnavailable, match="cannot be read or written"):
            await erase(memory, what)
    in_the_way.rmdir()

    async with Memory.open(f"sqlite:///{path}", settings=settings) as memory:
        receipt = await erase(memory, what)

    assert receipt is not None
    assert receipt.message_ids[0] == "secret"
    assert traces(path) == []
    assert not any(b"Quetzalcoatl" in file.read_bytes() for file in blocks.iterdir())


@pytest.mark.parametrize(
    "name", ["x" * 246, "\u674e" * 82, "x" * 500], ids=["ASCII", "Chinese", "the longest"]
)
async def test_what_was_said_under_a_long_id_is_forgotten_with_its_blocks(
    path: Path, tmp_path: Path, name: str
) -> None:
    settings = Settings(blocks_directory=str(tmp_path / "blocks"))
    async with Memory.open(f"sqlite:///{path}", settings=settings) as memory:
        chat = memory.conversation(name, user="ana")
        await chat.append(Message.user(SECRET, id="secret"), filler(1))
        await chat.end()
        (file,) = (tmp_path / "blocks").iterdir()
        assert b"Quetzalcoatl" in file.read_bytes()

        message = await chat.forget("secret")
        left = file.read_bytes()
        user = await memory.forget_user("ana")

        assert (message.erased, user.erased) == (True, True)
        assert b"Quetzalcoatl" not in left
        assert not file.exists()
        assert await chat.delete() is None


async def test_a_forgotten_user_leaves_no_byte(path: Path, tmp_path: Path) -> None:
    settings = Settings(daily_directory=str(tmp_path / "days"))
    async with Memory.open(f"sqlite:///{path}", settings=settings) as memory:
        other = memory.conversation("other", user="ben")
        await other.append(filler(1))
        for name in ("one", "two"):
            chat = memory.conversation(name, user="Quetzalcoatl")
            await chat.append(Message.user(SECRET), Message.user("I live in Lisbon."))
            await chat.end()
        day = await memory.note("a note", user="Quetzalcoatl")

        receipt = await memory.forget_user("Quetzalcoatl")

        assert (receipt.conversations, len(receipt.messages)) == (("one", "two"), 4)
        assert receipt.files == (str(day),)
        assert not day.exists()
        assert traces(path) == []
        assert await memory.facts.list(user="Quetzalcoatl", history=True) == ()
        assert [state.ref.id for state in await memory.conversations()] == ["other"]
        assert await memory.check() == ()


async def test_an_erasure_of_a_user_says_if_anything_was_found(path: Path) -> None:
    async with Memory.open(f"sqlite:///{path}") as memory:
        await memory.facts.save("Ana lives in Lisbon.", user="ana")
        elsewhere = memory.conversation("chat", user="ana", tenant="credential-1")
        await elsewhere.append(Message.user("I live in Lisbon."))

        first = await memory.forget_user("ana")
        again = await memory.forget_user("ana")
        there = await memory.forget_user("ana", tenant="credential-1")

    assert (first.erased, again.erased, there.erased) == (True, False, True)
    assert again.conversations == again.facts == again.files == ()


async def test_an_erasure_that_failed_in_its_last_step_has_its_whole_receipt_when_it_is_repeated(
    path: Path,
) -> None:
    async with impatient(path) as memory:
        await memory.facts.save("Ana lives in Lisbon.", user="ana")
        chats = [memory.conversation(name, user="ana") for name in ("one", "two")]
        messages = [(await chat.append(Message.user(SECRET)))[0] for chat in chats]
        reader = apsw.Connection(str(path))
        reader.execute("BEGIN; SELECT count(*) FROM messages").get  # noqa: B018 - a snapshot
        with pytest.raises(StoreUnavailable):
            await chats[0].delete()
        with pytest.raises(StoreUnavailable):
            await memory.forget_user("ana")
        reader.close()

        user = await memory.forget_user("ana")
        one = await chats[0].delete()
        nobody = await memory.forget_user("ana")
        nothing = await chats[0].delete()

        assert traces(path) == []

    assert one is not None
    assert (user.erased, user.conversations, len(user.facts)) == (True, ("two",), 1)
    assert (one.erased, one.conversations, one.message_ids) == (True, ("one",), (messages[0].id,))
    assert user.messages[0].digest == digest(messages[1], user.salt)
    assert (nobody.erased, nothing) == (False, None)


async def test_messages_whose_erasure_failed_in_its_last_step_have_one_receipt_too(
    path: Path, tmp_path: Path
) -> None:
    settings = Settings(daily_directory=str(tmp_path / "days"), workers=0)
    async with impatient(path, settings) as memory:
        chat = memory.conversation("chat", user="ana")
        (message,) = await chat.append(Message.user(SECRET, id="secret"))
        await chat.end()
        day = await memory.note(SECRET, user="ana")
        found = await chat.forget(query="Quetzalcoatl")
        assert len(found.facts) == 1
        reader = apsw.Connection(str(path))
        reader.execute("BEGIN; SELECT count(*) FROM messages").get  # noqa: B018 - a snapshot
        with pytest.raises(StoreUnavailable, match="repeat the erasure"):
            await chat.forget(*found.message_ids, facts=found.facts)
        reader.close()

        receipt = await chat.forget(*found.message_ids, facts=found.facts)

        assert traces(path) == []
        assert receipt.kept == chain(await chat.messages())
        with pytest.raises(InvalidArgument, match="has no fact"):
            await chat.forget(*found.message_ids, facts=found.facts)

    assert (receipt.message_ids, receipt.facts) == (("secret",), found.facts)
    assert receipt.messages[0].digest == digest(message, receipt.salt)
    assert (len(receipt.segments), len(receipt.remade)) == (1, 1)
    assert receipt.still_in == (str(day),)


async def stored_segments(memory: Memory) -> dict[str, str]:
    """Return the texts of the user's segments, live and replaced, by id."""
    lines = [json.loads(line) async for line in memory.export_user("ana")]
    return {line["id"]: line["text"] for line in lines if line["line"] == "segment"}


@pytest.mark.parametrize(
    "reflect_tokens",
    [pytest.param((300, 600), marks=pytest.mark.slow), (100, 150, 200, 300)],
)
async def test_forgetting_under_reflections_again_and_again_keeps_their_other_notes(
    path: Path, reflect_tokens: tuple[int, ...]
) -> None:
    policy = SMALL.replace(reflect_tokens=reflect_tokens)
    async with Memory.open(f"sqlite:///{path}", policy=policy) as memory:
        chat = memory.conversation("chat", user="ana")
        await fill(chat, messages=120, secret_at=20)
        before = known = await stored_segments(memory)

        for message_id in ("m20", "m50", "m80", "m51", "m19", "m21"):
            receipt = await chat.forget(message_id)
            kept = {id_: known[id_] for id_ in receipt.remade if id_ in known}
            assert len(receipt.remade) - len(kept) == 1
            assert kept.items() <= (await stored_segments(memory)).items()
            await chat.flush(everything=True)
            await chat.context()
            known = await stored_segments(memory)

        assert len(known) <= len(before)

        assert traces(path) == []
        await require_sound(memory, chat)


async def past_notes(chat: Conversation, versions: range) -> dict[int, list[str]]:
    """Return the notes of the versions that can be shown."""
    shown: dict[int, list[str]] = {}
    for version in versions:
        with suppress(ConversationNotFound):
            shown[version] = [segment.text for segment in (await chat.snapshot(version)).segments]
    return shown


async def test_a_past_version_is_shown_as_it_was_or_refused_after_an_erasure(path: Path) -> None:
    async with Memory.open(f"sqlite:///{path}", policy=SMALL) as memory:
        chat = memory.conversation("chat", user="ana")
        secret_id = await fill(chat, messages=60, secret_at=50)
        assert await chat.reflections()
        versions = range((await chat.state()).lock_version + 1)
        before = await past_notes(chat, versions)

        await chat.forget(secret_id)
        after = await past_notes(chat, versions)

        assert len(before) == len(versions) > len(after) > 0
        assert after.items() <= before.items()


async def test_reflections_whose_sources_are_not_kept_are_noted_anew_from_the_messages(
    path: Path,
) -> None:
    policy = SMALL.replace(superseded="purge")
    async with Memory.open(f"sqlite:///{path}", policy=policy) as memory:
        chat = memory.conversation("chat", user="ana")
        secret_id = await fill(chat, messages=120, secret_at=10)
        (reflection, *_) = await chat.reflections()
        assert reflection.first_seq <= 19 <= reflection.last_seq

        await chat.forget(secret_id)

        assert traces(path) == []
        again = [s for s in await chat.reflections() if s.last_seq <= reflection.last_seq]
        assert (again[0].first_seq, again[-1].last_seq) == (1, reflection.last_seq)
        assert any("chapter" in segment.text for segment in again)
        await require_sound(memory, chat)


class Quoting:
    """Quotes all that it is shown, and the note before it, as a model may."""

    async def observe(self, request: ObserveRequest) -> Draft:
        first, last = request.messages[0].seq, request.messages[-1].seq
        text = " ".join(message.text for message in request.messages)
        if request.known:
            text += f" (earlier: {request.known[-1].text[-10:]})"
        return Draft(notes=(Note(text=text, first_seq=first, last_seq=last),), made_by="quoting/1")


class Recovering(Quoting):
    """Is down at first, then adds a number to its first notes."""

    drafts = 0

    async def observe(self, request: ObserveRequest) -> Draft:
        self.drafts += 1
        if self.drafts == 1:
            raise ModelError("server", "down")
        draft = await super().observe(request)
        number = f"{draft.notes[0].text} (8814-2207)"
        notes = (replace(draft.notes[0], text=number),) if self.drafts == 2 else draft.notes
        return replace(draft, notes=notes)


async def test_notes_that_were_made_again_never_give_way_to_the_earlier_ones(path: Path) -> None:
    clock = FixedClock()
    policy = Policy.default(
        observe_tokens=10,
        keep_last=0,
        note_ratio=1.0,
        tail_tokens=20,
        tail_keep_tokens=0,
        reflect_tokens=(100, 1_000),
        reflect_ratio=1.0,
        reflect_min_interval_seconds=0,
        fallback_after_failures=1,
    )
    async with Memory.open(
        f"sqlite:///{path}", policy=policy, observer=Recovering(), clock=clock
    ) as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(filler(1))
        await chat.flush(everything=True)
        (stand_in,) = await chat.observations()
        clock.advance(3_600)
        await chat.flush()
        (again,) = await chat.observations()
        for message in (Message.user(SECRET, id="secret"), filler(2).replace(id="m2")):
            await chat.append(message)
            await chat.flush(everything=True)
            await chat.context()
        other = await chat.forget("m2")
        secret = await chat.forget("secret")

    assert again.id in other.remade
    assert again.id in secret.segments
    assert stand_in.id not in secret.remade


async def test_notes_that_repeat_a_value_of_another_message_go_too_and_the_observer_makes_them(
    path: Path,
) -> None:
    policy = Policy.default(observe_tokens=10, keep_last=0, note_ratio=1.0)
    async with Memory.open(f"sqlite:///{path}", policy=policy, observer=Quoting()) as memory:
        chat = memory.conversation("chat")
        await chat.append(Message.user(SECRET, id="secret"))
        await chat.flush(everything=True)
        await chat.append(
            Message.user(
                "Line 2 is about the harbour, about boats, more boats, the pier, gulls, nets and the old tower."
            )
        )
        await chat.flush(everything=True)
        assert "8814-2207" in (await chat.observations())[1].text

        receipt = await chat.forget("secret")
        at_once = await chat.observations()
        await chat.flush()
        later = await chat.observations()

        assert len(receipt.segments) == 2
        assert at_once[0].made_by == "nothing"
        assert at_once[1].made_by in ("stand-in/extractive/1", "quoting/1")
        assert [s.made_by for s in later if s.text] == ["quoting/1"]
        assert "harbour" in later[1].text
        assert traces(path) == []


async def test_what_a_hook_withholds_is_not_noted_anew_either(path: Path) -> None:
    async def withhold(request: ObserveRequest) -> ObserveRequest:
        shown = tuple(m for m in request.messages if "salary" not in m.text)
        return replace(request, messages=shown)

    hooks = Hooks(before_observe=withhold)
    async with Memory.open(f"sqlite:///{path}", hooks=hooks) as memory:
        chat = memory.conversation("chat")
        await chat.append(
            Message.user(SECRET, id="secret"),
            Message.user("My salary is 91,250 euros."),
            Message.user("I live in Lisbon, Rua Augusta 12."),
        )
        await chat.flush(everything=True)

        await chat.forget("secret")

        (observation,) = await chat.observations()
        assert "Lisbon" in observation.text
        assert "91,250" not in observation.text


def test_the_hashes_of_a_receipt_are_those_of_earlier_ones() -> None:
    at = datetime(2027, 1, 4, 9, 30, tzinfo=UTC)
    said = Message.user("My PIN is 8823.", id="m1", created_at=at).replace(seq=1)
    answer = Message.assistant("Noted.", id="m2", created_at=at).replace(seq=2)

    hashes = digest(said, "salt"), chain([tombstone(said, "salt"), answer])

    assert hashes == (
        "ec9992983a5ae305e6e65907e8b90bc5b60d2369b5dbc5754369e5b3b6fafdea",
        "6b4faaa3c878d8ac9152ca5d07a1b2458f7aba0803eafdeb8540d839cf57caf2",
    )


async def test_forgetting_in_a_conversation_that_is_deleted_meanwhile_says_so() -> None:
    clock = FixedClock()
    store = FaultyStore(await open_store("sqlite:///:memory:", clock=clock))
    async with memory_on(store, clock, Settings(workers=0)) as memory:
        chat = memory.conversation("chat")
        await chat.append(Message.user(SECRET, id="m1"), Message.user("I have a cat."))
        await chat.end()
        gate = store.hold("segments", when="after")
        forgetting = asyncio.create_task(chat.forget("m1"))
        await asyncio.wait_for(gate.reached.wait(), 5)
        await chat.delete()
        gate.opened.set()
        with pytest.raises(StoreError, match="'chat' was deleted"):
            await asyncio.wait_for(forgetting, 5)
    await store.close()
