"""The observer and the reflector that use a language model."""

from remanence.observing.model.observer import ModelObserver
from remanence.observing.model.reflector import ModelReflector

__all__ = ["ModelObserver", "ModelReflector"]
