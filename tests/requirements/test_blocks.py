"""Blocks of observations as JSON Lines, and a conversation's notes exported and imported."""

import asyncio
import json
import stat
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from hypothesis import given, strategies as st
from tests.requirements.samples import TINY

from remanence import Memory, Message, Policy, Settings
from remanence.archive.blocks import Block, BlockStore
from remanence.conversation import Conversation
from remanence.errors import StoreUnavailable
from remanence.files import safe_name
from remanence.testing import ScriptedObserver, ScriptedReflector, check_tiling

AT = datetime(2026, 3, 2, 9, tzinfo=UTC)


def block(number: int, session: str = "s-1", **changes: object) -> Block:
    fields: dict[str, object] = {
        "id": f"obs_{number}_abc",
        "session_id": session,
        "created_at": AT,
        "tier": "session",
        "observations": f"[2026-03-02 09:0{number % 10}] NOTE note {number}\nsecond line, 메모",
        "source_message_range": (number * 20, number * 20 + 20),
        "estimated_tokens": 12,
    }
    return Block(**(fields | changes))  # type: ignore[arg-type]  # fields by name


@pytest.fixture
def store(tmp_path: Path) -> BlockStore:
    return BlockStore(tmp_path / "observations", keep_last=3)


def files(directory: Path) -> list[Path]:
    return sorted(directory.rglob("*.jsonl"))


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


@pytest.mark.req("Z-21", "Z-24")
async def test_a_block_is_one_line_with_the_fields_of_zora(
    store: BlockStore, tmp_path: Path
) -> None:
    await store.append(block(1))

    [line] = lines(tmp_path / "observations" / "s-1.jsonl")
    assert json.loads(line) == {
        "id": "obs_1_abc",
        "sessionId": "s-1",
        "createdAt": "2026-03-02T09:00:00+00:00",
        "tier": "session",
        "observations": "[2026-03-02 09:01] NOTE note 1\nsecond line, 메모",
        "sourceMessageRange": [20, 40],
        "estimatedTokens": 12,
    }


@pytest.mark.req("Z-23", "Z-26", "Z-79")
async def test_blocks_are_there_after_a_restart_in_the_order_of_appending(tmp_path: Path) -> None:
    await BlockStore(tmp_path).append(block(1), block(2))
    await BlockStore(tmp_path).append(block(3))

    loaded = await BlockStore(tmp_path).load_session("s-1")

    assert loaded.blocks == (block(1), block(2), block(3))
    assert loaded.malformed == 0
    assert (await BlockStore(tmp_path).load_session("other")).blocks == ()


@pytest.mark.req("Z-79")
async def test_appending_leaves_every_earlier_byte_as_it_was(
    store: BlockStore, tmp_path: Path
) -> None:
    file = tmp_path / "observations" / "s-1.jsonl"
    before = b""
    for number in range(5):
        await store.append(block(number))
        now = file.read_bytes()
        assert now.startswith(before)
        before = now


@pytest.mark.req("Z-23", "Z-25")
async def test_cross_session_blocks_of_all_sessions_are_in_one_file(
    store: BlockStore, tmp_path: Path
) -> None:
    for number in range(4):
        await store.append(block(number, f"s-{number}", tier="cross-session"))

    assert len(lines(tmp_path / "observations" / "cross-session.jsonl")) == 4
    newest = await store.load_cross_session(limit=2)
    assert [found.session_id for found in newest.blocks] == ["s-2", "s-3"]
    assert len((await store.load_cross_session()).blocks) == 4
    assert (await store.load_cross_session(limit=0)).blocks == ()


async def test_a_session_named_like_the_cross_session_file_has_its_own(store: BlockStore) -> None:
    await store.append(block(1, "cross-session"), block(2, tier="cross-session"))

    assert [b.id for b in (await store.load_session("cross-session")).blocks] == ["obs_1_abc"]
    assert [b.id for b in (await store.load_cross_session()).blocks] == ["obs_2_abc"]


