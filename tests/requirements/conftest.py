"""Providers are loaded before the time of a test runs: they take seconds to import."""

import pydantic_ai.models.anthropic  # noqa: F401
