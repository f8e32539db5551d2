"""A raw tail that exceeds the window is cut at its old end, in steps, and says so."""

import json
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, strategies as st

from remanence import Message
from remanence.context.context import Omitted
from remanence.context.tail import STAND_IN_TOKENS, FittedTail, fit_tail
from remanence.types import (
    FilePart,
    ImagePart,
    OtherPart,
    Part,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)


def tape(sizes: list[int]) -> list[Message]:
    return [
        Message.user(f"message {seq} " + "x" * size * 4).replace(seq=seq, tokens=size)
        for seq, size in enumerate(sizes, start=1)
    ]


def count(message: Message) -> int:
    return sum(len(part.text) for part in message.content if hasattr(part, "text")) // 4 + 1


def fitted_tape(
    sizes: list[int], budget: int, keep_last: int
) -> tuple[FittedTail, set[int], set[int]]:
    """Fit a tape of these sizes; return the tail with the seqs that it shows and those it names."""
    fitted = fit_tail(
        tape(sizes),
        first_seq=1,
        last_sum_tokens=sum(sizes),
        budget=budget,
        keep_last=keep_last,
        count=count,
    )
    raw = {message.seq for message in fitted.messages}
    named = {seq for gap in fitted.omitted for seq in range(gap.first_seq, gap.last_seq + 1)}
    return fitted, raw, named


def test_a_tail_that_fits_is_not_touched() -> None:
    messages = tape([10] * 5)
    fitted = fit_tail(
        messages, first_seq=1, last_sum_tokens=50, budget=50, keep_last=2, count=count
    )
    assert fitted == ("", tuple(messages), ())


def test_the_cut_rests_while_the_tail_grows() -> None:
    budget = STAND_IN_TOKENS + 1_000
    starts = []
    for length in range(200, 260):
        messages = tape([20] * length)
        fitted = fit_tail(
            messages,
            first_seq=1,
            last_sum_tokens=20 * length,
            budget=budget,
            keep_last=2,
            count=count,
        )
        starts.append(fitted.messages[0].seq)
    assert len(set(starts)) < 10
    assert starts == sorted(starts)


def test_old_messages_are_shown_by_their_beginnings_and_older_ones_are_named() -> None:
    messages = tape([50] * 400)
    fitted = fit_tail(
        messages, first_seq=1, last_sum_tokens=20_000, budget=5_000, keep_last=2, count=count
    )
    assert [gap.reason for gap in fitted.omitted] == ["over_budget", "stand_in"]
    assert fitted.omitted[0].first_seq == 1
    assert fitted.omitted[1].last_seq == fitted.messages[0].seq - 1
    assert f"#{fitted.omitted[1].first_seq} user: message" in fitted.stand_in


