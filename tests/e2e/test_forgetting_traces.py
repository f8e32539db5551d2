"""Forgetting of what a message left elsewhere: facts, notes of other messages, errors, files."""

import asyncio
import base64
import contextlib
import json
import unicodedata
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest

from remanence import Memory, Message, Settings, memory_tools
from remanence.engine.traces import Traces
from remanence.errors import InvalidArgument
from remanence.protocols import ModelRequest
from remanence.stores import open_store
from remanence.testing import FaultyStore
from remanence.testing.store_contract.samples import REF, fact, user
from remanence.types import (
    ConversationRef,
    Extra,
    FilePart,
    ImagePart,
    Part,
    TextPart,
    ToolCallPart,
)
from remanence.types.receipt import chain, digest


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'memory.db'}"


def content_of(directory: Path) -> str:
    files = (file for file in directory.rglob("*") if file.is_file())
    return "".join(file.read_bytes().decode("utf-8", "replace") for file in files)


@pytest.mark.parametrize("erase", ["message", "conversation"])
async def test_a_fact_that_a_model_saved_goes_with_the_round_it_was_said_in(
    url: str, erase: str
) -> None:
    async with Memory.open(url) as memory:
        chat = memory.conversation("c", user="ana")
        save = next(tool for tool in memory_tools(chat) if tool.name == "memory_save")
        await chat.append(Message.user("I like tea.", id="m1"))
        await save.handler({"summary": "Ana likes tea"})
        await chat.append(Message.user("My number is 555-0199.", id="m2"))
        await chat.append(Message.assistant("I keep that.", id="m3"))
        await save.handler({"summary": "Ana's phone number is 555-0199"})
        new = await memory.conversation("new", user="ana").context()
        here = await chat.context()

        receipt = await (chat.forget("m2") if erase == "message" else chat.delete())

        assert "555-0199" in new.to_text()
        assert "Ana's phone number is 555-0199" in here.to_text()
        assert receipt is not None
        left = [fact.summary for fact in await memory.facts.list(user="ana")]
        assert left == (["Ana likes tea"] if erase == "message" else [])
        assert len(receipt.facts) == (1 if erase == "message" else 2)


async def test_a_fact_cannot_name_the_conversation_of_another_user(url: str) -> None:
    async with Memory.open(url) as memory:
        await memory.conversation("c", user="ben").append(Message.user("Hello."))
        with pytest.raises(InvalidArgument, match="'ana' has no conversation 'c'"):
            await memory.facts.save("Ana keeps bees", user="ana", conversation="c")


@pytest.mark.parametrize(
    ("text", "query"),
    [
        (unicodedata.normalize("NFD", "Frau Müller-Lüdenscheidt kam, {}."), "Müller-Lüdenscheidt"),
        ("رَقْمُ هَاتِفِي هو {}", "رقم هاتفي"),
        ("Donau\u00addampfschiff {}", "Donaudampfschiff"),
        ("My phone’s number {}", "My phone's number"),
        ("電話番号はＡＢ－{}です", "AB-"),
    ],
)
async def test_a_query_finds_all_that_say_it_in_whatever_form(
    url: str, text: str, query: str
) -> None:
    async with Memory.open(url) as memory:
        chat = memory.conversation("c", user="ana")
        for number in range(30):
            await chat.append(Message.user(text.format(number)))

        found = await chat.forget(query=query)

    assert len(found.messages) == 30


async def test_a_query_finds_tool_arguments_and_names_and_texts_of_files(url: str) -> None:
    arguments = json.dumps({"street": ["Größeweg"]})
    call = ToolCallPart(id="k", name="find", arguments=arguments)
    named = FilePart(media_type="image/png", name="Größeweg.png", data="AAAA")
    written = FilePart(media_type="text/plain", name="a.txt", data="R3LDtsOfZXdlZw==")
    see = TextPart(text="See the file.")
    async with Memory.open(url) as memory:
        chat = memory.conversation("c", user="ana")
        await chat.append(
            Message.assistant(tool_calls=[call], id="m1"),
            Message.tool("k", "Nothing.", id="m2"),
            Message(role="user", content=(see, named), id="m3"),
            Message(role="user", content=(see, written), id="m4"),
        )

        found = await chat.forget(query="Größeweg")

    assert found.message_ids == ("m1", "m3", "m4")


