"""What a conversation leaves behind about its user: made from notes, merged, rendered."""

from remanence.observing.facts.extractive import ExtractiveFacts
from remanence.observing.facts.merging import merged
from remanence.observing.facts.model import ModelFacts

__all__ = ["ExtractiveFacts", "ModelFacts", "merged"]