@given(budget=st.integers(100, 9_000))
def test_a_stand_in_keeps_to_its_share_whatever_the_script(budget: int) -> None:
    def one_a_character(message: Message) -> int:
        return len(message.text)

    messages = [Message.user("旅" * 100).replace(seq=n, tokens=100) for n in range(1, 101)]
    fitted = fit_tail(
        messages,
        first_seq=1,
        last_sum_tokens=10_000,
        budget=budget,
        keep_last=1,
        count=one_a_character,
    )

    lines = fitted.stand_in.splitlines()
    assert sum(map(len, lines)) <= min(STAND_IN_TOKENS, budget // 2)


def test_a_large_tool_call_stays_valid_json_when_it_is_shortened() -> None:
    part = ToolCallPart(id="a", name="write", arguments='{"text": "' + "x" * 90_000 + '"}')
    message = Message.assistant("", tool_calls=[part]).replace(seq=1, tokens=22_000)
    fitted = fit_tail(
        [message],
        first_seq=1,
        last_sum_tokens=22_000,
        budget=4_000,
        keep_last=1,
        count=lambda shown: len(shown.tool_calls[0].arguments) // 4,
    )
    assert fitted.messages[0].tool_calls[0].arguments.startswith('{"excerpt":')
    assert [gap.reason for gap in fitted.omitted] == ["excerpt"]


@given(
    sizes=st.lists(st.integers(1, 3_000), min_size=1, max_size=40),
    budget=st.integers(3_000, 20_000),
    keep_last=st.integers(0, 6),
)
def test_every_message_is_raw_or_named_and_the_newest_are_there(
    sizes: list[int], budget: int, keep_last: int
) -> None:
    fitted, raw, named = fitted_tape(sizes, budget, keep_last)

    assert raw | named == set(range(1, len(sizes) + 1))
    assert set(range(max(1, len(sizes) - keep_last + 1), len(sizes) + 1)) <= raw
    assert len(sizes) in raw
    assert sum(message.tokens for message in fitted.messages) <= budget


@given(
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=60),
    budget=st.integers(60, 400),
    keep_last=st.integers(0, 60),
)
def test_the_newest_messages_fit_however_many_are_to_be_kept(
    sizes: list[int], budget: int, keep_last: int
) -> None:
    fitted, raw, named = fitted_tape(sizes, budget, keep_last)

    assert raw | named == set(range(1, len(sizes) + 1))
    assert max(raw) == len(sizes)
    assert sum(message.tokens for message in fitted.messages) <= budget


# Where a tail is cut


def fit(
    messages: Sequence[Message],
    *,
    budget: int,
    keep_last: int = 0,
    count: Callable[[Message], int] = count,
) -> FittedTail:
    total = sum(message.tokens for message in messages)
    return fit_tail(
        messages,
        first_seq=1,
        last_sum_tokens=total,
        budget=budget,
        keep_last=keep_last,
        count=count,
    )


@pytest.mark.parametrize(
    ("tokens", "number", "budget", "first_kept"),
    [
        (10, 100, 600, 76),
        (75, 12, 600, 9),
        (1, 10, 5, 8),
        (100, 200, 10_000, 121),
    ],
    ids=["a step over", "to the token", "steps of one token", "a stand-in of 2,000 tokens"],
)
def test_the_tail_is_cut_at_the_first_quarter_of_its_room_that_makes_it_fit(
    tokens: int, number: int, budget: int, first_kept: int
) -> None:
    fitted = fit(tape([tokens] * number), budget=budget)

    assert fitted.messages[0].seq == first_kept
    assert fitted.messages[-1].seq == number


@pytest.mark.parametrize(
    ("keep_last", "kept"),
    [(0, [*range(6, 10)]), (4, [*range(6, 10)]), (6, [*range(4, 10)]), (10, [*range(1, 10)])],
)
def test_as_many_of_the_newest_as_were_asked_for_stay_and_always_those_with_a_quarter_each(
    keep_last: int, kept: list[int]
) -> None:
    fitted = fit(tape([1_000] * 9), budget=600, keep_last=keep_last)

    assert [message.seq for message in fitted.messages] == kept


def test_a_part_of_the_tail_that_fits_is_raw_and_what_is_before_it_is_named() -> None:
    newest = tape([10] * 8)[4:]

    fitted = fit_tail(newest, first_seq=1, last_sum_tokens=80, budget=600, keep_last=0, count=count)

    gap = Omitted(first_seq=1, last_seq=4, reason="over_budget")
    assert fitted == FittedTail("", tuple(newest), (gap,))


def test_no_messages_fit_any_room() -> None:
    assert fit([], budget=0) == ("", (), ())


@pytest.mark.parametrize("budget", [-5, 0, 1])
def test_without_any_room_the_newest_message_is_there_by_its_ends(budget: int) -> None:
    fitted = fit(tape([1_000] * 9), budget=budget)

    (newest,) = fitted.messages
    assert newest.seq == 9
    assert len(newest.text) < 120
    assert fitted.omitted == (
        Omitted(first_seq=1, last_seq=8, reason="over_budget"),
        Omitted(first_seq=9, last_seq=9, reason="excerpt"),
    )


