"""Facts about users that outlive a conversation: their extraction, merging and rendering."""

from remanence.facts.extractive import ExtractiveFacts
from remanence.facts.llm import ModelFacts
from remanence.facts.merge import merge_facts

__all__ = ["ExtractiveFacts", "ModelFacts", "merge_facts"]
