"""The observer and the reflector that use a language model."""

from remanence.observers.llm.observer import ModelObserver
from remanence.observers.llm.reflector import ModelReflector

__all__ = ["ModelObserver", "ModelReflector"]
