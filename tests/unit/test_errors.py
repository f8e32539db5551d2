"""Errors, as they reach other processes."""

import copy
import inspect
import pickle
from collections.abc import Callable

import pytest

from remanence import errors
from remanence.errors import ModelError, RemanenceError

CLASSES = [
    kind
    for kind in vars(errors).values()
    if inspect.isclass(kind) and issubclass(kind, RemanenceError)
]


def example_of(kind: type[RemanenceError]) -> RemanenceError:
    if not inspect.isfunction(kind.__init__):  # that of Exception
        return kind("the text")
    return kind(**{name: f"the {name}" for name in inspect.signature(kind).parameters})


def send(error: RemanenceError) -> RemanenceError:
    received: RemanenceError = pickle.loads(pickle.dumps(error))
    return received


@pytest.mark.parametrize("duplicate", [send, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_keeps_its_text_and_attributes_in_another_process(
    kind: type[RemanenceError], duplicate: Callable[[RemanenceError], RemanenceError]
) -> None:
    error = example_of(kind)

    received = duplicate(error)

    assert type(received) is kind
    assert (str(received), received.public) == (str(error), error.public)
    assert (received.args, vars(received)) == (error.args, vars(error))


def test_an_error_keeps_a_note_that_was_added_to_it() -> None:
    error = ModelError("overloaded", "try later", retry_after_seconds=2.0)
    error.add_note("in job 7")

    assert send(error).__notes__ == ["in job 7"]
