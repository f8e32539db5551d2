"""Search: words and CJK text are found in live notes and messages of one conversation."""

import pytest

from remanence.protocols import Store
from remanence.testing.store_contract.handles import Handles
from remanence.testing.store_contract.samples import (
    ANA,
    REF,
    at,
    expect_state,
    observation,
    reflection,
    tape,
    user,
)
from remanence.types import ConversationRef, Hit, Message, Note, Owner, RecallFilter, ToolCallPart

TEXTS = [
    "My flight LH 454 leaves on Friday from Munich.",
    "The café on Torstraße opens at nine; the password is Xq-9917.",
    "지난주에 서울에서 부산까지 기차를 탔어요.",
    "東京の天気は晴れです。新しい寿司屋を予約しました。",
    "我们星期五飞往北京，航班号是 CA1234。",
    "Рейс задерживается до вечера.",
    "मेरी उड़ान शुक्रवार को है।",
    "พรุ่งนี้ฉันจะไปเชียงใหม่",
    "غادرت الرحلة مطار القاهرة",
    "Nothing to see here, move along.",
    "Ọ̀rẹ́ mi ni Adé.",
    "ދިވެހި ބަސް",
    "བོད་སྐད།",
    "Ёлка стоит у двери.",
    "Ο γιατρός στην Αθήνα.",
    "Tôi sống ở Đà Nẵng.",
]