def base64_of(text: str, encoding: str = "utf-8") -> str:
    return base64.b64encode(text.encode(encoding)).decode()


@pytest.mark.parametrize(
    "part",
    [
        TextPart(
            text="See.", extra=Extra(dialect="anthropic", raw='{"cited_text": "Gr\\u00f6ße"}')
        ),
        TextPart(text='{"size": "Gr\\u00f6\\u00dfe"}'),
        FilePart(file_id="Größe"),
        FilePart(name="a.csv", data=base64_of("Größe")),
        FilePart(media_type="text/plain", data=base64_of("Größe", "utf-16")),
        FilePart(media_type="text/plain", data=base64_of("Größe", "latin-1")),
        FilePart(url=f"data:text/plain;base64,{base64_of('Größe')}"),
        ImagePart(media_type="image/svg+xml", data=base64_of("<svg><text>Größe</text></svg>")),
    ],
)
async def test_a_query_finds_what_a_provider_or_a_file_says_in_its_own_form(
    url: str, part: Part
) -> None:
    async with Memory.open(url) as memory:
        chat = memory.conversation("c", user="ana")
        await chat.append(Message(role="user", content=(part,), id="m1"), Message.user("Hello."))

        found = await chat.forget(query="Größe")

    assert found.message_ids == ("m1",)


async def test_a_query_finds_json_within_the_json_of_tool_arguments(url: str) -> None:
    arguments = json.dumps({"body": json.dumps({"street": "Größeweg"})})
    call = ToolCallPart(id="k", name="send", arguments=arguments)
    async with Memory.open(url) as memory:
        chat = memory.conversation("c", user="ana")
        await chat.append(Message.assistant(tool_calls=[call], id="m1"))

        found = await chat.forget(query="Größeweg")

    assert found.message_ids == ("m1",)


async def test_daily_notes_are_named_that_have_the_text_of_a_message_without_its_other_fields(
    url: str, tmp_path: Path
) -> None:
    settings = Settings(daily_directory=str(tmp_path / "days"))
    extra = Extra(dialect="anthropic", raw='{"cache_control": {"type": "ephemeral"}}')
    said = TextPart(text="I keep bees in the garden.", extra=extra)
    async with Memory.open(url, settings=settings) as memory:
        chat = memory.conversation("c", user="ana")
        day = await memory.note("Ana: I keep bees in the garden.", user="ana")
        await chat.append(Message(role="user", content=(said,), name="Ana", id="m1"))

        receipt = await chat.forget("m1")

    assert receipt.still_in == (str(day),)


QUOTED = [
    (
        "大阪に住んでいます。",
        "名古屋に引っ越しました。",
        "花子: 名古屋に引っ越した (was: 大阪)",
        "大阪",
    ),
    ("我住在上海。", "我搬到北京了。", "小明: 搬到北京 (was: 上海)", "上海"),
    ("저는 부산에 살아요.", "서울로 이사했어요.", "지수: 서울로 이사함 (was: 부산)", "부산"),
    ("ฉันอยู่ที่เชียงใหม่", "ฉันย้ายไปภูเก็ต", "ภูเก็ต (was: เชียงใหม่)", "เชียงใหม่"),
    ("أعيش في القاهرة.", "انتقلت إلى بيروت.", "انتقلت إلى بيروت (was: القاهرة)", "القاهرة"),
    ("मैं जयपुर में रहता हूँ।", "अब दिल्ली में हूँ।", "दिल्ली (was: जयपुर)", "जयपुर"),
    ("живу в казани.", "переехал в тверь.", "переехал в тверь (was: из казани)", "казани"),
    ("i have lupus.", "it was wrong, it is eczema.", "Ana: has eczema (was: lupus)", "lupus"),
    (
        unicodedata.normalize("NFD", "Ich wohne in Köln."),
        "Jetzt wohne ich in Bonn.",
        "Ana: zog nach Bonn (was: Köln)",
        "Köln",
    ),
]


