"""The problems that a check reports, and their remedies."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.builders import AT, REF

from remanence.policy.diagnosis import diagnose
from remanence.policy.policy import Policy
from remanence.stores.url import name_database
from remanence.types import Failure, MemoryState, Problem

MODEL = "anthropic:claude-haiku-4-5"
STATE = MemoryState(ref=REF, key=1, user="ana", created_at=AT, last_seq=9)


def failure(**changes: object) -> Failure:
    made = Failure(
        step="observe",
        reason="timeout",
        message="late",
        at=AT,
        next_attempt_at=AT + timedelta(seconds=60),
        failures=1,
        last_seq=9,
        made_by=MODEL,
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # fields by name


def problem(state: MemoryState, *paused: str) -> Problem:
    """Return the only problem of a conversation while models are paused."""
    (found,) = diagnose(Policy(), state, now=AT, lease_seconds=10, paused=paused)
    return found


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("auth", "check the model's key"),
        ("invented", "use another model"),
        ("degenerate", "use another model"),
        ("empty", "use another model"),
        ("timeout", "raise observe_timeout_seconds"),
        ("too_long", "lower max_output_tokens, observe_max_tokens"),
        ("hook_failed", "correct the hook"),
        ("error", "check the observer"),
    ],
)
def test_the_remedy_of_a_failed_step_fits_its_reason(reason: str, remedy: str) -> None:
    found = problem(replace(STATE, observe_failure=failure(reason=reason)))

    assert remedy in found.remedy
    command = "remanence flush chat --tenant default --retry"
    assert found.remedy.endswith(f"; '{command}' or flush(retry=True) tries at once")


@pytest.mark.parametrize("reason", ["too_large", "empty", "invented"])
def test_for_notes_of_an_observer_of_ones_own_the_remedy_names_no_model(reason: str) -> None:
    found = problem(replace(STATE, observe_failure=failure(reason=reason, made_by="MyObserver")))

    assert "check the observer" in found.remedy
    assert "model" not in found.remedy


@pytest.mark.parametrize(
    ("step", "effect"),
    [
        ("observe", "messages stay raw"),
        ("reflect", "notes are not condensed"),
        ("facts", "no facts are extracted"),
    ],
)
@pytest.mark.parametrize("skips", [0, 1])
def test_a_failed_or_skipped_step_is_described_by_its_own_effect(
    step: str, effect: str, skips: int
) -> None:
    failed = {f"{step}_failure": failure(step=step, skips=skips)}
    found = problem(replace(STATE, **failed))  # type: ignore[arg-type]  # fields by name

    assert found.what.startswith(f"the {step} step ")
    assert found.remedy.startswith(f"{effect} meanwhile; the next ")


@pytest.mark.parametrize(
    ("failures", "effect"), [(1, "messages stay raw"), (2, "the embedded observer stands in")]
)
def test_a_failing_observer_is_described_with_the_one_that_stands_in(
    failures: int, effect: str
) -> None:
    failed = replace(STATE, observe_failure=failure(failures=failures))
    policy = Policy(fallback_after_failures=2)

    (found,) = diagnose(policy, failed, now=AT, lease_seconds=10)

    assert found.remedy.startswith(f"{effect} meanwhile; the next ")


@pytest.mark.parametrize(
    ("step", "made_by"), [("facts", "extractive/9"), ("observe", "ExtractiveObserver")]
)
def test_the_remedy_of_an_embedded_step_that_takes_too_long_names_no_model(
    step: str, made_by: str
) -> None:
    failed = {f"{step}_failure": failure(step=step, made_by=made_by)}
    found = problem(replace(STATE, **failed))  # type: ignore[arg-type]  # fields by name

    assert "raise observe_timeout_seconds" in found.remedy
    assert "model" not in found.remedy


@pytest.mark.parametrize("made_by", [MODEL, f"extract/3 {MODEL}", f"{MODEL} > openai:gpt-5"])
def test_no_retry_at_once_is_offered_while_the_model_is_paused(made_by: str) -> None:
    state = replace(STATE, facts_failure=failure(reason="rate_limit", made_by=made_by))

    found = problem(state, MODEL, "openai:gpt-5")

    assert "flush" not in found.remedy
    assert "the next try is at 2026-03-02 09:01 UTC: set calls_per_minute" in found.remedy


def test_a_retry_at_once_is_offered_while_another_model_of_a_chain_may_be_called() -> None:
    made = failure(reason="rate_limit", made_by=f"{MODEL} > openai:gpt-5")

    found = problem(replace(STATE, observe_failure=made), MODEL)

    assert "flush(retry=True) tries at once" in found.remedy


def test_no_tokens_wait_to_be_observed_when_only_facts_are_due() -> None:
    state = replace(STATE, last_sum_tokens=900, observed_sum_tokens=900, observed_seq=9)
    due = replace(state, look_at=AT, look_tokens=800)

    assert problem(due).what == "background work has been due since 2026-03-02 09:00 UTC"
    assert problem(replace(due, observed_sum_tokens=0)).what == "900 tokens wait to be observed"


def test_a_command_has_the_url_without_its_password() -> None:
    options = ("", "?password=a%20b", "?password=a&sslpassword=b")
    urls = {f"postgresql://ana{word}@db/memory{o}" for word in ("", ":secret") for o in options}

    commands = {name_database("run 'remanence flush trip'", url) for url in urls}
    file = name_database("run 'remanence flush trip'", "sqlite:///a:b@c.db")

    assert commands == {"run 'remanence flush --db postgresql://ana@db/memory trip'"}
    assert file == "run 'remanence flush --db sqlite:///a:b@c.db trip'"


def test_a_command_has_the_other_options_of_the_url() -> None:
    urls = (
        "postgresql://ana@db/m?password=a&sslmode=require",
        "postgresql://ana@db/m?sslmode=require&sslpassword=a",
    )

    commands = {name_database("run 'remanence flush trip'", url) for url in urls}

    assert commands == {
        "run 'remanence flush --db 'postgresql://ana@db/m?sslmode=require' trip'",
    }