@pytest.mark.parametrize(
    ("others", "cap"), [(0, 450), (150, 450), (151, 300), (300, 300), (301, 150), (450, 150)]
)
def test_a_huge_message_has_three_two_or_one_quarter_of_the_room_that_small_ones_leave(
    others: int, cap: int
) -> None:
    small = [1] * others
    fitted = fit(tape([*small, 900_000]), budget=1_200)

    assert [message.tokens for message in fitted.messages[:-1]] == small
    assert cap * 3 // 4 <= fitted.messages[-1].tokens <= cap
    assert fitted.omitted == (Omitted(first_seq=others + 1, last_seq=others + 1, reason="excerpt"),)


def test_an_excerpt_rests_while_the_tail_grows() -> None:
    sizes = [10, 10, 900_000, *[10] * 90]
    shown = [fit(tape(sizes[:length]), budget=1_200) for length in range(3, len(sizes))]

    texts = [message.text for tail in shown for message in tail.messages if message.seq == 3]
    assert 1 < len(set(texts)) <= 3
    assert len({tail.messages[0].seq for tail in shown}) < 6


def test_the_results_of_one_turn_have_half_of_the_room_beside_older_messages() -> None:
    calls = [ToolCallPart(id=f"c{n}", name="look", arguments="{}") for n in range(6)]
    results = [Message.tool(call.id, "row " * 9_000) for call in calls]
    old = [Message.user("x" * 40)] * 29
    messages = [*old, Message.assistant("", tool_calls=calls), *results]
    messages = [m.replace(seq=n, tokens=count_text(m)) for n, m in enumerate(messages, start=1)]

    fitted = fit(messages, budget=2_400, count=count_text)

    assert [message.seq for message in fitted.messages] == [m.seq for m in messages]
    assert sum(message.tokens for message in fitted.messages[-7:]) <= 600
    assert [gap.first_seq for gap in fitted.omitted] == [*range(31, 37)]


def count_text(message: Message) -> int:
    return len(message.full_text) // 4 + 1


# Old messages by their beginnings


def characters(message: Message) -> int:
    return len(message.text)


def before_huge(*old: Message, budget: int) -> FittedTail:
    """A tail with old messages before four that take all room as excerpts."""
    messages = [m.replace(seq=n, tokens=10_000) for n, m in enumerate([*old, *NEWEST], start=1)]
    return fit(messages, budget=budget, count=characters)


def stand_in(*old: Message, budget: int = 4_000) -> list[str]:
    """The lines for those old messages."""
    return before_huge(*old, budget=budget).stand_in.splitlines()


NEWEST = [Message.user("n")] * 4
HEAD = stand_in(Message.user("old"))[0]


def test_a_stand_in_says_that_it_is_not_the_whole() -> None:
    assert HEAD == (
        "[The messages below are not summarised yet and exceed the window. Each is shown by its "
        "beginning only; do not take it for the whole.]"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one\n  two", "one two"),
        ("x" * 160, "x" * 160),
        ("x" * 161, "x" * 160 + "…"),
        ("word " * 32 + "more", "word " * 31 + "word…"),
    ],
    ids=["one line", "as long as a line", "one value", "between words"],
)
def test_a_stand_in_shows_160_characters_of_a_message_and_marks_a_cut(
    text: str, shown: str
) -> None:
    assert stand_in(Message.user(text, name="Ana")) == [HEAD, f"#1 Ana: {shown}"]


def test_a_stand_in_names_the_tools_that_were_called_and_shows_their_results() -> None:
    calls = [ToolCallPart(id=name, name=name, arguments="{}") for name in ("look", "listen")]
    results = tuple(
        ToolResultPart(call_id=name, content=(TextPart(text=text),))
        for name, text in (("look", "blue"), ("listen", "quiet"))
    )

    lines = stand_in(
        Message.assistant("Let me see.", tool_calls=calls), Message(role="tool", content=results)
    )

    assert lines == [
        HEAD,
        "#1 assistant: Let me see. [calls look, listen]",
        "#2 tool: blue quiet",
    ]


