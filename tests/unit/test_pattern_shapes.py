"""No regular expression of the package reads a run of characters again for each of them.

That happens where an unbounded repeat holds another that can read the same characters, or stands
beside one: `(a+)+`, `a*a*`. `python -m benchmarks patterns` measures the same by time.
"""

import re

import pytest
from benchmarks.pattern_parts import faults
from benchmarks.patterns import BOUNDED, patterns


def test_no_pattern_repeats_what_another_repeat_reads() -> None:
    faulty = {each.name: found for each in patterns() if (found := faults(each.pattern))}

    assert {name: found for name, found in faulty.items() if name not in BOUNDED} == {}


def test_each_pattern_with_a_bound_is_there() -> None:
    assert set(BOUNDED) <= {each.name for each in patterns()}


@pytest.mark.parametrize(
    "name",
    [
        "notes.redact._NAMED",
        "dates.language.languages",
        "tokens.pieces.cutter",
        "wire.message_rules._BASE64",
    ],
)
def test_patterns_are_found_wherever_they_are_kept(name: str) -> None:
    assert name in {each.name for each in patterns()}


def test_what_reads_a_run_again_is_found() -> None:
    for text in (r"(?:a+)+b", r"\s*x?\s*y", r"(?:a|b+)*c", r"[a-z]\w*(?:[._]\w+)+\("):
        assert faults(re.compile(text)), text
    for text in (r"\s*+x?\s*y", r"\w+(?:-\w+)*"):
        assert not faults(re.compile(text)), text
