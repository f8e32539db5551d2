"""The facts that the prompt-cost benchmark plants, and the texts in which it plants them."""

import json
from collections import Counter
from pathlib import Path

from benchmarks.planted import planted
from benchmarks.texts import turns as made_up_turns
from benchmarks.written import has_texts, turns

FACTS = planted(600)


def test_a_fact_says_what_its_question_asks_for_and_the_question_does_not() -> None:
    assert [fact for fact in FACTS if not fact.is_in(fact.said)] == []
    assert [fact for fact in FACTS if fact.needed[-1] in fact.asked] == []


def test_half_of_the_facts_have_shapes_that_no_rule_was_fitted_to() -> None:
    parts = Counter(fact.part for fact in FACTS)
    shapes = {part: {f.shape for f in FACTS if f.part == part} - {"single"} for part in parts}

    assert abs(parts["tuning"] - parts["unseen"]) < 10
    assert not shapes["tuning"] & shapes["unseen"]


def test_no_two_facts_are_asked_for_by_the_same_question() -> None:
    assert max(Counter(fact.asked for fact in FACTS).values()) == 1


def test_each_turn_holds_its_fact_on_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "transcripts"
    folder.mkdir()
    rows = [
        {"role": role, "content": f"Line {number}. It says little.\nNext."}
        for number in range(200)
        for role in ("user", "assistant")
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "companion-en.jsonl").write_text(text, "utf-8")
    held = [*turns(tmp_path, FACTS, characters=400), *made_up_turns(FACTS, characters=400)]

    assert has_texts(tmp_path)
    assert not has_texts(folder)
    assert [
        turn
        for turn in held
        if not any(turn.fact.said in line for line in getattr(turn, turn.fact.speaker).splitlines())
    ] == []
