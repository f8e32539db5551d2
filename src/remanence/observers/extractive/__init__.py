"""Notes without a model: the observer and the reflector that are always there."""

from remanence.observers.extractive.observer import ExtractiveObserver
from remanence.observers.extractive.reflector import ExtractiveReflector

__all__ = ["ExtractiveObserver", "ExtractiveReflector"]
