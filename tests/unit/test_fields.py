from collections.abc import Callable

import pytest

from remanence import Policy, Settings
from remanence.errors import InvalidPolicy
from remanence.types import Budget


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Policy(facts_place="x"), "facts_place='x' is impossible: use 'prefix' or"),  # type: ignore[arg-type]
        (lambda: Policy(tail_tokens="8000"), "tail_tokens='8000' is impossible: use a whole"),  # type: ignore[arg-type]
        (lambda: Policy(enabled="no"), "enabled='no' is impossible: use true or false"),  # type: ignore[arg-type]
        (lambda: Policy(reflect_tokens=5), "reflect_tokens=5 is impossible"),  # type: ignore[arg-type]
        (lambda: Policy(observe_tokens=True), "observe_tokens=True is impossible"),
        (lambda: Policy(retry_seconds=-1), "retry_seconds=-1 is impossible"),
        (lambda: Policy(max_message_bytes=0), "max_message_bytes=0 is impossible"),
        (lambda: Settings(durability="fast"), "durability='fast' is impossible: use 'full' or"),  # type: ignore[arg-type]
        (lambda: Settings(preset="x"), "preset='x' is impossible"),  # type: ignore[arg-type]
        (lambda: Settings(lease_seconds=-1), "lease_seconds=-1 is impossible"),
        (lambda: Settings(daily_keep_days=-1), "daily_keep_days=-1 is impossible"),
        (lambda: Settings(budgets=("x",)), r"budgets=\('x',\) is impossible"),  # type: ignore[arg-type]
        (lambda: Budget(scope="week", hard_tokens=1), "scope='week' is impossible"),  # type: ignore[arg-type]
        (lambda: Budget(scope="day", hard_usd=float("nan")), "hard_usd=nan is impossible"),
        (lambda: Budget(scope="day", soft_usd=5, hard_usd=1), "soft_usd=5 is above hard_usd=1"),
    ],
)
def test_an_impossible_value_is_refused_where_it_is_given(
    make: Callable[[], object], told: str
) -> None:
    with pytest.raises(InvalidPolicy, match=told):
        make()


def test_whole_numbers_are_numbers_and_lists_are_tuples() -> None:
    assert Policy(retry_seconds=30).retry_seconds == 30
    assert Policy(reflect_tokens=[5_000, 24_000]).reflect_tokens  # type: ignore[arg-type]
