"""Token counts: estimates by tokenizer family, or exact if a vocabulary is installed."""

from remanence.tokens.choice import count_tokens, counter_for
from remanence.tokens.counter import TokenCounter

__all__ = ["TokenCounter", "count_tokens", "counter_for"]