@pytest.mark.req("Z-23", "Z-95")
@pytest.mark.parametrize(("keep_last", "kept"), [(None, 3), (2, 2), (0, 0), (9, 5)])
async def test_pruning_keeps_the_newest_blocks_and_counts_the_others(
    store: BlockStore, keep_last: int | None, kept: int
) -> None:
    await store.append(*(block(number) for number in range(5)))

    assert await store.prune("s-1", keep_last) == 5 - kept

    loaded = await store.load_session("s-1")
    assert loaded.blocks == tuple(block(number) for number in range(5 - kept, 5))
    assert await store.prune("never", keep_last) == 0


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b"3",
        b'{"id": "obs_9"}',
        b"\xff\xfe",
        b"[" * 200_000,
        json.dumps({"id": "x", "sourceMessageRange": [1, "2"]}).encode(),
    ],
)
async def test_a_malformed_line_is_skipped_and_counted(
    store: BlockStore, tmp_path: Path, line: bytes
) -> None:
    await store.append(block(1))
    file = tmp_path / "observations" / "s-1.jsonl"
    file.write_bytes(file.read_bytes() + line + b"\n")
    await store.append(block(2))

    loaded = await store.load_session("s-1")

    assert (loaded.blocks, loaded.malformed) == ((block(1), block(2)), 1)
    assert await store.prune("s-1", 1) == 1
    assert await store.load_session("s-1") == ((block(2),), 1)


@pytest.mark.parametrize("cut", range(1, 60, 7))
async def test_a_line_that_a_crash_cut_off_costs_no_other(
    store: BlockStore, tmp_path: Path, cut: int
) -> None:
    await store.append(block(1), block(2))
    file = tmp_path / "observations" / "s-1.jsonl"
    file.write_bytes(file.read_bytes()[:-cut])
    await store.append(block(3))

    loaded = await store.load_session("s-1")

    whole = (block(1), block(2), block(3)) if cut == 1 else (block(1), block(3))
    assert loaded == (whole, 0 if cut == 1 else 1)


@pytest.mark.req("Z-24", "Z-26")
@pytest.mark.parametrize("session", ["Session-ABC.1", "tägliche Notizen", "a b"])
async def test_a_file_that_zora_named_after_the_session_is_read_pruned_and_deleted(
    store: BlockStore, tmp_path: Path, session: str
) -> None:
    await store.append(block(1, "theirs"), block(2, "theirs"))
    (tmp_path / "observations" / "theirs.jsonl").rename(
        tmp_path / "observations" / f"{session}.jsonl"
    )
    file = tmp_path / "observations" / f"{session}.jsonl"
    file.write_text(file.read_text().replace('"theirs"', json.dumps(session, ensure_ascii=False)))
    await store.append(block(3, session), block(4, session))

    assert [b.id for b in (await store.load_session(session)).blocks] == [
        f"obs_{n}_abc" for n in (1, 2, 3, 4)
    ]
    assert await store.prune(session, 3) == 1
    assert [b.id for b in (await store.load_session(session)).blocks] == [
        f"obs_{n}_abc" for n in (2, 3, 4)
    ]
    assert await store.delete(session)
    assert (await store.load_session(session)).blocks == ()


async def test_blocks_of_another_session_in_a_file_of_that_name_are_left_alone(
    store: BlockStore, tmp_path: Path
) -> None:
    await store.append(block(1, "ana"))
    (tmp_path / "observations" / "ana.jsonl").rename(tmp_path / "observations" / "Ana.jsonl")

    assert (await store.load_session("Ana")).blocks == ()
    assert not await store.delete("Ana")
    assert lines(tmp_path / "observations" / "Ana.jsonl")


