"""A text of any length is looked through in short steps, with the same result."""

import re
from collections.abc import Iterator

import pytest

from remanence.notes.redact import MARK, redact
from remanence.notes.substitution import MAX_RUN, REACH, WINDOW, substitute

NUMBER = re.compile(r"\bno (\d{3} ){2}\w+\b")


def in_brackets(match: re.Match[str]) -> str:
    return f"<{match[0]}>"


@pytest.mark.parametrize("before", range(WINDOW - 20, WINDOW + 5))
@pytest.mark.parametrize("filler", ["x ", ".", "a"])
def test_a_match_across_windows_is_found(before: int, filler: str) -> None:
    text = f"{filler * WINDOW}"[: before - 1] + f" no 123 456 end {filler * WINDOW} no 1 2 x"

    assert substitute(NUMBER, in_brackets, text) == NUMBER.sub(in_brackets, text)


def test_a_run_that_goes_on_beyond_a_window_is_taken_whole() -> None:
    run = "ab.c-" * (MAX_RUN // 5 - 10)
    text = f"{'x ' * (WINDOW // 2 - 5)}no 123 456 {run} end"

    found = substitute(re.compile(r"no (?:\d{3} ){2}[\w.-]+"), lambda _: "found", text)

    assert found.endswith(" found end")


class Recorder:
    """Looks as a pattern does, and keeps how far it was to look."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern
        self.longest = 0

    def finditer(self, text: str, start: int, end: int) -> Iterator[re.Match[str]]:
        self.longest = max(self.longest, end - start)
        return self.pattern.finditer(text, start, end)


@pytest.mark.parametrize("filler", [" ", "a", "字"])
def test_no_step_looks_further_than_a_window(filler: str) -> None:
    recorder = Recorder(NUMBER)

    substitute(recorder, in_brackets, filler * 200_000)  # type: ignore[arg-type]  # as a pattern

    assert 0 < recorder.longest <= WINDOW + MAX_RUN + REACH


@pytest.mark.parametrize(
    "secret",
    [
        "password: hunter22!",
        "Bearer " + "aB3" * 12,
        "eyJ" + "a" * 3_000 + "." + "b" * 6_000 + "." + "c" * 60,
        "https://u:pw1@example.org",
        "login is admin / Pa$$w0rd9",
        "Cookie: lang=en; sid=" + "a1b2" * 8,
        "curl -u ana:hunter22",
        "pass\u200bword: hunter22",
        "4111 1111 1111 1111",
        "DE89 3704 0044 0532 0130 00",
        "123-45-6789",
        "PIN is 4711",
        "验证码是123456",
        "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----",
    ],
)
def test_a_secret_in_a_long_text_is_taken_out_wherever_it_stands(secret: str) -> None:
    short = redact(f"so {secret} it is")
    assert MARK in short
    for before in range(WINDOW - len(secret[:40]), WINDOW + 2):
        text = f"{'x ' * WINDOW}"[-before:] + f" so {secret} it is {'y ' * WINDOW}"

        assert short in redact(text), before
