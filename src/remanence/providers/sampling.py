"""Settings of a model for short, repeatable answers without thinking, from pydantic-ai's profiles."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic_ai.providers import infer_provider_class

from remanence.providers.prompts import takes_breakpoints
from remanence.providers.requests import Form, JsonObject
from remanence.providers.spec import ModelSpec

Profile = Mapping[str, Any]  # pydantic-ai's typed dicts, one for each provider

_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def repeatable_settings(spec: ModelSpec, form: Form) -> JsonObject:
    """Return the fields of a request to a model; none for an adapter that sets them itself."""
    if form == "text":
        return {}
    profile: Profile = infer_provider_class(spec.provider).model_profile(spec.model) or {}
    return _anthropic(profile) if form == "anthropic" else _openai(profile, spec)


def _anthropic(profile: Profile) -> JsonObject:
    settings: JsonObject = {}
    if not profile.get("anthropic_disallows_sampling_settings", False):
        settings["temperature"] = 0.0
    if profile.get("thinking_always_enabled", False):
        if profile.get("anthropic_supports_effort", False):
            settings |= {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}
    elif profile.get("anthropic_disables_thinking_with_between_tools", False):
        settings["thinking"] = {"type": "between_tools"}
    elif profile.get("thinking_enabled_by_default", False):
        settings["thinking"] = {"type": "disabled"}
    return settings


def _openai(profile: Profile, spec: ModelSpec) -> JsonObject:
    settings: JsonObject = {}
    if not profile.get("openai_supports_reasoning", False):
        settings["temperature"] = 0.0  # reasoning models reject it
    elif efforts := profile.get("openai_reasoning_efforts"):
        settings["reasoning_effort"] = min(efforts, key=_EFFORTS.index)
    elif not profile.get("thinking_always_enabled", False):
        settings["reasoning_effort"] = "none"
    if takes_breakpoints(spec):
        settings["prompt_cache_options"] = {"mode": "explicit", "ttl": "30m"}
    return settings
