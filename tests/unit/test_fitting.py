"""A raw tail that exceeds the window is cut at its old end, in steps, and says so."""

from hypothesis import given, strategies as st

from remanence import Message
from remanence.observing.fitting import STAND_IN_TOKENS, fit_tail
from remanence.types import ToolCallPart


def tape(sizes: list[int]) -> list[Message]:
    return [
        Message.user(f"message {seq} " + "x" * size * 4).replace(seq=seq, tokens=size)
        for seq, size in enumerate(sizes, start=1)
    ]


def count(message: Message) -> int:
    return sum(len(part.text) for part in message.content if hasattr(part, "text")) // 4 + 1


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
    assert fitted.messages[0].tool_calls[0].arguments.startswith('{"excerpt": ')
    assert [gap.reason for gap in fitted.omitted] == ["excerpt"]


@given(
    sizes=st.lists(st.integers(1, 3_000), min_size=1, max_size=40),
    budget=st.integers(3_000, 20_000),
    keep_last=st.integers(0, 6),
)
def test_every_message_is_raw_or_named_and_the_newest_are_there(
    sizes: list[int], budget: int, keep_last: int
) -> None:
    messages = tape(sizes)
    fitted = fit_tail(
        messages,
        first_seq=1,
        last_sum_tokens=sum(sizes),
        budget=budget,
        keep_last=keep_last,
        count=count,
    )
    raw = {message.seq for message in fitted.messages}
    named = {seq for gap in fitted.omitted for seq in range(gap.first_seq, gap.last_seq + 1)}
    assert raw | named == set(range(1, len(sizes) + 1))
    assert set(range(max(1, len(sizes) - keep_last + 1), len(sizes) + 1)) <= raw
    assert len(sizes) in raw
    assert sum(message.tokens for message in fitted.messages) <= budget
