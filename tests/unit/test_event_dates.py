from datetime import UTC, datetime

import pytest

from remanence.dates import find_dates
from remanence.observers.extractive.event_dates import format_date
from remanence.observers.extractive.passages import passages
from remanence.pacing import at_once
from remanence.types import Message


@pytest.mark.parametrize(
    ("said_on", "sentence", "shown"),
    [
        ("2026-11-22", "He left last March.", "last March"),
        ("2026-02-10", "He left last March.", "last March (2025)"),
        ("2026-11-22", "He left last Friday.", "Friday November 20"),
        ("2026-11-22", "He leaves next month.", "next month (December)"),
        ("2026-11-22", "He left two years ago.", "two years ago (2024)"),
        ("2026-11-22", "Er zieht nächstes Jahr um.", "nächstes Jahr (2027)"),
        ("2026-11-22", "他下个月搬家。", "12月"),
        ("2026-02-10", "Fue el abril pasado.", "abril pasado (2025)"),
        ("2026-11-22", "It hangs since last month.", "last month (October)"),
        ("2026-11-20", "It hangs since last week.", "last week (from November 9)"),
        ("2026-11-20", "I swam twice this week.", "this week (from November 16)"),
        (
            "2026-11-20",
            "J'ai nagé deux fois cette semaine.",
            "cette semaine (semaine du 2026-11-16)",
        ),
        ("2026-11-20", "Ich war zweimal diese Woche da.", "diese Woche (Woche vom 2026-11-16)"),
        ("2026-11-20", "Bu hafta iki kez yüzdüm.", "Bu hafta (2026-11-16 haftası)"),
        ("2026-11-20", "他上周搬家了。", "11月9日那周"),
        ("2026-11-20", "ok will call around tmrw", "tmrw (November 21)"),
        ("2026-11-20", "Stop by tomorrow.", "tomorrow (November 21)"),
        ("2026-11-20", "約3年前に結婚した。", "3年前（2023年）"),
        ("2026-11-20", "약 3년 전에 결혼했어.", "3년 전(2023년)"),
        ("2026-11-20", "大约三年前结婚。", "三年前（2023年）"),
        ("2026-02-22", "Ten days from today is 4 March, so no beach.", "Ten days from today"),
        ("2026-02-22", "Ten days from today there are 4 left, in May.", "March 4"),
        ("2026-02-22", "Wir fahren morgen los, am 23. Februar.", "morgen"),
        ("2026-02-22", "明天也就是2月23日出发。", "明天"),
    ],
)
def test_the_date_in_a_note_is_clear_beside_that_of_its_heading(
    said_on: str, sentence: str, shown: str
) -> None:
    at = datetime.fromisoformat(said_on).replace(tzinfo=UTC)
    (mention,) = find_dates(sentence, at)

    assert format_date(mention, at, sentence[mention.end :]) == shown


def test_the_days_of_all_messages_are_those_of_the_user() -> None:
    said = datetime.fromisoformat("2026-11-23T00:30:00+09:00")
    messages = [
        Message.user("Did I call the doctor?").replace(seq=1, created_at=said),
        Message.assistant("You called her yesterday.").replace(
            seq=2, created_at=said.astimezone(UTC)
        ),
    ]

    found = at_once(passages(messages))

    assert [str(day.first) for each in found for day in each.dates] == ["2026-11-22"]
