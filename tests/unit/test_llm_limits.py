import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from tests.recorded.recording import FOLDER

from remanence.dates.local_time import local_times
from remanence.observers.llm.writer import length_limit
from remanence.tokens import counter_for
from remanence.types import Message

_COUNT = counter_for("claude-sonnet-5-5").text
_NOTES = "\n".join(path.read_text("utf-8") for path in sorted(FOLDER.glob("*/*-observe.txt")))
_NUMBER = re.compile(r"([0-9,]+) (words|characters)")


def _limit(target_tokens: int, *, notes: str, talk: str) -> tuple[int, str]:
    found = _NUMBER.fullmatch(length_limit(target_tokens, notes=notes, talk=talk, count=_COUNT))
    assert found is not None
    return int(found[1].replace(",", "")), found[2]


@pytest.mark.parametrize("target_tokens", [100, 400, 1_600])
def test_so_many_words_of_notes_have_at_most_the_tokens_asked_for(target_tokens: int) -> None:
    number, unit = _limit(target_tokens, notes=_NOTES, talk="")
    words = (_NOTES * 4).split()[:number]

    assert unit == "words"
    assert 0.6 * target_tokens < _COUNT(" ".join(words)) <= target_tokens


def test_without_earlier_notes_the_talk_is_measured_and_less_is_asked_for() -> None:
    talk = "We thought of next month, the weekend of the 20th, if the flights are cheap. " * 20
    number, unit = _limit(400, notes="", talk=talk)

    assert unit == "words"
    assert _COUNT(" ".join((talk * 4).split()[:number])) <= 0.8 * 400


def test_text_without_spaces_is_measured_in_characters() -> None:
    talk = "下个月我想和哥哥一起去凤凰城玩几天，他住在底特律，我从慕尼黑出发，我们都喜欢植物。" * 10
    number, unit = _limit(400, notes="", talk=talk)

    assert unit == "characters"
    assert _COUNT((talk * 4)[:number]) <= 400


def test_times_have_the_offset_of_the_users_own_messages() -> None:
    winter, summer = timezone(timedelta(hours=1)), timezone(timedelta(hours=2))
    at = datetime(2026, 3, 28, 23, 30, tzinfo=UTC)
    messages = [
        Message.assistant("hello", created_at=at).replace(seq=1),
        Message.user("hi", created_at=at.astimezone(winter)).replace(seq=2),
        Message.assistant("well?", created_at=at).replace(seq=3),
        Message.user("in summer", created_at=at.astimezone(summer)).replace(seq=4),
        Message.assistant("so?", created_at=at).replace(seq=5),
    ]

    hours = {seq: time.utcoffset() for seq, time in local_times(messages).items()}
    assert hours == {
        **dict.fromkeys((1, 2, 3), timedelta(hours=1)),
        **dict.fromkeys((4, 5), timedelta(hours=2)),
    }
    assert set(local_times(messages).values()) == {at}


def test_without_a_user_each_message_keeps_its_own_time() -> None:
    zone = timezone(timedelta(hours=-5))
    at = datetime(2026, 3, 28, 23, 30, tzinfo=zone)
    message = Message.assistant("hello", created_at=at).replace(seq=1)

    assert local_times([message])[1].isoformat() == "2026-03-28T23:30:00-05:00"
    assert local_times([Message.assistant("no time")]) == {}