def test_the_newest_of_the_old_messages_fill_a_stand_in_to_the_last_token() -> None:
    old = [Message.user("x" * 50) for _ in range(4)]
    line = f"#4 user: {'x' * 50}"
    room = len(HEAD) + 2 * len(line)

    assert len(stand_in(*old, budget=2 * room)) == 3
    assert len(stand_in(*old, budget=2 * room - 2)) == 2
    assert stand_in(*old, budget=2 * room)[-1] == line


def test_what_a_stand_in_has_no_room_for_is_named_apart() -> None:
    line = f"#3 user: {'x' * 160}…"
    budget = 2 * (len(HEAD) + 2 * len(line))

    fitted = before_huge(*[Message.user("x" * 200)] * 3, budget=budget)

    assert fitted.omitted == (
        Omitted(first_seq=1, last_seq=1, reason="over_budget"),
        Omitted(first_seq=2, last_seq=3, reason="stand_in"),
        *(Omitted(first_seq=n, last_seq=n, reason="excerpt") for n in (4, 5, 6, 7)),
    )


@pytest.mark.parametrize("budget", [2, 2 * len(HEAD), 2 * len(HEAD) + 2])
def test_a_stand_in_without_room_for_a_line_is_left_out(budget: int) -> None:
    assert stand_in(Message.user("old"), budget=budget) == []


# Messages that are too large by themselves

LARGE = 420
"""Characters for each of two large messages, which get a half of a room for 280."""


def shortened(part: Part) -> Part:
    """The part as an excerpt of its message shows it, if every excerpt fits to the token."""
    messages = [Message(role="assistant", content=(part,), seq=seq, tokens=1_000) for seq in (2, 3)]
    fitted = fit_tail(
        messages,
        first_seq=2,
        last_sum_tokens=2_020,
        budget=560,
        keep_last=0,
        count=lambda _: LARGE // 3,
    )
    assert [gap.first_seq for gap in fitted.omitted] == [2, 3]
    (short,) = fitted.messages[0].content
    return short


