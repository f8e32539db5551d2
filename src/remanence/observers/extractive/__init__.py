"""The embedded observer and reflector, which need no model."""

from remanence.observers.extractive.explanation import Explanation, explain
from remanence.observers.extractive.observer import ExtractiveObserver
from remanence.observers.extractive.reflector import ExtractiveReflector

__all__ = ["Explanation", "ExtractiveObserver", "ExtractiveReflector", "explain"]
