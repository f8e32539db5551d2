"""Missing values: which are asked for, when, and what becomes of the lines of an answer."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.builders import count_tokens, numbered, observe_request

from remanence.errors import ModelError
from remanence.observers.llm import ModelObserver
from remanence.protocols import ModelRequest
from remanence.testing.models import ModelScript, ScriptedModel
from remanence.types import Draft, DroppedLine, Message, Note, ToolCallPart

_AT = datetime(2026, 5, 8, 13, 56, tzinfo=UTC)


def _said(*texts: str | Message) -> tuple[Message, ...]:
    messages = (
        text if isinstance(text, Message) else Message.user(text, name="Ana") for text in texts
    )
    return numbered(*messages, at=_AT)


async def _observe(
    messages: tuple[Message, ...], *script: ModelScript, **changes: object
) -> tuple[Draft, list[ModelRequest]]:
    model = ScriptedModel(script)
    request = observe_request(*messages, now=_AT + timedelta(days=1), **changes)
    return await ModelObserver(model).observe(request), model.requests


@pytest.mark.parametrize(
    "text",
    [
        "Hello Sam, I'm glad, I've waited and I'd like that. Thanks!",
        "Let's meet on 2026-05-15 at 10am, or next Friday at 18:30, in 2027 or the 1990s.",
        "My two cats are 3 and 12, a 3-year-old and a kitten, on day 14.",
        "Call `getUserName` with `user_id` and set display: none in Node.js.",
        "Run this:\n```\ncurl https://example.com/a/b -H 'X-Id: AB-12345'\n```",
        "Here is the log:\n" + "2026-05-08 error 40012 in /srv/app/x.py\n" * 60,
    ],
    ids=["greetings", "dates", "small numbers", "code names", "code block", "pasted log"],
)
async def test_no_repair_is_asked_for_what_does_not_matter(text: str) -> None:
    _, requests = await _observe(_said(text), "#1 Ana said something")

    assert len(requests) == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("The ticket is QF-7781.", "QF-7781"),
        ("Mail me at ana@example.com please.", "ana@example.com"),
        ("It costs €231.50 a night.", "€231.50"),
        ("Flight LH 454 it is.", "454"),
        ("Look at https://stay.example/rooms/77 please.", "https://stay.example/rooms/77"),
        ("The plan is in /etc/trip/plan.toml now.", "/etc/trip/plan.toml"),
    ],
)
async def test_ids_amounts_urls_and_paths_that_a_person_wrote_are_asked_for(
    text: str, value: str
) -> None:
    _, requests = await _observe(_said(text), "#1 Ana said something", "SKIP")

    assert [request.purpose for request in requests] == ["observe", "repair"]
    assert f"<data-1 missing values>\n{value}\n</data-1>" in requests[1].prompt


async def test_a_repair_without_notes_speaks_of_none_above() -> None:
    _, requests = await _observe(_said("The ticket is QF-7781."), "NOTHING", "SKIP")

    assert "notes>" not in requests[1].prompt
    assert "notes above" not in requests[1].prompt


async def test_a_value_with_letters_around_it_is_not_missing() -> None:
    _, requests = await _observe(_said("It fails since v2.14.0."), "#1 it fails since v2.14.0")

    assert len(requests) == 1


async def test_values_of_tools_and_of_the_assistant_are_left_to_the_models_judgement() -> None:
    call = ToolCallPart(id="c1", name="book", arguments='{"address1": "AB-12345"}')
    messages = _said(
        "Book it.",
        Message.assistant("Booking AB-12345 for 450 EUR.", tool_calls=[call]),
        Message.tool("c1", "AB-12345 booked, 450 EUR, AB-12345"),
        Message.assistant("AB-12345 is booked."),
    )
    _, requests = await _observe(messages, "#1-4 [Outcome] it is booked")

    assert len(requests) == 1


async def test_a_value_that_trimming_would_remove_keeps_its_line_without_another_call() -> None:
    lines = [f"#1 [Decision] Ana goes on with part {n} of the plan" for n in range(40)]
    lines.insert(20, "#1 Ana has ticket QF-7781")
    draft, requests = await _observe(
        _said("My ticket is QF-7781. " + "and so on " * 200), "\n".join(lines), target_tokens=60
    )

    assert len(requests) == 1
    assert "Ana has ticket QF-7781" in [note.text for note in draft.notes]


async def test_values_are_looked_for_after_trimming() -> None:
    """What no line of the answer has is asked for, and its line outlives the others."""
    lines = "\n".join(f"#1 [Decision] Ana goes on with part {n} of the plan" for n in range(40))
    draft, requests = await _observe(
        _said("My ticket is QF-7781. " + "and so on " * 200),
        lines,
        "#1 [IMPORTANT Fact] Ana has ticket QF-7781",
        target_tokens=60,
    )

    assert len(requests) == 2
    assert "Ana has ticket QF-7781" in [note.text for note in draft.notes]
    assert count_tokens("\n".join(note.text for note in draft.notes)) <= 60 * 1.5 + 16


@pytest.mark.parametrize("answer", ["#1 Ana: lives in Bern", "NOTHING"])
@pytest.mark.parametrize("repaired", ["#1 something else", ModelError("overloaded", "busy")])
async def test_values_are_noted_if_repair_fails_even_where_nothing_else_is(
    answer: str, repaired: ModelScript
) -> None:
    known = Note(text="lives in Bern", first_seq=1, last_seq=1, observed_at=_AT, speaker="Ana")
    messages = _said("And so on.", "My booking is BK-2277.")
    draft, _ = await _observe(messages, answer, repaired, known=(known,))

    (note,) = draft.notes
    assert note.text == "Exact values: BK-2277"
    assert (note.first_seq, note.last_seq) == (2, 2)
    assert note.observed_at == messages[1].created_at
    assert not draft.nothing


@pytest.mark.parametrize("answer", ["SKIP", "NOTHING"])
async def test_values_of_which_a_model_says_that_none_matters_are_not_noted(answer: str) -> None:
    draft, requests = await _observe(_said("My booking is BK-2277."), "NOTHING", answer)

    assert len(requests) == 2
    assert draft.nothing


async def test_the_repair_shows_the_notes_of_its_passages_and_no_others() -> None:
    texts = ["The ticket is QF-7781.", "I like tea.", "and so on"]
    _, requests = await _observe(
        _said(*texts), "#1 Ana has a ticket\n#2 [Preference] Ana likes tea", "SKIP"
    )

    assert "<data-1 notes>\n#1 Ana has a ticket\n</data-1>" in requests[1].prompt


async def test_each_line_that_became_no_note_is_listed_with_its_reason() -> None:
    known = Note(text="lives in Bern", first_seq=1, last_seq=1, observed_at=_AT, speaker="Ana")
    long = [f"#1 Ana rambled on about this and that and more, part {n}" for n in range(30)]
    answer = "\n".join(
        [
            "These are the notes:",
            "#1 [Preference] Ana: window seat",
            "#1 [Preference] Ana: window seat",
            "#1 Ana: lives in Bern",
            "#1 Ana: pays 9,731 euros",
            *long,
        ]
    )
    messages = _said("The ticket is QF-7781, and I like a window seat. " + "words " * 200)
    draft, _ = await _observe(
        messages, answer, "#1 something else\n#1 ticket QF-7781", known=(known,), target_tokens=40
    )

    reasons = {line.reason: line for line in draft.dropped}
    assert reasons["introduction"].text == "These are the notes:"
    assert reasons["repeated"].text == "Ana: window seat"
    assert reasons["known"].text == "Ana: lives in Bern"
    assert reasons["invented"] == DroppedLine(
        text="Ana: pays 9,731 euros", reason="invented", detail="9,731"
    )
    assert reasons["unasked"].text == "something else"
    assert reasons["over_budget"].detail == "NOTE Fact"
    kept = [f"{note.speaker}: {note.text}" if note.speaker else note.text for note in draft.notes]
    dropped = [line.text for line in draft.dropped]
    assert len(kept) + len(dropped) == len(answer.splitlines()) + 2


async def test_an_earlier_value_that_nobody_said_is_dropped_without_its_note() -> None:
    answer = "#1 [Decision] kitchen 205 000 euros (was: 185 000 and 160 000)"

    draft, _ = await _observe(_said("Kitchen 205 000 euros, not 185 000."), answer, "SKIP")

    assert [(note.text, note.supersedes) for note in draft.notes] == [
        ("kitchen 205 000 euros", None)
    ]
    assert draft.dropped == (
        DroppedLine(text="(was: 185 000 and 160 000)", reason="invented", detail="160 000"),
    )


class _Prompt:
    """A live prompt whose older part says more than the messages that are observed."""

    def __init__(self, messages: tuple[Message, ...]) -> None:
        self.messages = messages

    def to_anthropic(self) -> dict[str, Any]:
        return {"system": "Order QF-7781 is hers.", "messages": []}

    def to_openai(self, *, cache_breakpoints: bool = False) -> dict[str, Any]:
        return {"messages": []}


async def test_values_of_a_live_prompt_are_not_taken_for_invented() -> None:
    messages = _said("It has not arrived.")
    draft, requests = await _observe(
        messages, "#1 [Issue] order QF-7781 has not arrived", live=_Prompt(messages)
    )

    assert requests[0].live is not None
    assert [note.text for note in draft.notes] == ["order QF-7781 has not arrived"]


@pytest.mark.parametrize(
    "line",
    [
        "Ana travels on Friday 2026-05-15, week of 2026-05-11, in 2026-W20 and Q3-2026",
        "Ana moved in mid-2025, as in the 1990s, 2024/25 or 2025-2026",
        "Ana pays 1250.00 or €1,250 on 15.05.2026 at 14:30",
        "Ana writes it in Node.js",
    ],
)
async def test_reckoned_dates_and_other_spellings_are_not_taken_for_invented(line: str) -> None:
    draft, _ = await _observe(_said("I pay 1,250 euros next Friday."), f"#1 {line}", "SKIP")

    assert [note.text for note in draft.notes] == [line]