def test_an_excerpt_says_how_much_of_its_middle_is_left_out() -> None:
    half = "旅" * (LARGE // 2)
    text = f"{half}{'中' * 99}{half}"

    assert shortened(TextPart(text=half + half)) == TextPart(text=half + half)
    assert shortened(TextPart(text=text)) == TextPart(
        text=f"{half}\n[… 99 characters of message 2 left out …]\n{half}"
    )


def test_an_excerpt_is_never_longer_than_its_text() -> None:
    for text in ("旅" * (LARGE + 1), "x" * (LARGE + 1), "旅" * (LARGE + 43)):
        assert shortened(TextPart(text=text)) == TextPart(text=text)
    part = ToolCallPart(id="a", name="write", arguments=f'"{"旅" * LARGE}"')
    assert shortened(part) == part
    assert shortened(TextPart(text="旅" * (LARGE + 44))) != TextPart(text="旅" * (LARGE + 44))


def test_a_message_that_would_have_as_many_tokens_as_an_excerpt_is_shown_whole() -> None:
    message = Message.user("旅" * 900).replace(seq=1, tokens=30)

    fitted = fit([message], budget=12, count=lambda _: 30)

    assert fitted == FittedTail("", (message,), ())


def test_a_count_of_characters_left_out_is_easy_to_read() -> None:
    short = shortened(TextPart(text="旅" * (LARGE + 1_234)))

    assert isinstance(short, TextPart)
    assert "[… 1,234 characters of message 2 left out …]" in short.text


def test_the_arguments_of_a_call_are_shortened_once_they_are_too_long() -> None:
    fits = ToolCallPart(id="a", name="write", arguments="旅" * LARGE)
    long = ToolCallPart(id="a", name="write", arguments="旅" * (LARGE + 99))

    short = shortened(long)

    assert shortened(fits) == fits
    assert isinstance(short, ToolCallPart)
    assert (short.id, short.name) == ("a", "write")
    assert "旅\n[… 99 characters of message 2 left out …]" in json.loads(short.arguments)["excerpt"]


def test_a_result_keeps_its_call_and_its_short_texts() -> None:
    image = ImagePart(url="https://example.org/large.png")
    parts = (TextPart(text="旅" * (LARGE + 99)), TextPart(text="short"), image)

    short = shortened(ToolResultPart(call_id="a", content=parts, is_error=True))

    assert isinstance(short, ToolResultPart)
    assert (short.call_id, short.is_error) == ("a", True)
    assert [part.text for part in short.content if isinstance(part, TextPart)][1:] == [
        "short",
        "[image of message 2 left out: too large]",
    ]
    assert "105 characters of message 2 left out" in short.text  # as "short" takes five


@pytest.mark.parametrize(
    ("part", "name"),
    [
        (ImagePart(data="aGVsbG8="), "image"),
        (OtherPart(dialect="openai", raw='{"type": "new"}'), "new"),
        (FilePart(file_id="file-1"), "file"),
    ],
)
def test_a_part_that_has_no_text_is_named_in_its_place(part: Part, name: str) -> None:
    assert shortened(part) == TextPart(text=f"[{name} of message 2 left out: too large]")


def test_parts_that_are_alike_have_one_name_in_their_place_and_reasoning_has_none() -> None:
    image = ImagePart(data="aGVsbG8=")
    thinking = OtherPart(dialect="anthropic", raw='{"type": "thinking", "thinking": "Hm."}')
    fields = OtherPart(dialect="openai", raw='{"reasoning_content": "Hm."}', scope="message")
    name = TextPart(text="[image of message 2 left out: too large]")

    shown = shortened(ToolResultPart(call_id="a", content=(image, image)))
    long = Message(role="assistant", content=(fields, thinking, TextPart(text="word " * 4_000)))
    fitted = fit_tail(
        [Message.user("Hi.").replace(seq=1, tokens=5), long.replace(seq=2, tokens=9_000)],
        first_seq=1,
        last_sum_tokens=9_005,
        budget=2_000,
        keep_last=1,
        count=count,
    )

    assert shown == ToolResultPart(call_id="a", content=(name,))
    assert [type(part) for part in fitted.messages[-1].content] == [TextPart]


@given(budget=st.integers(240, 4_000), size=st.integers(4_001, 30_000))
def test_an_excerpt_fills_at_least_half_of_its_room_and_is_found_in_a_few_steps(
    budget: int, size: int
) -> None:
    counted: list[Message] = []

    def count_characters(message: Message) -> int:
        counted.append(message)
        return len(message.text)

    message = Message.user("旅" * size).replace(seq=1, tokens=size)
    fitted = fit([message], budget=budget, count=count_characters)

    most = max(1, (budget - budget // 2) // 4) * 3
    assert most // 2 <= fitted.messages[0].tokens == len(fitted.messages[0].text) <= most
    assert len(counted) <= 6


def test_an_excerpt_that_cannot_be_made_small_enough_is_not_tried_again_and_again() -> None:
    counted: list[Message] = []

    def count_much(message: Message) -> int:
        counted.append(message)
        return 9_999

    fitted = fit(
        [Message.user("旅" * 500).replace(seq=1, tokens=9_999)], budget=2, count=count_much
    )

    assert len(counted) == 2
    assert fitted.messages[0].tokens == 9_999


def test_of_too_many_results_the_last_ones_keep_their_beginnings() -> None:
    results = tuple(
        ToolResultPart(call_id=f"c{n}", content=(TextPart(text=f"result {n} " * 90),))
        for n in range(300)
    )
    message = Message(role="tool", content=results).replace(seq=1, tokens=60_000)

    fitted = fit([message], budget=12_000, count=lambda message: len(message.full_text))

    (short,) = fitted.messages
    texts = [result.text for result in short.tool_results]
    shown = texts.index(next(text for text in texts if text != "[…]"))
    assert [result.call_id for result in short.tool_results] == [f"c{n}" for n in range(300)]
    assert 0 < shown < 300
    assert all("left out …]" in text for text in texts[shown:])
    assert 7_400 < short.tokens <= 7_500


def test_a_result_of_thousands_of_parts_fits_as_well() -> None:
    parts = tuple(TextPart(text=f"row {n} of the table") for n in range(2_000))
    result = ToolResultPart(call_id="a", content=parts)
    message = Message(role="tool", content=(result,)).replace(seq=1, tokens=40_000)

    fitted = fit([message], budget=1_000, count=lambda message: len(message.full_text))

    (shown,) = fitted.messages
    assert len(shown.full_text) <= 1_000
    assert "row 0 of" in shown.full_text
    assert [gap.reason for gap in fitted.omitted] == ["excerpt"]


def parallel_calls(number: int, *, apart: bool) -> list[Message]:
    """Return so many calls at once with their results, which are one message or a message each."""
    calls = [ToolCallPart(id=f"c{n}", name="look", arguments='{"q": 1}') for n in range(number)]
    results = [Message.tool(call.id, "row of a table " * 20) for call in calls]
    if not apart:
        results = [Message(role="tool", content=tuple(part for m in results for part in m.content))]
    run = [Message.assistant("", tool_calls=calls), *results]
    return [m.replace(seq=seq, tokens=part_tokens(m)) for seq, m in enumerate(run, start=1)]


def part_tokens(message: Message) -> int:
    """Count parts one by one, as the counters of a memory do."""
    texts = [
        part.arguments if isinstance(part, ToolCallPart) else part.text
        for part in message.content
        if isinstance(part, TextPart | ToolCallPart | ToolResultPart)
    ]
    return 4 + sum(4 + len(text) // 4 for text in texts)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("tokens_each", [4, 12, 40])
def test_ten_times_as_many_calls_take_ten_times_as_many_steps(
    apart: bool, tokens_each: int
) -> None:
    """The room grows with them, so that as large a share of them is shown, abridged or left out."""

    def steps(number: int) -> int:
        counted = 0

        def count_parts(message: Message) -> int:
            nonlocal counted
            counted += len(message.content)
            return part_tokens(message)

        fit(parallel_calls(number, apart=apart), budget=tokens_each * number, count=count_parts)
        return counted

    assert steps(200) < 200 * 30
    assert steps(2_000) < 11 * steps(200)


@pytest.mark.parametrize("apart", [False, True])
def test_of_calls_too_many_for_the_room_the_last_ones_stay_and_use_it(apart: bool) -> None:
    fitted = fit(parallel_calls(500, apart=apart), budget=4_000, count=part_tokens)

    kept = [call.id for message in fitted.messages for call in message.tool_calls]
    answered = [result.call_id for message in fitted.messages for result in message.tool_results]
    assert kept == answered == [f"c{n}" for n in range(500 - len(kept), 500)]
    assert 1_500 < sum(message.tokens for message in fitted.messages) <= 4_000


def test_short_results_stay_where_long_ones_before_them_are_left_out() -> None:
    texts = [*["row of a table " * 20] * 100, *["ok"] * 100, *["row of a table " * 20] * 100]
    parts = [part for n, t in enumerate(texts) for part in Message.tool(f"c{n}", t).content]
    message = Message(role="tool", content=tuple(parts)).replace(seq=1, tokens=30_000)

    (short,) = fit([message], budget=3_000, count=part_tokens).messages

    shown = [result.text for result in short.tool_results]
    assert shown[:100] == ["[…]"] * 100
    assert shown[100:200] == ["ok"] * 100
