"""No input makes memory do more than a fixed amount of work for each of its characters.

The functions that are entered are counted; a pattern that backtracks would not end in time.
"""

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from types import FrameType

import pytest
from benchmarks.hostile import SHAPES
from tests.builders import numbered, observe_request
from tests.slow import slow_except

from remanence.notes import one_line
from remanence.notes.literals import LossReport
from remanence.notes.program_text import instructions_in, own_text
from remanence.notes.redact import redact
from remanence.observers.extractive.observer import extract
from remanence.observers.extractive.outcomes import rows_of_tools
from remanence.observers.extractive.sentences import sentences
from remanence.observers.llm.line_heads import read_head
from remanence.observers.observable import observable
from remanence.pacing import at_once
from remanence.protocols import ObserveRequest
from remanence.recall.snippets import snippet
from remanence.stores.terms import index_terms, query_terms
from remanence.tokens.estimator import estimator
from remanence.types import Message, ToolCallPart

SMALL, LARGE = 600, 2_400
MOST_GROWTH = 7
"""Of the work for four times the length: 4 is linear, 16 quadratic."""

MARGIN_CALLS = 2_000
"""Work that does not depend on the length: tables that are loaded, words that come once."""
NOW = datetime(2024, 5, 1, tzinfo=UTC)
COUNT = estimator("claude")


def request_of(*messages: Message) -> ObserveRequest:
    return observe_request(*observable(numbered(*messages)), target_tokens=100, count_tokens=COUNT)


def observe(*messages: Message) -> None:
    at_once(extract(request_of(*messages)))


def observe_tool(text: str) -> None:
    call = ToolCallPart(id="c1", name="run", arguments=text)
    observe(Message.assistant(tool_calls=[call]), Message.tool("c1", text))


def count_anew(text: str) -> int:
    """Count with no piece known from other texts, so that both sizes cost all they may."""
    estimator.cache_clear()
    return estimator("claude")(text)


WORK: dict[str, Callable[[str], object]] = {
    "observing what a user wrote": lambda text: observe(Message.user(text)),
    "observing a tool's result": observe_tool,
    "redacting and cleaning": lambda text: observable([Message.user(text)]),
    "the loss report": lambda text: LossReport("a note").add(text),
    "a snippet": lambda text: snippet(text, text[:200]),
    "words for the index": index_terms,
    "a query": query_terms,
    "counting tokens": count_anew,
    "a line of notes": one_line,
    "text of programs": own_text,
    "instructions of programs": instructions_in,
}


def calls_of(work: Callable[[str], object], text: str) -> int:
    """How many functions and generators were entered, in Python and below."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work(text)
    finally:
        sys.setprofile(before)
    return calls


EVERYDAY = [name for name in WORK if not name.startswith("observing")]


@pytest.mark.parametrize("name", slow_except(WORK, EVERYDAY))
def test_work_grows_with_the_length_of_a_text_alone(name: str) -> None:
    work = WORK[name]
    work("The first one loads what is loaded once. Ana said so on Monday.")
    too_much = {}
    for shape, text_of in SHAPES.items():
        small, large = (calls_of(work, text_of(size)) for size in (SMALL, LARGE))
        if large > MOST_GROWTH * small + MARGIN_CALLS:
            too_much[shape] = (small, large)

    assert too_much == {}


MOST_CALLS = 10_000
"""Between two steps: some milliseconds of work."""


@pytest.mark.parametrize("shape", ["spaced dots", "newlines", "log lines", "commas"])
def test_the_embedded_observer_lets_others_run_however_long_a_text_is(shape: str) -> None:
    observe(Message.user("The first one loads what is loaded once. Ana said so on Monday."))
    call = ToolCallPart(id="c1", name="run", arguments="{}")
    text = SHAPES[shape](20_000)
    messages = [Message.user(text), Message.assistant(tool_calls=[call]), Message.tool("c1", text)]
    steps = extract(request_of(*messages))
    most = 0
    done = False

    def step() -> None:
        nonlocal done
        try:
            next(steps)
        except StopIteration:
            done = True

    while not done:
        most = max(most, calls_of(lambda _: step(), ""))

    assert most <= MOST_CALLS


def test_a_run_of_spaces_within_a_sentence_is_read_once() -> None:
    """A pattern that looks to the end of the run from each space would take hours."""
    first, *_, last = sentences(f"One{' ' * 300_000}two.")

    assert (first.start, last.end) == (0, 300_007)


def test_a_run_of_spaces_in_a_line_of_a_model_is_read_once() -> None:
    """A search for numbers at the end of the line from each space would take minutes."""
    line = f"The valve is open.{' ' * 300_000}It leaks."

    assert read_head(line, range(1, 5)).rest == line


def test_what_follows_a_command_is_read_once_however_often_it_is_repeated() -> None:
    """To look for an option behind each of them would take minutes."""
    text = "curl " * 500_000

    assert redact(text) == text


def test_tags_of_programs_are_read_once_whatever_names_are_invented_for_them() -> None:
    """A search to the end of the text for each name would take minutes."""
    text = "".join(f"<local-command-{name:0>20b}>" for name in range(400_000)).translate(
        {ord("0"): "a", ord("1"): "b"}
    )

    assert own_text(text) == text


def test_a_row_of_output_is_cut_however_long_its_line_is() -> None:
    output = Message.tool("c1", f"{'word ' * 10}error\n{'word ' * 10_000}failed")

    rows = [row.text for row in rows_of_tools(output, {}) if row is not None]

    assert rows[0] == f"{'word ' * 10}error"
    assert "failed" not in rows[1]
    assert len(rows[1]) < 200
