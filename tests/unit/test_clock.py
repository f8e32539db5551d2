from datetime import UTC, datetime, timedelta

import pytest

from remanence.clock import SystemClock, render_time

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


class Machine(SystemClock):
    """A machine's clock that a test sets."""

    def __init__(self, time: datetime) -> None:
        self.time = time

    def machine_time(self) -> datetime:
        return self.time


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_follows_the_server_both_ways(hours: int) -> None:
    machine = Machine(NOON + timedelta(hours=hours))

    machine.follow(NOON, asked_at=machine.time)

    assert machine.now() == NOON


def test_a_clock_is_corrected_again_when_the_machine_is_set_right() -> None:
    machine = Machine(NOON + timedelta(hours=1))
    machine.follow(NOON, asked_at=machine.time)
    machine.time = NOON

    machine.follow(NOON, asked_at=machine.time)

    assert machine.now() == NOON


def test_less_than_a_second_is_left_alone() -> None:
    machine = Machine(NOON + timedelta(milliseconds=900))

    machine.follow(NOON, asked_at=machine.time)

    assert machine.now() == machine.time


def test_an_answer_that_took_long_proves_nothing() -> None:
    machine = Machine(NOON)
    asked_at, machine.time = machine.time, NOON + timedelta(minutes=5)

    machine.follow(NOON + timedelta(minutes=2), asked_at=asked_at)

    assert machine.now() == machine.time


def test_a_time_of_another_day_is_shown_with_its_date() -> None:
    assert render_time(NOON + timedelta(hours=11), now=NOON) == "23:00:00 UTC"
    assert render_time(NOON + timedelta(hours=12), now=NOON) == "2026-03-03 00:00:00 UTC"


def test_ids_of_one_millisecond_sort_by_creation_time() -> None:
    machine = Machine(NOON)
    ids = []
    for microseconds in range(50):
        machine.time = NOON + timedelta(microseconds=microseconds)
        ids.append(machine.new_id("fact"))

    assert ids == sorted(ids)


def test_ids_of_one_microsecond_differ() -> None:
    machine = Machine(NOON)

    assert len({machine.new_id("fact") for _ in range(1000)}) == 1000