async def test_several_sessions_are_deleted_at_once_and_others_stay(
    store: BlockStore, tmp_path: Path
) -> None:
    for number, session in enumerate(("ana", "bo", "cem")):
        across = block(number, session, tier="cross-session")
        await store.append(block(number, session), across)
    folder = tmp_path / "observations"

    changed = await store.delete("ana", "bo")

    names = ("ana", "bo", "cross-session")
    assert changed == tuple(str(folder / f"{name}.jsonl") for name in names)
    assert [b.session_id for b in (await store.load_cross_session()).blocks] == ["cem"]
    assert [file.name for file in files(folder)] == ["cem.jsonl", "cross-session.jsonl"]


async def test_blocks_are_not_written_through_a_link(store: BlockStore, tmp_path: Path) -> None:
    await store.append(block(1, "ana"))
    victim = tmp_path / "victim"
    victim.write_text("kept")
    (tmp_path / "observations" / "bo.jsonl").symlink_to(victim)

    with pytest.raises(StoreUnavailable, match=r"'bo\.jsonl' is a symbolic link"):
        await store.append(block(1, "bo"))

    assert victim.read_text() == "kept"


async def test_only_the_owner_can_read_blocks(store: BlockStore, tmp_path: Path) -> None:
    await store.append(block(1), block(2))
    await store.prune("s-1", 1)

    directory = tmp_path / "observations"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert [stat.S_IMODE(file.stat().st_mode) for file in directory.iterdir()] == [0o600]


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/passwd", "a/b", "..", ".", "a\0b", "C:\\x"]
)
async def test_an_id_never_leads_out_of_the_directory(
    store: BlockStore, tmp_path: Path, name: str
) -> None:
    await store.append(block(1, name))

    assert [path.parent.name for path in files(tmp_path)] == ["observations"]
    assert (await store.load_session(name)).blocks == (block(1, name),)


@given(first=st.text(min_size=1, max_size=200), second=st.text(min_size=1, max_size=200))
def test_two_names_never_share_a_file(first: str, second: str) -> None:
    names = [safe_name(name, taken={"cross-session"}) for name in (first, second)]

    assert (names[0].lower() == names[1].lower()) == (first == second)
    for name in names:
        assert len(name) <= 200
        assert not set(name) & set("/\\:.\0 ")


async def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    tmp_path.joinpath("taken").write_text("a file")

    with pytest.raises(StoreUnavailable, match=r"taken.* name another directory"):
        await BlockStore(tmp_path / "taken").append(block(1))


async def hold(chat: Conversation, turns: int = 20) -> None:
    for number in range(turns):
        await chat.append(Message.user(f"In town {number} I stay at the Hotel Linde."))
        await chat.append(Message.assistant(f"Noted: town {number}."))
        await chat.flush()


@pytest.mark.req("Z-22", "Z-95")
async def test_a_conversation_that_ends_keeps_its_newest_notes_as_blocks(tmp_path: Path) -> None:
    settings = Settings(
        url="sqlite:///:memory:", blocks_directory=str(tmp_path / "blocks"), blocks_keep_last=2
    )
    async with Memory.open(
        settings=settings,
        policy=TINY,
        observer=ScriptedObserver(),
        reflector=ScriptedReflector(),
    ) as memory:
        chat, foreign = (memory.conversation("chat", tenant=name) for name in ("default", "acme"))
        for each in (chat, foreign):
            await hold(each)
            await each.end()
        live = (await chat.snapshot()).segments

        blocks = (await BlockStore(tmp_path / "blocks").load_session("chat")).blocks
        theirs = (await BlockStore(tmp_path / "blocks" / "acme").load_session("chat")).blocks
        await chat.delete()
        left = [path.name for path in files(tmp_path)]

    assert [b.observations for b in blocks] == [segment.text for segment in live[-2:]]
    assert [b.source_message_range[1] for b in blocks] == [s.last_seq for s in live[-2:]]
    assert len(theirs) == 2
    assert left == ["chat.jsonl"]


