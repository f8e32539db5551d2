"""Proxies for clients of OpenAI and Anthropic: their requests, with old messages told by notes."""
