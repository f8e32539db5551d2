"""The search for the end of a tape in a history finds what comparing all of both finds."""

import json
from collections.abc import Sequence

from hypothesis import given, settings, strategies as st

from remanence import Message
from remanence.server.proxy.identity import chain, is_equal, is_same, key_of
from remanence.server.proxy.overlap import Overlap, find_overlap

IS_LONG = settings.get_current_profile_name() == "long"
TEXTS = (
    "ok",
    "No",
    "No. And **never** at night.",
    "No. And never at night.",
    "Which gate is it? It is late, and the boat leaves from the pier beside the tower at nine.",
    "The boat leaves from the pier",
)


def call(id_: str, text: str, arguments: str = "{}") -> Message:
    function = {"name": "find", "arguments": arguments}
    calls = [{"id": id_, "type": "function", "function": function}]
    return Message.from_openai({"role": "assistant", "content": text, "tool_calls": calls})


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(), values), st.booleans(), st.booleans(), st.none() | st.integers(0, 3)
)
def test_a_call_whose_arguments_are_reserialised_is_the_same(
    arguments: dict[str, object], sorts: bool, escapes: bool, indent: int | None
) -> None:
    resent = json.dumps(arguments, sort_keys=sorts, ensure_ascii=escapes, indent=indent)

    assert is_equal(call("c1", "", json.dumps(arguments)), call("c1", "", resent))


def result(id_: str, text: str) -> Message:
    return Message.from_openai({"role": "tool", "tool_call_id": id_, "content": text})


def picture(text: str) -> Message:
    image = {"type": "image_url", "image_url": {"url": "https://example.org/pier.png"}}
    return Message.from_openai({"role": "user", "content": [{"type": "text", "text": text}, image]})


texts = st.sampled_from(TEXTS)
ids = st.sampled_from(["find:0", "call_of_the_pier"])
messages = st.one_of(
    st.builds(Message.user, texts),
    st.builds(Message.assistant, texts),
    st.builds(picture, texts),
    st.builds(call, ids, texts),
    st.builds(result, ids, texts),
    st.builds(lambda message: message.replace(kind="forgotten"), st.builds(Message.user, texts)),
)
histories = st.lists(messages, min_size=3, max_size=14)


def end_of_tape(
    history: list[Message], first: int, length: int, change: tuple[int, Message] | None
) -> tuple[list[Message], list[Message]]:
    """Return a history, and a part of it as the end of a tape, one message of which may be another."""
    first = min(first, len(history) - 1)
    end = history[first : first + length]
    if change:
        at, message = change
        end[at % len(end)] = message
    return history, [message.replace(id=id_) for message, id_ in zip(end, chain(end), strict=True)]


ends = st.builds(
    end_of_tape,
    histories,
    st.integers(0, 4),
    st.integers(1, 9),
    st.none() | st.tuples(st.integers(0, 9), messages),
)


def is_evident(pairs: Sequence[tuple[Message, Message]], *, slides: bool) -> bool:
    known = [(old, new) for old, new in pairs if old.kind != "forgotten"]
    unchanged = {new.text for old, new in known if is_equal(old, new)}
    texts = unchanged | {new.text for _, new in known if new.role == "user"}
    ids = [call.id for _, new in known for call in new.tool_calls]
    ids += [result.call_id for _, new in known for result in new.tool_results]
    is_long = len(known) >= 6 or len("".join(texts)) >= 80 or any(len(id_) >= 8 for id_ in ids)
    return len(known) > 1 and (is_long or (slides and len("".join(unchanged)) >= 24))


def stays(end: Sequence[Message], resent: Message, *, is_older: bool) -> bool:
    """Return whether the last message is the resent one, or a change of it that is no edit."""
    previous = [message.id or "" for message in end[-2:-1]]
    is_answer = end[-1].role == "assistant" and not is_older
    may_be_edit = is_answer or end[-1].role == "user" or end[-1].kind == "forgotten"
    is_unchanged = is_equal(end[-1], resent) or end[-1].id == next(chain([resent], *previous))
    return is_unchanged or not may_be_edit


def compare_all(
    end: Sequence[Message], history: Sequence[Message], *, slides: bool, head: int
) -> Overlap | None:
    for length in range(len(history), max(head, 1), -1):
        first = max(head, length - len(end))
        numbers = range(first + 1, length + 1)
        pairs = list(zip(end[first - length :], history[first:length], strict=True)) if end else []
        if (
            all(is_same(*pair) for pair in pairs)
            and is_evident(pairs, slides=slides)
            and stays(end, history[length - 1], is_older=length == len(history) - 1)
        ):
            changed = [n for n, pair in zip(numbers, pairs, strict=True) if not is_equal(*pair)]
            return Overlap(first, length, max(changed, default=0))
    return None


@settings(max_examples=5_000 if IS_LONG else 200)
@given(ends, st.booleans(), st.integers(0, 4), st.integers(0, 14))
def test_an_overlap_is_the_one_that_comparing_all_messages_finds(
    case: tuple[list[Message], list[Message]], slides: bool, head: int, shortest: int
) -> None:
    history, end = case
    keys = list(map(key_of, history))

    found = find_overlap(end, history, keys, slides=slides, head=head, shortest=shortest)

    whole = compare_all(end, history, slides=slides, head=head)
    assert found == (whole if whole and whole.length >= shortest else None)
