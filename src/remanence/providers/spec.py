"""Names of models."""

import os
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from remanence.errors import ModelError

CONTINUING = frozenset({"anthropic", "openai"})
"""Providers whose models can continue a live prompt: a `Context` renders their requests."""

_OTHER_NAMES = {"gemini": "google"}
"""Aliases of providers."""

_FORMS = "anthropic:claude-haiku-4-5, ollama:llama3.2 or openai:my-model@http://127.0.0.1:8000/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A model of a provider. `base_url` stays out of the repr: it may hold a password.

    `key_variable` is the environment variable of its key, None for the provider's default.
    """

    provider: str
    model: str
    base_url: str | None = field(default=None, repr=False)
    key_variable: str | None = None

    @property
    def name(self) -> str:
        return f"{self.provider}:{self.model}"


def own_key(spec: ModelSpec) -> str | None:
    """Return the key in the model's own variable; None if it has no variable.

    Raises:
        ModelError: `auth`; the variable is not set.
    """
    if spec.key_variable is None:
        return None
    key = os.environ.get(spec.key_variable)
    if not key:
        raise ModelError("auth", f"{spec.name} needs a key: set {spec.key_variable}")
    return key


def can_continue(name: str) -> bool:
    """Return whether this model, or each of a chain, can continue a live prompt."""
    return all(link.partition(":")[0] in CONTINUING for link in name.split(" > "))


def parse_spec(text: str) -> ModelSpec:
    """Read `provider:model` or `provider:model@base-url`.

    Raises:
        ModelError: `unknown_model`; the text has neither form.
    """
    name, at, base_url = _split_url(text.strip())
    provider, _, model = name.partition(":")
    if not provider or not model or (at and not _is_url(base_url)):
        raise ModelError("unknown_model", f"model {name!r} is not a name: write {_FORMS}")
    provider = provider.lower()
    return ModelSpec(
        provider=_OTHER_NAMES.get(provider, provider), model=model, base_url=base_url or None
    )


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _split_url(text: str) -> tuple[str, str, str]:
    """Split at the `@` before a URL; a model name may contain one, as in `model@latest`."""
    for scheme in ("@http://", "@https://"):
        name, at, rest = text.partition(scheme)
        if at:
            return name, at, f"{scheme[1:]}{rest}"
    return text, "", ""