@pytest.mark.parametrize(("forgotten", "stays", "note", "word"), QUOTED)
async def test_a_note_that_quotes_a_forgotten_message_goes_in_any_script(
    url: str, tmp_path: Path, forgotten: str, stays: str, note: str, word: str
) -> None:
    async def observe(request: ModelRequest) -> str:
        if "#3" in request.prompt:
            return "#3 [Fact] Tom: tea for everybody"
        return f"#2 [Fact] {note}" if "#2" in request.prompt else "#1 [Fact] something else"

    async with Memory.open(url, observer=observe) as memory:
        chat = memory.conversation("c", user="ana")
        for number, text in enumerate((forgotten, stays, "Tom buys tea for everybody."), 1):
            await chat.append(Message.user(text, id=f"m{number}"))
            await chat.flush(everything=True)
        before = await chat.observations()
        assert word in before[1].text

        receipt = await chat.forget("m1")

        assert receipt.segments == (before[0].id, before[1].id)
        assert before[2].id in [segment.id for segment in await chat.observations()]
    assert word not in content_of(tmp_path)


@pytest.mark.parametrize("forgotten", ["i have 2 cats", "my name is Al", "i was ill in 2026"])
async def test_notes_that_only_share_a_day_or_letters_with_a_forgotten_message_stay(
    url: str, forgotten: str
) -> None:
    async def observe(request: ModelRequest) -> str:
        return (
            "#2 [Fact] Tom: tea also for Ben" if "#2" in request.prompt else "#1 [Fact] something"
        )

    at = datetime(2026, 3, 2, 12, tzinfo=UTC)
    async with Memory.open(url, observer=observe) as memory:
        chat = memory.conversation("c", user="ana")
        for number, text in enumerate((forgotten, "Tom buys tea for Ben."), 1):
            await chat.append(Message.user(text, id=f"m{number}", created_at=at))
            await chat.flush(everything=True)
        (first, second) = await chat.observations()
        assert "2026-03-02" in second.text

        receipt = await chat.forget("m1")

    assert receipt.segments == (first.id,)


@pytest.mark.parametrize("erase", ["message", "conversation"])
async def test_a_fact_that_quotes_a_forgotten_one_goes_and_others_stay(
    url: str, tmp_path: Path, erase: str
) -> None:
    answers = {
        "vegetarian": "Ana is a vegetarian",
        "street": "Ana lives in Rua Augusta",
        "moved": "Ana moved from Rua Augusta to Porto",
        "sister": "Ana's sister lives in Lisbon",
    }

    async def extract(request: ModelRequest) -> str:
        last = request.prompt.rpartition("#")[2]
        summary = next(answer for word, answer in answers.items() if word in last)
        return json.dumps([{"summary": summary, "source": [1]}])

    async with Memory.open(url, extractor=extract) as memory:
        for name, text in (
            ("early", "I am a vegetarian."),
            ("monday", "My street is Rua Augusta, I live there."),
            ("friday", "I moved to Porto."),
            ("sunday", "My sister is in Lisbon."),
        ):
            chat = memory.conversation(name, user="ana")
            await chat.append(Message.user(text, id="m1"))
            await chat.end()

        monday = memory.conversation("monday", user="ana")
        receipt = await (monday.forget("m1") if erase == "message" else monday.delete())

        left = {fact.summary for fact in await memory.facts.list(user="ana", history=True)}
    assert left == {"Ana is a vegetarian", "Ana's sister lives in Lisbon"}
    assert receipt is not None
    assert len(receipt.facts) == 2
    assert "Rua Augusta" not in content_of(tmp_path)


