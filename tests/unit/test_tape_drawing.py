import pytest
from hypothesis import given, strategies as st
from tests.builders import state

from remanence.cli.tape_drawing import draw_tape
from remanence.testing.store_contract.samples import observation
from remanence.types import FailedStretch, MemoryState


def reached(reflected: int, active: int, observed: int, last: int) -> MemoryState:
    return state(
        reflected_seq=reflected,
        active_seq=active,
        observed_seq=observed,
        last_seq=last,
        tail_seq=min(active + 1, max(1, last)),
    )


cursors = st.lists(st.integers(0, 5_000), min_size=4, max_size=4).map(sorted)


def test_the_stretches_between_the_cursors_are_drawn_in_proportion() -> None:
    bar, *_ = draw_tape(reached(10, 20, 30, 40), (), width=44, plain=True)

    assert bar == "[" + "#" * 10 + "=" * 10 + "-" * 10 + "." * 10 + "]"


def test_each_cursor_points_at_its_place() -> None:
    lines = draw_tape(reached(10, 20, 30, 40), (), width=44, plain=True)

    assert [line.index("^") for line in lines[1:5]] == [10, 20, 30, 40]
    assert "reflected 10" in lines[1]
    assert "last 40" in lines[4]


def test_cursors_at_one_place_share_a_line() -> None:
    lines = draw_tape(reached(0, 20, 20, 20), (), width=44, plain=True)

    assert [line.strip() for line in lines[1:3]] == ["^ reflected 0", "active, observed, last 20 ^"]


def test_only_stretches_with_messages_are_explained() -> None:
    lines = draw_tape(reached(0, 0, 5, 9), (), width=44, plain=True)

    assert [line.partition(": ")[0] for line in lines if ": " in line] == [
        "-- observed, kept ready",
        ".. not yet observed",
        "raw tail",
    ]


def test_messages_that_were_given_up_are_drawn_as_in_no_note() -> None:
    stretches = (FailedStretch(3, 5, "error", "it broke"), FailedStretch(9, 9, "error", "again"))
    segment = observation(1, 10, text="", failed=stretches)

    bar, *_, given_up, _tail = draw_tape(reached(4, 10, 10, 10), (segment,), width=14, plain=True)

    assert bar == "[##xxx===x=]"
    assert given_up == "xx given up, in no note: messages 3..5, 9"


def test_messages_behind_the_end_of_the_tape_are_not_drawn() -> None:
    stretches = (FailedStretch(9, 12, "error", "it broke"), FailedStretch(12, 14, "error", "again"))
    segment = observation(1, 14, text="", failed=stretches)

    bar, *_, given_up, _tail = draw_tape(reached(4, 10, 10, 10), (segment,), width=14, plain=True)

    assert bar == "[####====xx]"
    assert given_up == "xx given up, in no note: messages 9..10"


def test_an_empty_tape_is_called_empty() -> None:
    assert draw_tape(reached(0, 0, 0, 0), (), width=80, plain=False) == ("the tape is empty",)


@given(cursors, st.integers(20, 200), st.booleans())
def test_the_bar_and_its_pointers_fit_the_terminal(
    seqs: list[int], width: int, plain: bool
) -> None:
    drawn = draw_tape(reached(*seqs), (), width=width, plain=plain)

    bar = next(line for line in drawn if line)
    assert len(bar) == (width - 2 if seqs[3] else len("the tape is empty"))
    assert not plain or all(line.isascii() for line in drawn)


@pytest.mark.parametrize("width", [1, 5])
def test_a_very_narrow_terminal_gets_a_short_bar(width: int) -> None:
    assert len(draw_tape(reached(1, 2, 3, 4), (), width=width, plain=True)[0]) == 12