class SearchContract(Handles):
    """`search`."""

    @pytest.mark.parametrize(
        ("query", "seq"),
        [
            ("flight", 1),
            ("FLIGHTS", 1),
            ("lh 454", 1),
            ("Torstraße", 2),
            ("torstrasse", 2),
            ("TORSTRASSE", 2),
            ("cafe", 2),
            ("Xq-9917", 2),
            ("지난주", 3),
            ("부산", 3),
            ("서울에서", 3),
            ("天気", 4),
            ("寿司", 4),
            ("航班号", 5),
            ("北京", 5),
            ("CA1234", 5),
            ("飞", 5),
            ("рейс", 6),
            ("उड़ान", 7),
            ("เชียงใหม่", 8),
            ("القاهرة", 9),
            ("ọ̀rẹ́", 11),
            ("ދިވެހި", 12),
            ("བོད་སྐད", 13),
            ("елка", 14),
            ("ёлка", 14),
            ("γιατρος", 15),
            ("ΑΘΉΝΑ", 15),
            ("nang", 16),
        ],
    )
    async def test_a_word_of_any_script_is_found(self, store: Store, query: str, seq: int) -> None:
        await store.append(REF, [user(text) for text in TEXTS], user=None)

        hits = await store.search(REF, query, limit=3)

        assert [hit.first_seq for hit in hits][:1] == [seq]
        assert hits[0].text == TEXTS[seq - 1]

    async def test_a_message_hit_names_its_message(self, store: Store) -> None:
        message = Message.user("flight LH 454", name="Ana", id="m1", created_at=at(3))
        await store.append(REF, [user("x"), message], user=None)

        (hit,) = await store.search(REF, "flight", limit=3)

        assert hit == Hit(
            kind="message",
            text="flight LH 454",
            first_seq=2,
            last_seq=2,
            at=at(3),
            score=hit.score,
            source_id="m1",
            conversation=REF.id,
            role="user",
            speaker="Ana",
        )

    async def test_a_note_hit_names_its_segment_and_source(self, store: Store) -> None:
        notes = (
            Note(text="prefers tea", first_seq=1, last_seq=2),
            Note(
                text="booked a window seat",
                first_seq=2,
                last_seq=3,
                observed_at=at(5),
                speaker="Ana",
            ),
        )
        await store.append(REF, [user(f"{n}") for n in range(4)], user=None)
        state = await store.state(REF)
        assert state is not None
        expect_state(await store.commit_observation(state, observation(1, 4, notes=notes)))

        (hit,) = await store.search(REF, "window seats", limit=3)

        assert (hit.kind, hit.text, hit.at) == ("note", "booked a window seat", at(5))
        assert hit.speaker == "Ana"
        assert (hit.first_seq, hit.last_seq, hit.source_id) == (2, 3, "g0-1-4")

    async def test_the_text_of_a_segment_without_notes_is_found(self, store: Store) -> None:
        state = await tape(store, 2)
        prose = observation(1, 2, notes=(), text="She likes rain.")
        expect_state(await store.commit_observation(state, prose))

        (hit,) = await store.search(REF, "rain", limit=3)

        assert (hit.kind, hit.text, hit.first_seq, hit.last_seq) == ("note", prose.text, 1, 2)

    async def test_tool_calls_and_results_are_found(self, store: Store) -> None:
        call = ToolCallPart(id="c1", name="get_weather", arguments='{"city": "Oslo"}')
        messages = [Message.assistant(tool_calls=[call]), Message.tool("c1", "minus four degrees")]
        await store.append(REF, messages, user=None)

        found = [
            [hit.first_seq for hit in await store.search(REF, query, limit=3)]
            for query in ("Oslo", "weather", "degrees")
        ]

        assert found == [[1], [1], [2]]

    async def test_what_the_host_or_a_memory_put_there_is_not_found(self, store: Store) -> None:
        injected = [
            Message.user("The locker code is 1111.", kind="control"),
            Message.user("Notes: the locker code is 2222.", kind="memory"),
        ]
        await store.append(REF, [*injected, user("The locker code is 4471.")], user=None)

        hits = await store.search(REF, "locker code", limit=9)

        assert [hit.first_seq for hit in hits] == [3]

    async def test_the_best_match_comes_first(self, store: Store) -> None:
        texts = [*["some other talk of the day"] * 8, "a red bicycle", "a bicycle", "red wine"]
        await store.append(REF, [user(text) for text in texts], user=None)

        hits = await store.search(REF, "red bicycle", limit=10)

        assert [hit.first_seq for hit in hits][:1] == [9]
        assert {hit.first_seq for hit in hits} == {9, 10, 11}
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)

    async def test_another_tenants_words_change_neither_order_nor_scores(
        self, store: Store
    ) -> None:
        texts = ["red red car", "a bicycle by the sea", "red bicycle", "the sea"]
        await store.append(REF, [user(text) for text in texts], user=None)
        query = "red bicycle sea"
        before = await store.search(REF, query, limit=9)

        for place in range(3):
            other = ConversationRef("other", f"chat-{place}")
            await store.append(
                other, [user("sea bicycle of many words") for _ in range(40)], user=None
            )
            await store.search(other, query, limit=1)

        assert len(before) == len(texts)
        assert await store.search(REF, query, limit=9) == before

    async def test_replaced_notes_are_not_found(self, store: Store) -> None:
        state = await tape(store, 2)
        old = observation(1, 2, notes=(Note(text="old umbrella", first_seq=1, last_seq=2),))
        state = expect_state(await store.commit_observation(state, old))
        state = expect_state(await store.activate(state, active_seq=2, tail_seq=3, at=at(70)))
        new = reflection(1, 2, notes=(Note(text="new umbrella", first_seq=1, last_seq=2),))
        expect_state(await store.commit_reflection(state, new, [old.id]))

        hits = await store.search(REF, "umbrella", limit=5)

        assert [hit.text for hit in hits] == ["new umbrella"]

    async def test_a_search_stays_in_its_conversation(self, store: Store) -> None:
        for tenant, id_ in (("default", "other"), ("other", "chat"), REF):
            ref = ConversationRef(tenant, id_)
            await store.append(ref, [user(f"umbrella of {tenant} {id_}")], user=None)

        hits = await store.search(REF, "umbrella", limit=5)

        assert [hit.text for hit in hits] == ["umbrella of default chat"]

    async def test_a_search_of_a_user_covers_all_conversations_of_that_user_alone(
        self, store: Store
    ) -> None:
        count = 140  # more than one statement takes
        for number in range(count):
            ref = ConversationRef("default", f"chat {number}")
            await store.append(ref, [user(f"umbrella {number}", id="m1")], user="ana")
        for tenant, id_, owner in (
            ("default", "x", "bob"),
            ("t", "x", "ana"),
            ("default", "y", None),
        ):
            await store.append(ConversationRef(tenant, id_), [user("umbrella")], user=owner)
        await store.delete(ConversationRef("default", "chat 7"))

        hits = await store.search(ANA, "umbrella", limit=2 * count)
        (best,) = await store.search(ANA, "umbrella 133", limit=1)

        assert sorted((hit.conversation, hit.text) for hit in hits) == sorted(
            (f"chat {number}", f"umbrella {number}") for number in range(count) if number != 7
        )
        assert (best.conversation, best.text) == ("chat 133", "umbrella 133")
        assert await store.search(Owner("default", "eve"), "umbrella", limit=9) == ()

    async def test_a_filter_is_kept_also_behind_better_hits(self, store: Store) -> None:
        for minute in range(40):
            message = Message.user(f"umbrella {minute}", created_at=at(minute))
            await store.append(REF, [message], user=None)
        last = Message.assistant("one umbrella among many other words", created_at=at(50))
        await store.append(REF, [last], user=None)

        by_role = await store.search(REF, "umbrella", limit=1, only=RecallFilter(role="assistant"))
        by_time = await store.search(
            REF, "umbrella", limit=9, only=RecallFilter(since=at(3), until=at(5))
        )

        assert [hit.first_seq for hit in by_role] == [41]
        assert sorted(hit.first_seq for hit in by_time) == [4, 5]
        assert await store.search(REF, "umbrella", limit=9, only=RecallFilter(tag="Fact")) == ()

    async def test_no_more_hits_than_asked_for(self, store: Store) -> None:
        await store.append(REF, [user(f"umbrella {n}") for n in range(9)], user=None)

        assert [len(await store.search(REF, "umbrella", limit=n)) for n in (0, 1, 4, 20)] == [
            0,
            1,
            4,
            9,
        ]

    async def test_another_handle_finds_what_was_just_appended(
        self, store: Store, other: Store
    ) -> None:
        for number in range(150):
            await store.append(REF, [user(f"umbrella {number}")], user=None)

        assert len(await other.search(REF, "umbrella", limit=500)) == 150

    @pytest.mark.parametrize(
        "query",
        ["", " ", "\0", '"', "*", "'", "()", "-", ":", "^", "🦆", "\ud800", "%", "_", "{}[]\\;--"],
    )
    async def test_a_query_without_words_finds_nothing(self, store: Store, query: str) -> None:
        await store.append(REF, [user("umbrella 🦆 % _")], user=None)

        assert await store.search(REF, query, limit=5) == ()

    @pytest.mark.parametrize(
        "query",
        [
            'umbrella"',
            "umbrella AND (",
            "NEAR(umbrella, 5)",
            "text : umbrella",
            "umbrella*",
            "^umbrella",
            "-umbrella",
            "NOT umbrella OR",
            "umbrella'; DROP TABLE messages; --",
            "umbrella \ud800",
            "umbrella _ ि",
            "umbrella " * 5_000,
        ],
    )
    async def test_no_query_is_an_expression(self, store: Store, query: str) -> None:
        await store.append(REF, [user("umbrella"), user("rain")], user=None)

        hits = await store.search(REF, query, limit=5)

        assert [hit.text for hit in hits] == ["umbrella"]