async def extract_street(request: ModelRequest) -> str:
    """Name the street also in the fact of a later message, which the extractor read in an earlier fact."""
    moved = "moved" in request.prompt.rpartition("#")[2]
    summary = "Ana moved from Rua Augusta to Porto" if moved else "Ana lives in Rua Augusta"
    return json.dumps([{"summary": summary, "source": [1]}])


@pytest.mark.parametrize("elsewhere", ["repeated", "forked"])
async def test_a_fact_stays_that_quotes_one_which_another_conversation_also_says(
    url: str, elsewhere: str
) -> None:
    async with Memory.open(url, extractor=extract_street) as memory:
        monday, tuesday, friday = (memory.conversation(name, user="ana") for name in "abc")
        await monday.append(Message.user("I live in Rua Augusta.", id="m1"))
        await monday.end()
        if elsewhere == "forked":
            await monday.fork("b", last_seq=1)
        else:
            await tuesday.append(Message.user("I live in Rua Augusta.", id="m1"))
            await tuesday.end()
        await friday.append(Message.user("I moved to Porto.", id="m1"))
        await friday.end()

        await monday.delete()
        kept = {fact.conversation for fact in await memory.facts.list(user="ana", history=True)}
        await tuesday.delete()

        assert kept == {"b", "c"}
        assert await memory.facts.list(user="ana", history=True) == ()


@pytest.mark.parametrize("erase", ["message", "conversation"])
async def test_a_fact_that_quotes_a_forgotten_one_is_kept_as_another_conversation_says_it(
    url: str, erase: str
) -> None:
    async with Memory.open(url, extractor=extract_street) as memory:
        monday, friday, sunday = (memory.conversation(name, user="ana") for name in "abc")
        for chat, text in (
            (monday, "I live in Rua Augusta."),
            (friday, "I moved to Porto."),
            (sunday, "I moved from Rua Augusta to Porto."),
        ):
            await chat.append(Message.user(text, id="m1"))
            await chat.end()

        await (monday.forget("m1") if erase == "message" else monday.delete())
        kept = {fact.conversation for fact in await memory.facts.list(user="ana", history=True)}
        await sunday.delete()

        assert kept == {"c"}
        assert await memory.facts.list(user="ana", history=True) == ()


class CountedStore(FaultyStore):
    """Counts the reads of tapes."""

    reads = 0

    async def messages(
        self,
        ref: ConversationRef,
        *,
        after: int = 0,
        limit: int | None = None,
        max_tokens: int | None = None,
    ) -> tuple[Message, ...]:
        self.reads += 1
        return await super().messages(ref, after=after, limit=limit, max_tokens=max_tokens)


async def test_a_tape_is_read_once_for_all_facts_that_may_quote_a_message() -> None:
    store = CountedStore(await open_store("sqlite:///:memory:"))
    said = [user("My plumber is Tom."), user("Ben is a plumber.")]
    appended = await store.append(REF, said, user="ana")
    facts = [
        fact(f"f{number}", f"Plumber {number} is free", conversation=REF.id, last_seq=2)
        for number in range(20)
    ]
    quoting = fact("t", "Tom is free", conversation=REF.id, last_seq=2)
    traces = Traces(store=store, state=appended.state, forgotten=appended.messages[:1])

    assert await traces.in_facts([*facts, quoting], ()) == {"t"}
    assert store.reads <= 4
    await store.close()


