"""P10: every setting is read by the code, and every part that can be passed in is called."""

import ast
import dataclasses
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from pathlib import Path

import pytest

import remanence
from remanence import Memory, Message, Policy
from remanence.settings import Settings
from remanence.testing import FixedClock, ScriptedObserver, ScriptedReflector
from remanence.testing.models import ScriptedModel

SOURCE = Path(remanence.__file__).parent
DECLARED_IN = {"policy/policy.py", "settings/__init__.py", "settings/compat.py"}
"""Where a field is declared, checked, or set; reading it there changes nothing."""

WORDS = "seven brave sailors crossed a quiet bay before the morning bell rang twice "


@cache
def names_read() -> frozenset[str]:
    """The attributes that the package reads of something called policy or settings."""
    return frozenset(
        name
        for file in SOURCE.rglob("*.py")
        if file.relative_to(SOURCE).as_posix() not in DECLARED_IN
        for name in _read_in(file.read_text(encoding="utf-8"))
    )


def _read_in(text: str) -> Iterator[str]:
    if "policy." not in text and "settings." not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            if name.lstrip("_") in ("policy", "settings"):
                yield node.attr


@cache
def names_behind(name: str) -> frozenset[str]:
    """The fields that a property of the policy reads."""
    tree = ast.parse((SOURCE / "policy" / "policy.py").read_text(encoding="utf-8"))
    return frozenset(
        attribute.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == name
        for attribute in ast.walk(node)
        if isinstance(attribute, ast.Attribute)
    )


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Policy)])
def test_every_field_of_the_policy_is_read(field: str) -> None:
    read = names_read() | names_behind("context_tokens")

    assert field in read, f"nothing reads Policy.{field}: use it or delete it"


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Settings)])
def test_every_field_of_the_settings_is_read(field: str) -> None:
    assert field in names_read(), f"nothing reads Settings.{field}: use it or delete it"


class CountingClock(FixedClock):
    """Counts how often it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.times = 0
        self.ids = 0

    def now(self) -> datetime:
        self.times += 1
        return super().now()

    def new_id(self, kind: str) -> str:
        self.ids += 1
        return super().new_id(kind)


SMALL: dict[str, Callable[[], Policy]] = {
    "default": lambda: Policy(
        observe_tokens=300, tail_tokens=600, tail_keep_tokens=100, reflect_tokens=(60, 200)
    ),
    "lango": lambda: Policy.lango(
        enabled=True,
        observe_tokens=300,
        tail_tokens=600,
        tail_keep_tokens=100,
        reflect_tokens=(60, 120),
    ),
    "zora": lambda: Policy.zora(
        observe_tokens=600, tail_tokens=600, tail_keep_tokens=300, reflect_tokens=(60,)
    ),
    "brain": lambda: Policy.brain(
        observe_tokens=300,
        tail_tokens=600,
        reflect_tokens=(60,),
        reflect_min_interval_seconds=0,
    ),
}


async def talked(memory: Memory) -> str:
    """A conversation long enough for every step; what the host's model would receive."""
    chat = memory.conversation("a", user="ana")
    for number in range(40):
        await chat.append(Message.user(f"{number} {WORDS * 2}"), Message.assistant(f"ok {number}"))
        await chat.flush()
        await chat.context(system="You help.")
    return (await chat.context(system="You help.")).to_text()


@pytest.mark.parametrize("preset", SMALL)
async def test_observer_reflector_and_clock_that_were_passed_in_are_called(preset: str) -> None:
    clock, observer, reflector = CountingClock(), ScriptedObserver(), ScriptedReflector()
    async with Memory.open(
        "sqlite:///:memory:",
        policy=SMALL[preset](),
        observer=observer,
        reflector=reflector,
        clock=clock,
    ) as memory:
        received = await talked(memory)

    assert observer.requests
    assert reflector.requests
    assert clock.times
    assert clock.ids
    assert "#1 user: 0" in received


@pytest.mark.parametrize("preset", SMALL)
async def test_the_model_that_was_passed_in_is_asked_to_observe_and_to_reflect(preset: str) -> None:
    words = " ".join(f"word{number}" for number in range(40))
    model = ScriptedModel(otherwise=f"#1-2 [NOTE Fact] user: {words}")
    policy = SMALL[preset]().replace(note_ratio=0.5, max_output_tokens=32_000)
    async with Memory.open(
        "sqlite:///:memory:", policy=policy, model=model, clock=FixedClock()
    ) as memory:
        received = await talked(memory)

    assert {"observe", "reflect"} <= {request.purpose for request in model.requests}
    assert "word39" in received
