"""Proxies for OpenAI and Anthropic clients, which replace old messages with notes."""