@pytest.mark.parametrize("erase", ["message", "fact"])
async def test_errors_of_other_conversations_that_quote_a_fact_are_cleared(
    url: str, tmp_path: Path, erase: str
) -> None:
    async def extract(request: ModelRequest) -> str:
        if "Hello" in request.prompt:
            return "Nothing new; I only know that Ana lives in Rua Augusta."
        return json.dumps([{"summary": "Ana lives in Rua Augusta", "source": [1]}])

    async with Memory.open(url, extractor=extract) as memory:
        monday, friday = (memory.conversation(name, user="ana") for name in ("monday", "friday"))
        await monday.append(Message.user("I live in Rua Augusta.", id="m1"))
        await monday.end()
        await friday.append(Message.user("Hello", id="m1"))
        await friday.end()
        failure = (await friday.state()).facts_failure
        assert failure is not None
        assert "Rua Augusta" in failure.message

        if erase == "message":
            await monday.forget("m1")
        else:
            (fact,) = await memory.facts.list(user="ana")
            await memory.facts.forget(fact.id, user="ana")

        failure = (await friday.state()).facts_failure
        assert failure is not None
        assert failure.message == "an error text that was forgotten"
        assert "Rua Augusta" not in (await friday.log())[-1].detail
    assert ("Rua Augusta" in content_of(tmp_path)) == (erase == "fact")


async def test_a_forget_that_was_killed_is_finished_by_the_next_process(
    url: str, tmp_path: Path
) -> None:
    settings = Settings(url=url, blocks_directory=str(tmp_path / "blocks"))
    async with Memory.open(settings=settings) as memory:
        chat = memory.conversation("c", user="ana")
        await chat.append(
            Message.user("I live in Quxstreet 77.", id="m1"), Message.user("I like tea.", id="m2")
        )
        await chat.end()
        blocks = tmp_path / "blocks" / "c.jsonl"
        left = await asyncio.to_thread(blocks.read_bytes)
        await chat.forget("m1")
        await asyncio.to_thread(blocks.write_bytes, left)  # as if it had been killed before

    with contextlib.closing(apsw.Connection(str(tmp_path / "memory.db"))) as database:
        database.execute("INSERT INTO chores (name, subject) VALUES ('scrub', 0)")
    async with Memory.open(settings=settings, read_only=True) as memory:
        assert any("not rewritten" in problem.what for problem in await memory.check())
    async with Memory.open(settings=settings) as memory:
        async with asyncio.timeout(60):
            while any("interrupted" in p.what for p in await memory.check()):  # noqa: ASYNC110 - known to the file alone
                await asyncio.sleep(0)
        await memory.conversation("c", user="ana").end()

    assert "Quxstreet" not in content_of(tmp_path)


async def test_a_conversation_without_messages_may_end_where_blocks_are_kept(
    url: str, tmp_path: Path
) -> None:
    settings = Settings(url=url, blocks_directory=str(tmp_path / "blocks"))
    async with Memory.open(settings=settings) as memory:
        assert (await memory.conversation("c").end()).last_seq == 0


async def test_unfinished_lines_and_files_of_blocks_go_too(tmp_path: Path) -> None:
    settings = Settings(url="sqlite:///:memory:", blocks_directory=str(tmp_path))
    async with Memory.open(settings=settings) as memory:
        chat = memory.conversation("c", user="ana")
        await chat.append(Message.user("I live in Quxstreet 77.", id="m1"))
        await chat.end()
        blocks = tmp_path / "c.jsonl"
        line = await asyncio.to_thread(blocks.read_bytes)
        await asyncio.to_thread(blocks.write_bytes, line + line[:-20] + b"\n")
        await asyncio.to_thread((tmp_path / "c.jsonl.new").write_bytes, line)
        receipt = await chat.forget("m1")

    assert receipt.files == (str(blocks),)
    assert "Quxstreet" not in content_of(tmp_path)


TAMPERED = [
    "UPDATE messages SET content = replace(content, '10 EUR', '9999 EUR'), digest = ? WHERE id = 'a'",
    "UPDATE messages SET content = '\"I agree to pay\"', kind = 'message' WHERE id = 'z' AND ? > ''",
    "UPDATE messages SET content = '\"I agree to pay\"' WHERE id = 'z' AND ? > ''",
    "UPDATE messages SET kind = 'memory' WHERE id = 'a' AND ? > ''",
]


