"""What a conversation leaves behind about its user: made from notes, merged, rendered."""

from remanence.facts.extractive import ExtractiveFacts
from remanence.facts.llm import ModelFacts
from remanence.facts.merge import merge_facts

__all__ = ["ExtractiveFacts", "ModelFacts", "merge_facts"]
