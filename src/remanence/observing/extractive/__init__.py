"""Notes without a model: the observer and the reflector that are always there."""

from remanence.observing.extractive.observer import ExtractiveObserver
from remanence.observing.extractive.reflector import ExtractiveReflector

__all__ = ["ExtractiveObserver", "ExtractiveReflector"]