@pytest.mark.parametrize("statement", TAMPERED)
async def test_the_chain_of_a_receipt_shows_what_was_changed_later(
    url: str, tmp_path: Path, statement: str
) -> None:
    async with Memory.open(url) as memory:
        chat = memory.conversation("c", user="ana")
        await chat.append(Message.user("pay 10 EUR to Bob", id="a"), Message.user("x", id="z"))
        receipt = await chat.forget("z")
        messages = await chat.messages()
        assert chain(messages) == receipt.kept

    with contextlib.closing(apsw.Connection(str(tmp_path / "memory.db"))) as database:
        database.execute(statement, (digest(messages[0], ""),))
    async with Memory.open(url) as memory:
        assert chain(await memory.conversation("c", user="ana").messages()) != receipt.kept
        problems = [p.what for p in await memory.check() if p.level == "error"]
    assert len(problems) == ("digest" in statement or "kind = 'message'" in statement)


async def test_a_receipt_names_daily_notes_with_a_value_of_the_message(
    url: str, tmp_path: Path
) -> None:
    settings = Settings(url=url, daily_directory=str(tmp_path / "days"))
    async with Memory.open(settings=settings) as memory:
        chat = memory.conversation("c", user="ana")
        await chat.append(
            Message.user("My number is 555-0199, call me after six.", id="m1"),
            Message.user("Frau Müller wohnt in Köln.", id="m2"),
            Message.user("I like tea with milk.", id="m3"),
        )
        await memory.note("Ana's phone number is 555-0199", user="ana")
        day = await memory.note(
            unicodedata.normalize("NFD", "Frau Müller wohnt in Köln."), user="ana"
        )

        found = [(await chat.forget(id_)).still_in for id_ in ("m1", "m2", "m3")]

    assert found == [(str(day),), (str(day),), ()]


@pytest.mark.parametrize(
    ("note", "said"),
    [
        ("Magdalena's rent is due", "Magdalena is my landlady."),
        ("The plumber: 912 345 678", "My plumber has the number 912345678."),
        ("The plumber: 912345678", "My plumber has the number 912 345 678."),
        ("Account DE89370400440532013000", "My account is DE89 3704 0044 0532 0130 00."),
        ("Account DE89 3704 0044 0532 0130 00", "My account is DE89370400440532013000."),
    ],
)
async def test_a_receipt_names_daily_notes_with_a_name_or_a_number_in_other_groups(
    url: str, tmp_path: Path, note: str, said: str
) -> None:
    settings = Settings(url=url, daily_directory=str(tmp_path / "days"))
    async with Memory.open(settings=settings) as memory:
        chat = memory.conversation("c", user="ana")
        await chat.append(
            Message.user(said, id="m1"), Message.user("Sometimes I have no number.", id="m2")
        )
        day = await memory.note(f"{note}; sometimes late.", user="ana")

        found = [(await chat.forget(id_)).still_in for id_ in ("m1", "m2")]

    assert found == [(str(day),), ()]


@pytest.mark.parametrize(
    ("note", "said"),
    [
        ("Wednesday: the dentist", "Wednesday I see the doctor."),
        ("The dentist, in September", "I was told to wait until September."),
        ("Two children came", "Children are not planned."),
        ("An interesting talk", "Interesting idea"),
        ("Meine Nachbarin kommt", "Ich habe mit der Nachbarin gesprochen."),
        ("Nachbarin angerufen", "Nachbarin und ich haben gestritten."),
    ],
)
async def test_a_receipt_names_no_daily_note_because_of_an_ordinary_word(
    url: str, tmp_path: Path, note: str, said: str
) -> None:
    settings = Settings(url=url, daily_directory=str(tmp_path / "days"))
    async with Memory.open(settings=settings) as memory:
        chat = memory.conversation("c", user="ana")
        await chat.append(Message.user(said, id="m1"))
        await memory.note(note, user="ana")

        receipt = await chat.forget("m1")

    assert receipt.still_in == ()
