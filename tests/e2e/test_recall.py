"""Recall: words and meanings, over notes, messages and facts, with filters and a budget."""

import asyncio
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from remanence import Memory, Message, Note, Policy
from remanence.errors import ConversationNotFound, InvalidMessage, InvalidPolicy, ModelError
from remanence.recall.indexer import MAX_TRIES
from remanence.recall.search import COMPARED_FACTS, Search
from remanence.stores import open_store
from remanence.testing import FaultyStore, FixedClock, ScriptedObserver
from remanence.tokens import count_tokens
from remanence.types import Draft, Fact, FactChanges, HitKind, Owner, RecallFilter

IN_MEMORY = "sqlite:///:memory:"
NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
FULL = Policy.default(note_ratio=1.0)
MEANINGS = {
    "dog": 0, "puppy": 0, "hound": 0,
    "car": 1, "automobile": 1,
    "sea": 2, "ocean": 2,
}  # fmt: skip


class Meanings:
    """An embedder that knows some synonyms, and fails or waits as it is told."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.failing = False
        self.refused = ""
        self.calls = 0
        self.called = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    @property
    def name(self) -> str:
        return "meanings/1"

    @property
    def dimensions(self) -> int:
        return 4

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.calls += 1
        self.called.set()
        await self.gate.wait()
        if any(self.refused and self.refused in text for text in texts):
            raise ModelError("bad_request", "a text is refused")
        if self.failing:
            raise ModelError("overloaded", "busy")
        self.texts += texts
        return [self._vector(text.lower()) for text in texts]

    def _vector(self, text: str) -> list[float]:
        vector = [0.0, 0.0, 0.0, 0.1]
        for word in text.replace(".", " ").split():
            if word in MEANINGS:
                vector[MEANINGS[word]] += 1.0
        return vector


def said(text: str, minute: int = 0) -> Message:
    return Message.user(text, created_at=NOON + timedelta(minutes=minute))


async def test_all_conversations_of_a_user_are_searched_and_no_others() -> None:
    async with Memory.open(IN_MEMORY, policy=FULL, embedder=Meanings()) as memory:
        for tenant, user, name in (
            ("default", "ana", "a"),
            ("default", "ana", "b"),
            ("default", "bob", "c"),
            ("other", "ana", "a"),
            ("default", None, "d"),
        ):
            chat = memory.conversation(name, user=user, tenant=tenant)
            await chat.append(Message.user(f"We walk the hound of {name}.", id="m1"))
            await chat.flush(everything=True)
        await memory.facts.save("Likes a hound.", user="ana")

        by_words = await memory.recall("hound", user="ana", limit=20)
        by_meaning = await memory.recall("puppy", user="ana", limit=20, kind="message")
        await memory.conversation("a", user="ana").forget("m1")
        after = await memory.recall("hound", user="ana", kind="message", max_tokens=1_000)
        with pytest.raises(InvalidMessage):
            await memory.recall("hound", user="")

    assert {hit.conversation for hit in by_words} == {"a", "b", None}
    assert {hit.kind for hit in by_words} == {"message", "note", "fact"}
    assert [(hit.conversation, hit.source_id) for hit in by_meaning] == [("a", "m1"), ("b", "m1")]
    assert [hit.conversation for hit in after] == ["b"]


async def test_a_search_finds_as_many_hits_as_it_asks_for() -> None:
    async with Memory.open(IN_MEMORY) as memory:
        chat = memory.conversation("a", user="ana")
        await chat.append(*(said(f"lemon invoice {number}") for number in range(300)))
        hits = await memory.recall("lemon", user="ana", limit=300)

    assert len({hit.first_seq for hit in hits if hit.kind == "message"}) == 300


async def test_a_message_that_forks_share_is_recalled_once() -> None:
    async with Memory.open(IN_MEMORY, policy=FULL, embedder=Meanings()) as memory:
        chat = memory.conversation("a", user="ana")
        await chat.append(said("We walk the hound."), said("The hound sleeps."))
        await chat.flush(everything=True)
        await chat.fork("b", last_seq=1)
        await chat.sibling("b").append(said("The hound eats."))

        hits = await memory.recall("hound", user="ana", kind="message")
        (own,) = await chat.sibling("b").recall("walk", kind="message", limit=1)

    assert sorted(hit.text for hit in hits) == [
        "The hound eats.",
        "The hound sleeps.",
        "We walk the hound.",
    ]
    assert own.conversation == "b"


async def test_another_word_for_the_same_is_found_with_an_embedder() -> None:
    texts = ("We walk the hound at noon.", "The automobile is red.", "I swim in the ocean.")
    found = {}
    for embedder in (None, Meanings()):
        async with Memory.open(IN_MEMORY, policy=FULL, embedder=embedder) as memory:
            chat = memory.conversation("a")
            await chat.append(*(said(text) for text in texts))
            await chat.flush(everything=True)
            found[embedder is not None] = await chat.recall("puppy", limit=1)

    assert found[False] == ()
    assert "hound" in found[True][0].text


async def test_an_embedding_function_may_ask_for_a_list_of_texts() -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        return [[1.0] for _ in texts]

    async with Memory.open(IN_MEMORY, policy=FULL, embedder=embed) as memory:
        chat = memory.conversation("a", user="ana")
        await chat.append(said("We walk the hound."))
        await chat.flush(everything=True)
        found = await memory.recall("puppy", user="ana", kind="message")

    assert [hit.text for hit in found] == ["We walk the hound."]


@pytest.mark.parametrize("turn", ["Thanks!", "yes please", "ok", "What did she say about it?"])
async def test_a_turn_without_distinctive_words_is_not_looked_up_by_meaning(turn: str) -> None:
    embedder, unseen = Meanings(), Policy.default(facts_tokens=0)
    async with Memory.open(IN_MEMORY, embedder=embedder, policy=unseen) as memory:
        await memory.facts.save("Ana has a hound", user="ana")
        chat = memory.conversation("a", user="ana")
        await chat.append(said("Hello."))
        await chat.flush()
        volatile = (await chat.context(recall=turn)).volatile

    assert "hound" not in volatile
    assert turn not in embedder.texts


async def test_a_turn_brings_texts_by_meaning_that_are_nearer_than_most() -> None:
    policy = Policy.default(observe_tokens=50, keep_last=0, tail_tokens=60, tail_keep_tokens=10)
    async with Memory.open(IN_MEMORY, embedder=Meanings(), policy=policy) as memory:
        chat = memory.conversation("a")
        await chat.append(said("We walk the hound."))
        await chat.append(*(said(f"The automobile stood in street {n}.") for n in range(30)))
        await chat.flush(everything=True)
        await chat.context()
        near = (await chat.context(recall="puppy")).volatile
        far = (await chat.context(recall="zebra")).volatile

    assert "We walk the hound. (message 1" in near
    assert "street" not in near + far


async def test_a_fact_of_another_member_is_found_with_its_speaker() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        group = memory.conversation("group", user="club")
        await group.append(
            Message.user("My doctor is in Oslo.", name="bo"), Message.user("I live in Oslo.")
        )
        await group.end()
        found = await memory.recall("Oslo", user="club", kind="fact")

    assert {hit.text: hit.speaker for hit in found} == {
        "bo: My doctor is in Oslo.": "bo",
        "I live in Oslo.": None,
    }


async def test_facts_of_other_conversations_are_recalled_by_meaning() -> None:
    unseen = Policy.default(facts_tokens=0)
    async with Memory.open(IN_MEMORY, embedder=Meanings(), policy=unseen) as memory:
        saved = await memory.facts.save("Ana has a hound", user="ana")
        await memory.facts.save("Ana has an automobile", user="ana")
        chat = memory.conversation("a", user="ana")
        await chat.append(said("Hello."))
        await chat.flush()
        searched = await memory.facts.search("dog", user="ana", limit=1)
        (hit,) = await chat.recall("dog", limit=1)
        volatile = (await chat.context(recall="dog")).volatile

    assert searched == (saved,)
    assert (hit.kind, hit.source_id, hit.snippet) == ("fact", saved.id, "Ana has a hound")
    assert f"Ana has a hound (fact {saved.id}, " in volatile


@pytest.mark.parametrize(
    ("kind", "calls"),
    [
        (None, {"search", "nearest", "search_facts", "nearest_facts"}),
        ("message", {"search", "nearest"}),
        ("fact", {"search_facts", "nearest_facts"}),
    ],
)
async def test_only_texts_of_the_wanted_kind_are_searched(
    kind: HitKind | None, calls: set[str]
) -> None:
    store, owner = FaultyStore(await open_store(IN_MEMORY)), Owner("default", "ana")
    search = Search(store=store, embedder=Meanings(), policy=FULL)

    await search.search(owner, owner, "hound", limit=5, only=RecallFilter(kind=kind))
    await store.close()

    assert set(store.calls) - {"close"} == calls


async def test_vectors_are_made_in_the_background_and_survive_a_restart(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    embedder = Meanings()
    embedder.gate.clear()
    async with Memory.open(url, policy=FULL, embedder=embedder) as memory:
        chat = memory.conversation("a")
        async with asyncio.timeout(60):
            await chat.append(said("We walk the hound at noon."))
            await chat.context()
    embedder.gate.set()
    async with Memory.open(url, policy=FULL, embedder=embedder) as memory:
        chat = memory.conversation("a")
        await chat.flush(everything=True)
        made = list(embedder.texts)
    async with Memory.open(url, policy=FULL, embedder=embedder) as memory:
        chat = memory.conversation("a")
        await chat.flush()
        (hit,) = await chat.recall("puppy", limit=1)

    assert made.count("We walk the hound at noon.") == 1
    assert embedder.texts == [*made, "puppy"]
    assert "hound" in hit.text


async def test_a_fork_is_found_by_meaning_and_only_its_notes_are_embedded_again() -> None:
    embedder = Meanings()
    async with Memory.open(IN_MEMORY, policy=FULL, embedder=embedder) as memory:
        chat = memory.conversation("c", user="ana")
        await chat.append(Message.user("My dog is called Rex."))
        await chat.flush(everything=True)
        made = len(embedder.texts)
        embedder.called.clear()

        await chat.fork("d", last_seq=1)

        async with asyncio.timeout(60):
            await embedder.called.wait()
        hits = await chat.sibling("d").recall("puppy")
    assert "Rex" in hits[0].text
    assert [text for text in embedder.texts[made:] if text != "puppy"] == [embedder.texts[0]]


async def test_a_failing_embedder_leaves_the_search_by_words() -> None:
    clock = FixedClock()
    embedder = Meanings()
    embedder.failing = True
    async with Memory.open(IN_MEMORY, policy=FULL, embedder=embedder, clock=clock) as memory:
        chat = memory.conversation("a")
        await chat.append(said("We walk the hound at noon."))
        state = await chat.flush(everything=True)
        by_word = await chat.recall("hound")
        embedder.failing = False
        await chat.flush()
        by_meaning = await chat.recall("puppy")

    assert state.last_error is None
    assert "We walk the hound at noon." in [hit.text for hit in by_word]
    assert "We walk the hound at noon." in [hit.text for hit in by_meaning]


async def test_the_log_and_check_say_why_the_vectors_of_an_embedder_are_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, 0.0]] * (len(texts) + 1)

    async with Memory.open(IN_MEMORY, embedder=embed) as memory:
        chat = memory.conversation("a", user="ana")
        await chat.append(said("puppy"))
        await chat.flush(everything=True)
        found = {hit.text for hit in await chat.recall("puppy", kind="message")}
        (problem,) = await memory.check()

    told = " vectors of [2] dimensions for "
    warned = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert found == {"puppy"}
    assert told in problem.what
    assert any(told in text and "return one vector for each text" in text for text in warned)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "NoneType: "),
        ("abc", "str: "),
        ({"data": 1}, "dict: "),
        (iter([[1.0]]), "list_iterator: "),
        ([1.0], "list[float]: "),
        ([None, [1.0]], "list[NoneType | list[float]]: "),
        ([["a"]], "list[list[str]]: "),
    ],
)
async def test_check_names_the_type_of_what_an_embedder_gives_for_vectors(
    value: Any, kind: str
) -> None:
    async def embed(texts: Sequence[str]) -> list[list[float]]:
        return value  # type: ignore[no-any-return] # of a wrong type

    async with Memory.open(IN_MEMORY, embedder=embed) as memory:
        await memory.facts.save("Rex is her puppy", user="ana")
        await memory.conversation("a").flush()
        (problem,) = await memory.check()

    assert (
        f"embed gave a value of type {kind}return a list with one list of numbers" in problem.what
    )


class Shortened(Meanings):
    """Declares more dimensions than its vectors have."""

    @property
    def dimensions(self) -> int:
        return 128


async def test_check_names_the_dimensions_that_an_embedder_declares_and_does_not_give() -> None:
    async with Memory.open(IN_MEMORY, embedder=Shortened()) as memory:
        await memory.facts.save("Rex is her puppy", user="ana")
        await memory.conversation("a").flush()
        (problem,) = await memory.check()

    assert "return one vector for each text, each of dimensions=128" in problem.what


async def test_check_says_that_an_embedder_changed_its_dimensions_under_its_name(
    tmp_path: Path,
) -> None:
    dimensions = 2

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0] * dimensions for _ in texts]

    async with Memory.open(f"sqlite:///{tmp_path}/m.db", embedder=embed) as memory:
        chat = memory.conversation("a", user="ana")
        await chat.append(said("puppy"))
        await chat.flush(everything=True)
        before = await memory.check()
        dimensions = 3
        await chat.append(said("hound"))
        await chat.flush(everything=True)
        (problem,) = await memory.check()

    assert before == ()
    assert "vectors of 3 dimensions, and those stored under its name have 2" in problem.what
    assert "another name" in problem.what


async def test_an_embedder_gets_no_secret_of_a_message_note_fact_or_query() -> None:
    secret = "sk-proj-4f9d2c71ab88e0"
    embedder = Meanings()
    async with Memory.open(IN_MEMORY, policy=FULL, embedder=embedder) as memory:
        chat = memory.conversation("a", user="ana")
        await chat.append(said(f"My puppy is Rex, and the API key is {secret}."))
        await chat.append(said("x " * 3_993 + secret))
        await memory.facts.save(f"The key for the puppy cam is {secret}.", user="ana")
        await chat.end()
        found = await chat.recall(f"puppy {secret}")

    assert "My puppy is Rex, and the API key is [secret]." in embedder.texts
    assert "puppy [secret]" in embedder.texts
    assert [text for text in embedder.texts if secret[:9] in text] == []
    assert any(secret in hit.text for hit in found)


async def test_a_query_waits_for_its_vector_no_longer_than_its_limit() -> None:
    embedder = Meanings()
    policy = FULL.replace(recall_timeout_seconds=0.05)
    async with Memory.open(IN_MEMORY, policy=policy, embedder=embedder) as memory:
        chat = memory.conversation("a")
        await chat.append(said("We walk the hound at noon."))
        embedder.gate.clear()
        async with asyncio.timeout(60):
            hits = await chat.recall("hound")
        embedder.gate.set()

    assert [hit.text for hit in hits] == ["We walk the hound at noon."]


async def test_calls_of_an_embedder_that_hang_hold_up_no_later_recall() -> None:
    ended = threading.Event()

    def stuck(texts: Sequence[str]) -> list[list[float]]:
        ended.wait()
        return [[1.0] for _ in texts]

    policy = FULL.replace(recall_timeout_seconds=0.05)
    async with Memory.open(IN_MEMORY, policy=policy, embedder=stuck) as memory:
        chat = memory.conversation("a")
        await chat.append(said("We walk the hound at noon."))
        try:
            async with asyncio.timeout(10), asyncio.TaskGroup() as group:
                calls = [group.create_task(chat.recall("hound")) for _ in range(40)]
        finally:
            ended.set()

    assert [hit.text for hit in calls[-1].result()] == ["We walk the hound at noon."]


@pytest.mark.req("X-14")
async def test_a_deleted_conversation_leaves_no_note_fact_or_vector_also_from_work_in_flight() -> (
    None
):
    embedder = Meanings()
    async with Memory.open(IN_MEMORY, policy=FULL, embedder=embedder) as memory:
        chat = memory.conversation("a", user="ana")
        other = memory.conversation("b", user="ana")
        await other.append(said("Hello."))
        await chat.append(said("I live in Lisbon with a hound."))
        embedder.failing = True
        await chat.flush(everything=True)
        embedder.failing = False
        embedder.gate.clear()
        embedder.called.clear()
        async with asyncio.TaskGroup() as group:
            group.create_task(other.flush())
            async with asyncio.timeout(60):
                await embedder.called.wait()
            await chat.delete()
            embedder.gate.set()
        await chat.append(said("Hello."))
        await chat.flush(everything=True)
        hits = await chat.recall("puppy", limit=20)
        facts = await memory.facts.search("dog Lisbon", user="ana", limit=20)

    assert all("hound" not in hit.text for hit in hits)
    assert facts == ()


async def test_a_note_whose_observer_gives_no_time_is_found_by_that_of_its_first_message() -> None:
    notes = tuple(Note(text=f"flight LH {seq}", first_seq=seq, last_seq=3) for seq in (1, 2))
    observer = ScriptedObserver([Draft(notes=notes, made_by="mine/1")])
    async with Memory.open(IN_MEMORY, policy=FULL, observer=observer) as memory:
        chat = memory.conversation("a")
        await chat.append(
            *(Message.user("My flight.", created_at=NOON - timedelta(days=d)) for d in (3, 2, 1))
        )
        await chat.flush(everything=True)
        found = await chat.recall("flight", kind="note", until=NOON - timedelta(days=2))

    assert [hit.text for hit in found] == ["flight LH 1"]


async def test_hits_are_filtered_by_time_tag_priority_and_role() -> None:
    async with Memory.open(IN_MEMORY, policy=FULL) as memory:
        chat = memory.conversation("a")
        await chat.append(
            said("We decided to take the tram to the harbour.", 0),
            Message.assistant("The tram to the harbour it is.", created_at=NOON),
            said("The tram stops at the harbour at 9:40.", 60),
        )
        await chat.flush(everything=True)
        by = {
            "tag": await chat.recall("tram harbour", limit=9, tag="Fact"),
            "priority": await chat.recall("tram harbour", limit=9, priority="NOTE"),
            "role": await chat.recall("tram harbour", limit=9, role="assistant"),
            "since": await chat.recall("tram harbour", limit=9, since=NOON + timedelta(hours=1)),
            "until": await chat.recall("tram harbour", limit=9, until=NOON),
        }

    assert {hit.tag for hit in by["tag"]} == {"Fact"}
    assert {hit.priority for hit in by["priority"]} <= {"NOTE"}
    assert [hit.first_seq for hit in by["role"]] == [2]
    assert {hit.first_seq for hit in by["since"]} == {3}
    assert by["until"] == ()


@pytest.mark.parametrize("query", ["Porto", "Where do I live?"])
@pytest.mark.parametrize(
    ("only", "source"),
    [(RecallFilter(until=NOON + timedelta(hours=1)), None), (RecallFilter(), "c0")],
)
async def test_a_fact_is_found_behind_hundreds_that_a_filter_leaves_out(
    query: str, only: RecallFilter, source: str | None
) -> None:
    store, owner = await open_store(IN_MEMORY), Owner("default", "ana")
    texts = ["We moved to Porto in May"]
    texts += [f"Porto invoice {number}" for number in range(COMPARED_FACTS)]
    facts = [
        Fact(
            id=f"f{day}",
            tenant="default",
            user="ana",
            summary=text,
            type="knowledge",
            created_at=NOON,
            valid_from=NOON + timedelta(days=day),
            conversation=f"c{day}",
        )
        for day, text in enumerate(texts)
    ]
    await store.save_facts(FactChanges(facts=tuple(facts)))
    search = Search(store=store, embedder=None, policy=FULL)

    hits = await search.search(owner, owner, query, limit=5, only=only, source=source)
    await store.close()

    assert [hit.text for hit in hits] == texts[:1]


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"role": "bot"}, "role='bot' is impossible: use 'system' or 'user' or"),
        ({"tag": "Gossip"}, "tag='Gossip' is impossible: use 'Decision' or"),
        ({"since": "yesterday"}, "since='yesterday' is impossible: use datetime or None"),
        ({"until": datetime(2026, 3, 2)}, "is impossible: give it a time zone"),  # noqa: DTZ001
    ],
)
async def test_a_filter_that_nothing_can_pass_is_named(wanted: Any, told: str) -> None:
    async with Memory.open(IN_MEMORY) as memory:
        with pytest.raises(InvalidPolicy) as caught:
            await memory.conversation("a").recall("tram", **wanted)
    assert told in str(caught.value)


async def test_another_conversation_of_the_same_user_can_be_searched_and_no_one_elses() -> None:
    async with Memory.open(IN_MEMORY, policy=Policy(extract_facts=False)) as memory:
        await memory.conversation("old", user="ana").append(said("The tulips are yellow."))
        await memory.conversation("hers", user="eve").append(said("The tulips are black."))
        await memory.conversation("nobodys").append(said("The tulips are grey."))
        chat = memory.conversation("new", user="ana")
        await chat.append(said("Hello."))
        here = await chat.recall("tulips")
        there = await chat.recall("tulips", conversation="old")
        for name in ("hers", "nobodys", "missing"):
            with pytest.raises(ConversationNotFound, match=name):
                await chat.recall("tulips", conversation=name)

    assert here == ()
    assert [(hit.conversation, hit.text) for hit in there] == [("old", "The tulips are yellow.")]


async def test_long_messages_come_as_snippets_within_a_token_limit() -> None:
    filler = "Nothing of interest happened on that day in the village by the river. " * 60
    async with Memory.open(IN_MEMORY) as memory:
        chat = memory.conversation("a")
        for number in range(6):
            await chat.append(said(f"{filler} The mill number {number} burned down. {filler}"))
        hits = await chat.recall("mill burned", limit=6)
        few = await chat.recall("mill burned", limit=6, max_tokens=250)

    assert len(hits) == 6
    assert all("burned down" in hit.snippet and len(hit.snippet) < 410 for hit in hits)
    assert 1 <= len(few) < 6
    assert sum(count_tokens(hit.snippet) for hit in few) <= 250


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("지난주에 서울에서 부산까지 기차를 탔어요.", "부산"),
        ("東京の天気は晴れです。", "天気"),
        ("我们星期五飞往北京。", "北京"),
    ],
)
async def test_text_without_spaces_is_recalled_and_cut_at_the_right_place(
    text: str, query: str
) -> None:
    async with Memory.open(IN_MEMORY) as memory:
        chat = memory.conversation("a", user="ana")
        await memory.facts.save(text, user="ana")
        await chat.append(said("아무 일도 없었다。" * 200 + text + "終わり。" * 200))
        hits = await chat.recall(query, limit=2)

    assert {hit.kind for hit in hits} == {"message", "fact"}
    assert all(query in hit.snippet for hit in hits)


@pytest.mark.req("X-18")
@pytest.mark.parametrize(
    "recording",
    [
        {"type": "input_audio", "input_audio": {"data": "UklGR" * 50, "format": "wav"}},
        {"type": "voice", "media_type": "audio/wav", "data": "UklGR" * 50},
    ],
)
async def test_the_text_of_a_message_with_a_recording_has_nothing_of_its_format(
    recording: dict[str, object],
) -> None:
    said = {"type": "text", "text": "Listen to the engine."}
    async with Memory.open(IN_MEMORY) as memory:
        chat = memory.conversation("boat")
        await chat.append(Message.from_openai({"role": "user", "content": [said, recording]}))
        (hit,) = await chat.recall("engine")

        assert (hit.text, hit.snippet) == ("Listen to the engine.",) * 2
        assert await chat.recall("wav") == ()


async def test_from_a_note_that_was_found_to_its_messages_page_by_page() -> None:
    async with Memory.open(IN_MEMORY, observer=ScriptedObserver(), policy=FULL) as memory:
        chat = memory.conversation("a")
        for number in range(10):
            await chat.append(said(f"Lighthouse number {number} was painted in white."))
        await chat.flush(everything=True)
        note = next(h for h in await chat.recall("Lighthouse", limit=20) if h.kind == "note")
        pages, after = [], 0
        while page := await chat.source(note.source_id, after=after, limit=4):
            pages.append([message.seq for message in page])
            after = page[-1].seq
        small = await chat.source(note.source_id, max_tokens=1)

    assert pages == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]
    assert [message.seq for message in small] == [1]


async def test_a_text_that_the_embedder_refuses_holds_up_no_other_and_is_sent_no_more() -> None:
    embedder = Meanings()
    embedder.refused = "poison"
    async with Memory.open(
        IN_MEMORY,
        policy=FULL.replace(extract_facts=False),
        embedder=embedder,
        observer=ScriptedObserver(),
    ) as memory:
        chat = memory.conversation("a", user="ana")
        for number in range(20):
            await chat.append(said(f"poison {number}" if number == 7 else f"puppy {number}"))
        await chat.flush(everything=True)
        calls = embedder.calls
        other = memory.conversation("b", user="ben")
        await other.append(said("my automobile is red"))
        await other.flush(everything=True)
        hits = await other.recall("car")
        await chat.flush()

    assert [text for text in embedder.texts if "poison" in text] == []
    assert len([text for text in embedder.texts if text.startswith("puppy")]) >= 19
    assert [hit.text for hit in hits if hit.kind == "message"] == ["my automobile is red"]
    assert calls <= 40
    assert embedder.calls - calls <= 6


async def test_a_text_gets_its_vector_after_a_failure_of_an_embedder_that_passes() -> None:
    failures = 1

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        nonlocal failures
        if failures and any("puppy" in text for text in texts):
            failures -= 1
            raise RuntimeError("503 Service Unavailable")
        return [[1.0, 0.0] if "puppy" in text or "dog" in text else [0.0, 1.0] for text in texts]

    async with Memory.open(IN_MEMORY, embedder=embed) as memory:
        saved = await memory.facts.save("Rex is her puppy", user="ana")
        for _ in range(2):
            await memory.conversation("a").flush()
        found = await memory.facts.search("dog", user="ana", limit=1)

    assert failures == 0
    assert found == (saved,)


@pytest.mark.parametrize("kind", ["fact", "message"])
async def test_a_text_that_fails_again_and_again_is_left_to_words_until_a_retry(kind: str) -> None:
    failing = True

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        if failing and any("puppy" in text for text in texts):
            raise RuntimeError("no such token")
        return [[1.0, 0.0] if "puppy" in text or "dog" in text else [0.0, 1.0] for text in texts]

    async with Memory.open(IN_MEMORY, embedder=embed) as memory:
        chat = memory.conversation("a", user="ana")
        texts = "Rex is her puppy", "The sun is shining"
        if kind == "message":
            await chat.append(*map(said, texts))
        for text in texts if kind == "fact" else ():
            await memory.facts.save(text, user="ana")
        for _ in range(MAX_TRIES):
            await chat.flush(everything=True)
        (problem,) = await memory.check()
        before = await chat.recall("dog", limit=1)
        failing = False
        await chat.flush(retry=True)
        after = await chat.recall("dog", limit=1)
        problems = await memory.check()

    assert "refused" in problem.what
    assert "with RuntimeError: no such token" in problem.what
    assert "flush(retry=True)" in problem.remedy
    assert [hit.text for hit in before] == ["The sun is shining"]
    assert [hit.text for hit in after] == ["Rex is her puppy"]
    assert problems == ()


@pytest.mark.parametrize("value", [nan, inf, -inf, 1e39])
async def test_a_vector_that_is_not_finite_is_refused_and_others_are_kept(
    value: float, caplog: pytest.LogCaptureFixture
) -> None:
    async def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, value if "poison" in text else 0.5] for text in texts]

    caplog.set_level("DEBUG", "remanence")
    async with Memory.open("sqlite:///:memory:", embedder=embed) as memory:
        chat = memory.conversation("a", user="ana")
        await chat.append(said("poison"), said("puppy"))
        await chat.flush(everything=True)
        found = {hit.text for hit in await chat.recall("dog", kind="message")}

    assert found == {"puppy"}
    assert (
        f"embed gave a vector with the value {value!r}, which cannot be compared: " in caplog.text
    )


async def test_observations_after_a_failure_do_not_call_the_embedder_before_its_time() -> None:
    embedder = Meanings()
    embedder.failing = True
    policy = Policy(observe_tokens=20, keep_last=0)
    async with Memory.open(
        IN_MEMORY, policy=policy, embedder=embedder, observer=ScriptedObserver()
    ) as memory:
        chat = memory.conversation("a", user="ana")
        await chat.append(said("my puppy is called Rex"))
        await chat.flush(everything=True)
        calls = embedder.calls
        await chat.append(said("my automobile is red " * 10))
        async with asyncio.timeout(60):
            while len(await chat.observations()) < 2:
                pass
        for _ in range(20):
            await chat.state()
        again = embedder.calls
        embedder.failing = False
        await chat.flush()

    assert again == calls
    assert "my puppy is called Rex" in embedder.texts


async def test_of_a_huge_message_the_beginning_and_the_end_are_found() -> None:
    text = f"alpha {'filler words ' * 40_000} omega"
    async with Memory.open(IN_MEMORY, observer=ScriptedObserver()) as memory:
        chat = memory.conversation("a")
        await chat.append(said(text))
        found = [len(await chat.recall(word)) for word in ("alpha", "omega")]
        (hit,) = await chat.recall("omega")

    assert found == [1, 1]
    assert "omega" in hit.snippet


async def test_messages_whose_observations_were_purged_get_vectors_of_a_later_embedder(
    tmp_path: Path,
) -> None:
    async def by_topic(texts: Sequence[str]) -> list[list[float]]:
        return [[float("ferry" in text or "boat" in text), 0.1] for text in texts]

    url = f"sqlite:///{tmp_path / 'memory.db'}"
    policy = Policy.default(superseded="purge", reflect_at_end=True)
    async with Memory.open(url, policy=policy) as memory:
        chat = memory.conversation("trip", user="ana")
        for number in range(6):
            await chat.append(
                Message.user(f"The ferry number {number} leaves on Friday from gate B{number}."),
                Message.assistant("Noted."),
            )
            await chat.flush(everything=True)
        await chat.end()

    async with Memory.open(url, policy=policy, embedder=by_topic) as memory:
        chat = memory.conversation("trip", user="ana")
        await chat.flush(everything=True)
        hits = await chat.recall("boat", kind="message", limit=3)

    assert {hit.first_seq % 2 for hit in hits} == {1}
