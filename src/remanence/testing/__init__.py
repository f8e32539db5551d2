"""Doubles and checks for tests of programs that use remanence."""

from remanence.testing.clock import FixedClock
from remanence.testing.faults import FaultyStore
from remanence.testing.invariants import (
    cached_prefix,
    check_coverage,
    check_extends,
    check_tiling,
    flatten,
)
from remanence.testing.models import ScriptedModel
from remanence.testing.observers import ScriptedObserver, ScriptedReflector

__all__ = [
    "FaultyStore",
    "FixedClock",
    "ScriptedModel",
    "ScriptedObserver",
    "ScriptedReflector",
    "cached_prefix",
    "check_coverage",
    "check_extends",
    "check_tiling",
    "flatten",
]
