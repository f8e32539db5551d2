"""Corrections in notes: an outdated value does not stand alone."""

from collections.abc import Generator, Sequence

import pytest
from tests.builders import count_utf8_tokens, numbered, observe_request, reflect_request, segment_of

from remanence.notes import render_notes
from remanence.observers.extractive.observer import extract
from remanence.observers.extractive.reflector import condense
from remanence.observers.extractive.selection import Candidate, select
from remanence.pacing import at_once
from remanence.types import Message, Note

_SHARES = [number / 20 for number in range(1, 21)]
_CORRECTED = {
    "a number": (
        "There will be 12 of us at the dinner on Friday.",
        "no wait, make that 14, not 12.",
        "be 12 of us",
        "14",
    ),
    "an allergy": (
        "I'm allergic to penicillin, please keep that in mind.",
        "Sorry, it's not penicillin, I mixed that up with my brother. It's amoxicillin.",
        "allergic to penicillin",
        "amoxicillin",
    ),
    "a contact": (
        "Meine Kontaktperson im Pflegedienst ist Frau Wolters, erreichbar unter 0441 555 017.",
        "Stimmt nicht mehr, Frau Wolters ist in Rente, jetzt macht das Herr Adebayo.",
        "0441 555 017",
        "Adebayo",
    ),
    "a dose": (
        "Mon médecin m'a prescrit 20 mg de bisoprolol, le soir.",
        "Attention, je me suis trompé : c'est 10 mg et pas 20.",
        "20 mg de bisoprolol",
        "10 mg",
    ),
    "a day": (
        "我们的新办公室5月1日搬家。",
        "不对，搬家是5月8日，1日放假没人。",
        "办公室",
        "1日放假",
    ),
}
"""What a user says, how it is corrected, and key words of both."""


def _notes(said: str, corrected: str, share: float) -> str:
    messages = numbered(
        Message.user(said),
        Message.assistant("Noted. I will prepare the list and the forms."),
        Message.user("My sister Nora brings the car at 9:30, and the keys are with Mr. Ahmadi."),
        Message.assistant("Good, the car arrives at 9:30."),
        Message.user(corrected),
        Message.assistant("All right."),
    )
    size = sum(count_utf8_tokens(message.text) for message in messages)
    request = observe_request(
        *messages, target_tokens=int(share * size), count_tokens=count_utf8_tokens
    )
    return render_notes(at_once(extract(request)), "compact")


@pytest.mark.parametrize("case", _CORRECTED)
def test_what_a_user_corrected_is_noted_only_with_its_correction(case: str) -> None:
    said, corrected, outdated, current = _CORRECTED[case]
    by_share = {share: _notes(said, corrected, share) for share in _SHARES}

    assert [s for s, made in by_share.items() if outdated in made and current not in made] == []
    assert outdated in by_share[1.0]


def test_a_reflection_keeps_what_a_user_corrected_only_with_its_correction() -> None:
    said, corrected, outdated, current = _CORRECTED["a contact"]
    texts = (said, "My sister Nora brings the car at 9:30, and Mr. Ahmadi has the keys.", corrected)
    noted = [
        Note(text=text, first_seq=seq, last_seq=seq, speaker="user")
        for seq, text in enumerate(texts, start=1)
    ]
    for target in range(10, 90, 5):
        request = reflect_request(
            segment_of(*noted), target_tokens=target, count_tokens=count_utf8_tokens
        )
        made = " ".join(note.text for note in at_once(condense(request)))
        assert outdated not in made or current in made, target


@pytest.mark.parametrize("target", range(40))
def test_a_candidate_is_kept_only_with_its_corrections_and_theirs(target: int) -> None:
    texts = ("the first is good", "the second one is in its place", "and the third ends it", "else")
    corrections = ((1,), (2,), (), ())
    candidates = [
        Candidate(text=text, terms=((text, 9.0 - n),), factor=1, stretch=0, corrections=later)
        for n, (text, later) in enumerate(zip(texts, corrections, strict=True))
    ]

    def build(indices: Sequence[int]) -> Generator[None, None, tuple[Note, ...]]:
        yield
        return tuple(Note(text=texts[i], first_seq=i, last_seq=i) for i in indices)

    request = observe_request(
        *numbered(Message.user("x")), target_tokens=target, count_tokens=count_utf8_tokens
    )
    kept = set(at_once(select(candidates, request, build)).kept)

    assert all(kept.issuperset(corrections[index]) for index in kept)
