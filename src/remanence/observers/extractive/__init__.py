"""The embedded observer and reflector, which need no model."""

from remanence.observers.extractive.observer import ExtractiveObserver
from remanence.observers.extractive.reflector import ExtractiveReflector

__all__ = ["ExtractiveObserver", "ExtractiveReflector"]
