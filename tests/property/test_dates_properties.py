from datetime import UTC, datetime

from hypothesis import given, strategies as st

from remanence.dates import find_dates, render_date, resolve_dates
from remanence.dates.language import Language, languages

MOMENTS = st.datetimes(
    min_value=datetime.fromisoformat("1950-01-01"), max_value=datetime.fromisoformat("2090-01-01")
)
GLUE = {
    "english": "yesterday tomorrow ago in on the of for now weekend from since have May Fri 5th 's",
    "german": "gestern morgen vor seit am vom im Wochenende",
    "french": "hier demain dans depuis le la il y a ce week-end",
    "spanish": "ayer mañana hace en desde el la de",
    "korean": "어제 오늘 전 뒤 주 월 일 에",
    "japanese": "昨日 今日 前 後 の 月 日 年 か",
    "chinese": "昨天 今天 前 后 的 月 日 年 个",
    "portuguese": "ontem amanhã há em de a no na",
    "italian": "ieri domani fa tra di a il la",
    "dutch": "gisteren morgen geleden over in de het",
    "russian": "вчера завтра назад через в на с",
    "turkish": "dün yarın önce sonra bu günü ayında",
    "neutral": "2023 05 07 T10:00 since in",
}
SHARED = ["3", "12", "2023", ".", ",", ":", "(", ")", "-", "/", "\n", "~", "`", "2023-05-07"]


def _words(language: Language) -> list[str]:
    slots = {word for slot in language.slots.values() for word in slot}
    return [*sorted(slots), *GLUE[language.name].split(), *SHARED]


def _phrases(language: Language) -> st.SearchStrategy[str]:
    return st.lists(
        st.tuples(st.sampled_from(_words(language)), st.sampled_from([" ", " ", ", "])), max_size=9
    ).map(lambda parts: "".join(word + space for word, space in parts))


PHRASES = st.sampled_from(languages()).flatmap(_phrases)


@given(text=st.text() | PHRASES, at=MOMENTS)
def test_mentions_lie_in_the_text_in_order_and_apart(text: str, at: datetime) -> None:
    mentions = find_dates(text, at)

    ends = [0, *(mention.end for mention in mentions)]
    for end, mention in zip(ends, mentions, strict=False):
        assert end <= mention.start < mention.end <= len(text)
        assert text[mention.start : mention.end] == mention.text
        assert mention.first <= mention.last
        assert render_date(mention)


@given(text=st.text() | PHRASES, at=MOMENTS)
def test_resolving_what_is_resolved_changes_nothing(text: str, at: datetime) -> None:
    once = resolve_dates(text, at)

    assert resolve_dates(once, at) == once


@given(text=PHRASES, at=MOMENTS)
def test_a_time_zone_changes_nothing_but_the_day_it_names(text: str, at: datetime) -> None:
    assert resolve_dates(text, at) == resolve_dates(text, at.replace(tzinfo=UTC))


@given(text=st.text() | PHRASES, at=st.datetimes())
def test_no_text_and_no_time_breaks_the_search(text: str, at: datetime) -> None:
    resolve_dates(text, at)
