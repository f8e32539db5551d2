"""Fusion by rank, snippets and budgets."""

from dataclasses import replace

from hypothesis import given, strategies as st

from remanence.recall.fusion import fuse
from remanence.recall.snippets import SNIPPET_CHARACTERS, snippet, within
from remanence.types import Hit


def hit(name: str) -> Hit:
    return Hit(kind="note", text=name, first_seq=1, last_seq=1, at=None, score=0.0, source_id=name)


def names(hits: tuple[Hit, ...]) -> str:
    return "".join(found.text for found in hits)


def test_what_several_searches_rank_high_comes_first() -> None:
    rankings = [[hit(name) for name in ranking] for ranking in ("abcd", "xcba", "cx")]

    found = fuse(rankings)

    assert names(found) == "cxabd"
    assert found[0].score == 1 / 63 + 1 / 62 + 1 / 61


def test_letters_that_grow_without_case_do_not_shift_a_snippet() -> None:
    filler = "Draußen ist die Straße groß, heißt es. " * 30

    assert "Regenbogen 77" in snippet(f"{filler}Der Code lautet Regenbogen 77. {filler}", "code")


def test_one_ranking_keeps_its_order() -> None:
    assert names(fuse([[hit(name) for name in "cab"]])) == "cab"


def test_a_snippet_of_the_beginning_has_the_first_word() -> None:
    assert snippet(f"Dinner is at eight. {'We talked. ' * 99}", "eight").startswith("Dinner is")


def test_a_short_text_is_its_own_snippet() -> None:
    assert snippet("one\ntwo  three", "two") == "one two three"


@given(
    st.integers(0, 3_000), st.integers(0, 3_000), st.sampled_from(["harbour", "港の灯台", "등대"])
)
def test_a_snippet_holds_the_word_and_keeps_to_its_length(
    before: int, after: int, word: str
) -> None:
    text = f"{'lorem ' * (before // 6)} {word} {'ipsum ' * (after // 6)}"

    cut = snippet(text, word)

    assert word in cut
    assert len(cut) <= SNIPPET_CHARACTERS + 4


def test_a_budget_passes_over_what_does_not_fit() -> None:
    hits = [
        replace(hit(name), snippet=name * size) for name, size in (("a", 3), ("b", 9), ("c", 2))
    ]

    assert names(within(hits, "a", 5, len)) == "ac"
    assert names(within(hits, "a", None, len)) == "abc"


def test_the_best_hit_is_shortened_to_its_budget_around_the_words_of_the_query() -> None:
    text = f"{'lorem ' * 30}the harbour is closed {'ipsum ' * 30}"
    best, other = replace(hit("a"), snippet=text), replace(hit("b"), snippet=text)

    (shortened,) = within([best, other], "harbour", 60, len)

    assert "harbour" in shortened.snippet
    assert len(shortened.snippet) <= 60
    assert within([best], "harbour", 3, len) == ()