async def test_conversations_that_are_deleted_at_once_leave_no_block(tmp_path: Path) -> None:
    settings = Settings(url="sqlite:///:memory:", blocks_directory=str(tmp_path / "blocks"))
    async with Memory.open(settings=settings, policy=Policy.zora()) as memory:
        chats = [memory.conversation(f"chat-{number}") for number in range(12)]
        for chat in chats:
            await chat.append(Message.user("My flight LH 454 leaves on Friday at 13:25."))
            await chat.end()
        across = tmp_path / "blocks" / "cross-session.jsonl"
        assert len(across.read_bytes().splitlines()) == len(chats)

        async with asyncio.TaskGroup() as group:
            for chat in chats:
                group.create_task(chat.delete())

    assert across.read_bytes() == b""


async def test_a_conversation_that_ends_several_times_at_once_is_exported_once(
    tmp_path: Path,
) -> None:
    settings = Settings(url="sqlite:///:memory:", blocks_directory=str(tmp_path))
    async with Memory.open(settings=settings) as memory:
        chat = memory.conversation("chat")
        await chat.append(Message.user("My flight LH 454 leaves on Friday at 13:25."))
        await chat.flush(everything=True)
        async with asyncio.TaskGroup() as group:
            for _ in range(6):
                group.create_task(chat.end())

    assert len((tmp_path / "chat.jsonl").read_bytes().splitlines()) == 1


class Overtaken(BlockStore):
    """Appends blocks after *erase* has ended."""

    def __init__(self, directory: Path, erase: Callable[[], Awaitable[object]]) -> None:
        super().__init__(directory)
        self._erase = erase

    async def append(self, *blocks: Block) -> int:
        await self._erase()
        return await super().append(*blocks)


@pytest.mark.parametrize("what", ["a message", "the conversation", "the user"])
async def test_notes_that_are_erased_while_they_are_exported_leave_no_block(
    tmp_path: Path, what: str
) -> None:
    settings = Settings(url="sqlite:///:memory:", blocks_directory=str(tmp_path / "blocks"))
    async with Memory.open(settings=settings) as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(Message.user("My flight LH 454 leaves on Friday at 13:25.", id="m1"))
        await chat.append(Message.assistant("The hotel is the Linde."))
        await chat.flush(everything=True)

        async def erase() -> None:
            if what == "a message":
                await chat.forget("m1")
            elif what == "the conversation":
                await chat.delete()
            else:
                await memory.forget_user("ana")

        await chat.export_blocks(Overtaken(tmp_path / "blocks", erase))

    assert not any(b"LH 454" in file.read_bytes() for file in files(tmp_path))


@pytest.mark.req("X-27", "Z-26")
async def test_notes_move_to_another_database_with_their_messages(tmp_path: Path) -> None:
    store = BlockStore(tmp_path)
    async with Memory.open(
        "sqlite:///:memory:",
        policy=TINY,
        observer=ScriptedObserver(),
        reflector=ScriptedReflector(),
    ) as memory:
        chat = memory.conversation("chat")
        await hold(chat, turns=8)
        await chat.export_blocks(store)
        await hold(chat, turns=8)
        first = await chat.export_blocks(store)
        again = await chat.export_blocks(store)
        live = (await chat.snapshot()).segments
        messages = await chat.messages()

    settings = Settings(url="sqlite:///:memory:", workers=0)
    async with Memory.open(policy=TINY, settings=settings) as memory:
        chat = memory.conversation("chat")
        await chat.append(*messages)
        report = await chat.import_blocks(store)
        repeated = await chat.import_blocks(store)
        exported = await chat.export_blocks(store)
        snapshot = await chat.snapshot()

    assert [s.created_at for s in snapshot.segments] == [s.created_at for s in live]
    check_tiling(snapshot.state, snapshot.segments)
    assert [segment.text for segment in snapshot.segments] == [segment.text for segment in live]
    assert (report.imported, report.malformed, report.conflicts) == (len(live), 0, ())
    assert first > 0
    assert again == 0
    assert repeated.imported == 0
    assert len(repeated.conflicts) == len(live)
    assert all("observed already, in this block" in each for each in repeated.conflicts)
    assert exported == 0


