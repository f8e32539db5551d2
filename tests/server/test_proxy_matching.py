"""The tape that a history continues, where several begin or end alike."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType

import pytest

from remanence import Memory, Message
from remanence.server.proxy import identity
from remanence.server.proxy.history import Histories, Stored
from remanence.server.proxy.naming import Name

NAME = Name(tenant="default", conversation="trip")
GATE = "Which gate is it? And is it open at night?"


def history(*texts: str) -> list[Message]:
    return [
        Message.assistant(text) if index % 2 else Message.user(text)
        for index, text in enumerate(texts)
    ]


async def ask(histories: Histories, *texts: str) -> Stored:
    return await histories.absorb(NAME, history(*texts))


async def talk(histories: Histories, *texts: str) -> Stored:
    """Ask with all but the last text, which is the answer."""
    question = await ask(histories, *texts[:-1])
    return await histories.absorb(NAME, history(*texts), question=question)


async def texts_of(stored: Stored) -> list[str]:
    return [message.text for message in await stored.conversation.messages()]


@pytest.mark.parametrize("answers", [("No", "Not at night."), ("Not at night.", "No")])
async def test_answers_that_begin_alike_are_on_tapes_of_their_own(
    memory: Memory, answers: Sequence[str]
) -> None:
    """Two requests with one history were answered at once."""
    histories = Histories(memory)
    questions = [await ask(histories, GATE) for _ in answers]
    stored = [
        await histories.absorb(NAME, history(GATE, answer), question=question)
        for question, answer in zip(questions, answers, strict=True)
    ]

    assert [await texts_of(one) for one in stored] == [[GATE, answer] for answer in answers]


async def test_an_answer_with_the_call_id_of_another_answer_is_stored(memory: Memory) -> None:
    """Some providers number the calls of a conversation, so another answer has the same ids."""
    histories = Histories(memory)
    for city in ("Lisbon", "Porto"):
        question = await ask(histories, GATE)
        function = {"name": "find", "arguments": f'{{"city": "{city}"}}'}
        call = {"id": "find:0", "type": "function", "function": function}
        answer = Message.from_openai({"role": "assistant", "content": None, "tool_calls": [call]})
        stored = await histories.absorb(NAME, [*history(GATE), answer], question=question)
        (*_, last) = await stored.conversation.messages()

        assert [call.arguments for call in last.tool_calls] == [f'{{"city": "{city}"}}']


async def test_a_question_that_was_edited_to_a_part_of_itself_stays_edited(memory: Memory) -> None:
    """Its request failed, in another process than those before and after."""
    histories = Histories(memory)
    await talk(histories, "Which pier?", "Pier 3. Have a good trip!")
    await talk(histories, "Which pier?", "Pier 3.", GATE, "Gate 4.")
    edited = history("Which pier?", "Pier 3.", "Which gate is it?")
    before = await Histories(memory).absorb(NAME, edited)
    stored = await histories.absorb(NAME, [*edited, Message.user("When?")])

    assert stored.conversation.id == before.conversation.id
    assert (await texts_of(stored))[2:] == ["Which gate is it?", "When?"]


async def test_a_question_that_was_edited_beside_the_memory_is_stored_as_it_is(
    memory: Memory,
) -> None:
    """Such as by a short request, which is taken for one beside the conversation."""
    histories = Histories(memory)
    await talk(histories, GATE, "Gate 4.")
    stored = await ask(histories, "Which gate is it?", "Gate 5.", "When?")

    assert await texts_of(stored) == ["Which gate is it?", "Gate 5.", "When?"]


async def test_a_word_is_not_taken_for_a_text_that_has_its_letters(memory: Memory) -> None:
    histories = Histories(memory)
    await talk(histories, "I note the gate.", "Yes.")
    stored = await ask(histories, "no", "Yes.", "When?")

    assert await texts_of(stored) == ["no", "Yes.", "When?"]


@pytest.mark.parametrize(
    ("whole", "is_part"),
    [("I note: no, not now", True), ("no", True), ("a_no no1 éno", False), ("nono-no", True)],
)
def test_a_text_is_part_of_another_one_where_no_word_goes_on_beyond_it(
    whole: str, *, is_part: bool
) -> None:
    assert identity.is_same(calling({"text": whole}), calling({"text": "no"})) is is_part


def test_a_long_text_is_found_in_another_one_in_as_few_steps_as_a_short_one() -> None:
    """An expression of the text took seconds on the event loop."""
    counts = []
    for length in (20, 2_000):
        text = "A boat leaves at nine. " * length
        whole, part = calling({"text": f"{text}zzz"}), calling({"text": f"{text}z"})
        with calls_of() as calls:
            assert not identity.is_same(whole, part)
        counts.append(len(calls))

    assert counts[0] == counts[1]


def test_calls_with_different_broken_arguments_are_not_equal() -> None:
    assert identity.is_equal(calling("[1"), calling(" [1\n"))
    assert not identity.is_equal(calling("[1"), calling('{"a":'))


def calling(arguments: object) -> Message:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": text}}
    return Message.from_openai({"role": "assistant", "content": None, "tool_calls": [call]})


async def test_an_answer_is_not_taken_for_the_beginning_of_another_one(memory: Memory) -> None:
    """Its question came with the time of day, which the next request lacks; so it is not the same."""
    answered = await talk(Histories(memory), f"It is 12:04.\n{GATE}", "No")
    await talk(Histories(memory), GATE, "Noted.")
    stored = await ask(Histories(memory), GATE, "No", "When?")

    assert stored.conversation.id == answered.conversation.id
    assert (await texts_of(stored))[1:] == ["No", "When?"]


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("answers", [("No", "Noted."), ("Noted.", "No")])
async def test_a_history_without_its_beginning_stays_with_its_own_answer(
    memory: Memory, answers: Sequence[str], *, is_new: bool
) -> None:
    """Another tape ends alike, but for an answer that its own begins like."""
    histories, other = Histories(memory), Histories(memory)
    texts = ("Which pier?", "Pier 3.", GATE, "Gate 4.", f"Sure? {GATE}")
    questions = [await ask(histories, *texts) for _ in answers]
    await ask(other, *texts[2:])
    answered = {
        answer: await histories.absorb(NAME, history(*texts, answer), question=question)
        for question, answer in zip(questions, answers, strict=True)
    }
    stored = await ask(Histories(memory) if is_new else other, *texts[2:], "No", "When?")

    assert stored.conversation.id == answered["No"].conversation.id


async def test_an_answer_that_was_continued_is_not_taken_for_the_one_before(memory: Memory) -> None:
    """Its client went back to the shorter answer, or another one has a copy of it."""
    histories = Histories(memory)
    await talk(histories, GATE, "Gate 4.")
    question = await ask(histories, GATE, "Gate 4.")
    await histories.absorb(NAME, history(GATE, "Gate 4. Until nine."), question=question)
    stored = await ask(Histories(memory), GATE, "Gate 4.", "When?")

    assert await texts_of(stored) == [GATE, "Gate 4.", "When?"]


async def test_an_end_with_a_longer_answer_is_not_that_of_a_history_that_goes_on(
    memory: Memory,
) -> None:
    """The tape of the history itself is longer by now, so its end does not show what it shares."""
    texts = ("Which pier?", "Pier 3.", GATE, "Gate 4.", f"Sure? {GATE}")
    await talk(Histories(memory), *texts, "Noted.")
    rest = (*texts[2:], "No", "When?", "At nine.", "Where?")
    stored = await ask(Histories(memory), *rest)

    assert await texts_of(stored) == [*rest]


async def comparisons(histories: Histories, name: Name, messages: list[Message]) -> int:
    """Count how many messages the event loop compares for a request."""
    with calls_of() as calls:
        await histories.absorb(name, messages)
    names = ("is_equal", "is_changed_copy", "is_same", "key_of")
    return sum(call.co_name in names and call.co_filename == identity.__file__ for call in calls)


@contextmanager
def calls_of() -> Iterator[list[CodeType]]:
    """Collect the functions that this thread calls."""
    calls: list[CodeType] = []

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            calls.append(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(before)


async def test_an_edit_of_a_long_history_with_branches_compares_no_more_messages(
    memory: Memory,
) -> None:
    counts = []
    for length in (20, 200):
        histories = Histories(memory)
        name = Name(tenant="default", conversation=f"trip of {length}")
        texts = [f"Boat {number} leaves from the pier at nine." for number in range(length)]
        for number in range(5):
            await histories.absorb(name, history(*texts, f"Which gate? {number}"))
        counts.append(await comparisons(histories, name, history(*texts, "Which gate is it?")))

    assert counts[0] == counts[1]
