"""Doubles and checks for tests of programs that use remanence."""

from remanence.testing.clock import FixedClock
from remanence.testing.invariants import (
    cached_prefix,
    check_coverage,
    check_extends,
    check_tiling,
    flattened,
)
from remanence.testing.observers import ScriptedObserver, ScriptedReflector

__all__ = [
    "FixedClock",
    "ScriptedObserver",
    "ScriptedReflector",
    "cached_prefix",
    "check_coverage",
    "check_extends",
    "check_tiling",
    "flattened",
]