@pytest.mark.req("X-27")
async def test_an_import_reports_what_does_not_fit_and_replaces_nothing(tmp_path: Path) -> None:
    store = BlockStore(tmp_path)
    await store.append(
        block(1, "chat", source_message_range=(0, 2), observations="other words"),
        block(2, "chat", source_message_range=(6, 8)),
        block(3, "chat", source_message_range=(8, 99)),
    )
    async with Memory.open("sqlite:///:memory:", observer=ScriptedObserver()) as memory:
        chat = memory.conversation("chat")
        await chat.append(*(Message.user(f"word {number} " * 9) for number in range(4)))
        await chat.flush(everything=True)
        before = await chat.observations()
        await chat.append(*(Message.user(f"word {number} " * 9) for number in range(4)))

        report = await chat.import_blocks(store)

        assert await chat.observations() == before
        lost = await memory.conversation("elsewhere").import_blocks(store)

    assert lost.conflicts == (
        "there are no blocks of 'elsewhere': the directory has files of chat",
    )
    assert report.imported == 0
    observed, gap, beyond = report.conflicts
    assert "observed already, in other words" in observed
    assert "do not follow message 4" in gap
    assert "not on the tape, which ends at 8" in beyond


async def test_a_block_that_covers_a_forgotten_message_is_not_imported(tmp_path: Path) -> None:
    store = BlockStore(tmp_path)
    said = (
        Message.user("My flight LH 454 leaves from gate B42.", id="m1"),
        Message.assistant("Noted: LH 454 from gate B42.", id="m2"),
    )
    settings = Settings(url="sqlite:///:memory:", workers=0)
    async with Memory.open(settings=settings) as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(*said)
        await chat.end()
        exported = await chat.export_blocks(store)
        await chat.delete()
        await chat.append(*said)
        await chat.forget("m1")

        report = await chat.import_blocks(store)

        assert exported == 1
        assert await chat.observations() == ()
    assert report.imported == 0
    assert "messages 1..2 include a forgotten one" in report.conflicts[0]


Cli = Callable[..., CompletedProcess[str]]


def test_blocks_are_exported_and_imported_from_the_command_line(cli: Cli, tmp_path: Path) -> None:
    transcript = tmp_path / "trip.jsonl"
    texts = [f"In town {number} I stay at the Hotel Linde {number}." for number in range(60)]
    transcript.write_text(
        "".join(
            json.dumps({"role": "assistant" if n % 2 else "user", "content": text}) + "\n"
            for n, text in enumerate(texts)
        )
    )
    urls = [f"sqlite:///{tmp_path}/{name}.db" for name in ("old", "new")]
    assert cli("replay", transcript, "--db", urls[0], "--ratio", "0.5").returncode == 0
    assert cli("replay", transcript, "--db", urls[1]).returncode == 0

    exported = cli("export", "trip", "--to", tmp_path / "blocks", "--db", urls[0], "--json")
    imported = cli("import-notes", "trip", "--from", tmp_path / "blocks", "--db", urls[1], "--json")
    again = cli("import-notes", "trip", "--from", tmp_path / "blocks", "--db", urls[1])
    missing = cli("export", "nope", "--to", tmp_path / "blocks", "--db", urls[0])

    count = json.loads(exported.stdout)["exported"]
    assert count >= 1
    assert json.loads(imported.stdout) == {"imported": count, "malformed": 0, "conflicts": []}
    assert again.returncode == 1
    assert "observed already" in again.stderr
    assert again.stdout.startswith(
        "imported 0 blocks as observations of trip, and left out 0 lines"
    )
    assert missing.returncode == 1
    assert "no conversation 'nope'" in missing.stderr
