from datetime import datetime, timezone

from hypothesis import given, strategies as st

from remanence.observing.dates import find_dates, render_date, resolve_dates
from remanence.observing.dates.languages import LANGUAGES

MOMENTS = st.datetimes(
    min_value=datetime(1950, 1, 1),  # noqa: DTZ001
    max_value=datetime(2090, 1, 1),  # noqa: DTZ001
)
WORDS = sorted({word for language in LANGUAGES for slot in language.slots.values() for word in slot})
GLUE = [
    *("yesterday", "tomorrow", "ago", "in", "on", "the", "of", "for", "now", "weekend", "from", "since", "have"),
    *("vor", "seit", "am", "gestern", "hier", "il y a", "dans", "dernier", "hace", "en", "pasado", "mañana"),
    *("어제", "전", "뒤", "주", "월", "일", "에", "昨日", "前", "後", "の", "月", "日", "年", "上", "下", "个", "昨天", "周末"),
    *("3", "12", "2023", "5th", ".", ",", ":", "(", ")", "-", "/", "'s", "\n", "~", "`", "May", "2023-05-07", "Fri"),
]  # fmt: skip
PHRASES = st.lists(
    st.tuples(st.sampled_from([*WORDS, *GLUE]), st.sampled_from([" ", " ", " ", "", ", "])), max_size=9
).map(lambda parts: "".join(word + space for word, space in parts))


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
    assert resolve_dates(text, at) == resolve_dates(text, at.replace(tzinfo=timezone.utc))


@given(text=st.text() | PHRASES, at=st.datetimes())
def test_no_text_and_no_time_breaks_the_search(text: str, at: datetime) -> None:
    resolve_dates(text, at)
