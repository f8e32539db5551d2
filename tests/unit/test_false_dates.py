"""Words that look like a relative date but are part of something else stay as said."""

from datetime import UTC, datetime

import pytest

from remanence.dates import find_dates

THURSDAY = datetime(2026, 11, 5, 12, 0, tzinfo=UTC)


def relative_dates(text: str) -> list[str]:
    return [mention.text for mention in find_dates(text, THURSDAY) if mention.relative]


@pytest.mark.parametrize(
    "said",
    [
        "备注须在11月7日之前送达",
        "11月7日以前付清",
        "十一月七日之前寄出",
        "11/7日前确认",
        "每月5日前还款",
        "12月2日前定稿",
        "3月5日之后再说",
        "7日之前交表",
        "11月7日前に欲しい",
        "11月30日後でも",
        "十二月三日前に送る",
        "毎月5日前に家賃",
        "11/7日前に届けて",
        "11월 7일 전에 주세요",
        "12월 2일 후에 만나요",
        "매달 10일 전에 내요",
        "11/7일 전에 주세요",
        "Kasım 7 gün önce değil",
    ],
)
def test_the_number_of_a_day_in_a_month_counts_no_days_from_today(said: str) -> None:
    assert relative_dates(said) == []


@pytest.mark.parametrize(
    "said", ["两年三个月前搬家", "1年3か月前に買った", "1년 3개월 전에 샀어요", "一周三天后见"]
)
def test_a_count_in_two_units_is_not_read_by_its_last_unit(said: str) -> None:
    assert relative_dates(said) == []


@pytest.mark.parametrize(
    ("said", "dated"),
    [
        ("本月7日之前", ["本月"]),
        ("来月5日前に振り込む", ["来月5日"]),
        ("다음 달 3일 전에", ["다음 달 3일"]),
        ("三日前见过", ["三日前"]),
        ("我三天前在车站见过她", ["三天前"]),
        ("3日前に会った", ["3日前"]),
        ("저는 3일 전에 만났어요", ["3일 전"]),
    ],
)
def test_days_counted_from_today_have_a_date(said: str, dated: list[str]) -> None:
    assert relative_dates(said) == dated
