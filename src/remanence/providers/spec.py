"""Names of models."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from remanence.arguments import is_http_url
from remanence.catalog import canonical_name, chain_links
from remanence.errors import ModelError


class Provider(NamedTuple):
    """A provider: the module of its adapter, and its abilities.

    With `takes_context`, chats send the context block by block, and may have tools; with
    `continues`, an observer that continues a chat's prompt reads it from the prompt cache.
    """

    adapter: str
    takes_context: bool = True
    continues: bool = False


PROVIDERS = {
    "anthropic": Provider("anthropic", continues=True),
    "ollama": Provider("openai"),
    "openai": Provider("openai", continues=True),
}
_OTHERS = Provider("pydantic_ai", takes_context=False)

_BETWEEN_NAMES = re.compile(r"\s*,\s*(?=[\w-]+:(?!//))")
_FORMS = "anthropic:claude-haiku-4-5, ollama:llama3.2 or openai:my-model@http://127.0.0.1:8000/v1"

_WORD = r"(?<![:/]@)(?!(?:v?\d[\d.-]*|latest|default)\Z|preset/)[\w.-]+"
"""A word after a model's name, other than a version (Vertex AI) or a preset (OpenRouter)."""
_HOST = rf"localhost|[\w.-]+\.[a-z]{{2,}}|\d+(?:\.\d+){{3}}|\[[\da-f:]+\]|[\w.-]+(?=:\d)|{_WORD}"
_BARE_ADDRESS = re.compile(rf"([^@]+)@(?:.*@)?((?:{_HOST})(?::\d+)?)(/.*)?", re.IGNORECASE)
"""A model's name, and a host and path without a scheme; any user and password between them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A model of a provider. `base_url` stays out of the repr, as it may contain a password.

    `key_variable` is the environment variable of its key, None for the provider's default.
    """

    provider: str
    model: str
    base_url: str | None = field(default=None, repr=False)
    key_variable: str | None = None

    @property
    def name(self) -> str:
        return f"{self.provider}:{self.model}"

    @property
    def row(self) -> Provider:
        """The entry of its provider."""
        return PROVIDERS.get(self.provider, _OTHERS)


def own_key(spec: ModelSpec) -> str | None:
    """Return the key in the model's own variable; None if it has no variable.

    Raises:
        ModelError: `auth`: the variable is not set.
    """
    if spec.key_variable is None:
        return None
    key = os.environ.get(spec.key_variable)
    if not key:
        raise ModelError("auth", f"{spec.name} needs a key: set {spec.key_variable}")
    return key


def can_continue(name: str) -> bool:
    """Return whether a model, or each model of a chain, can continue a live prompt."""
    providers = (link.partition(":")[0] for link in chain_links(name))
    return all(PROVIDERS.get(provider, _OTHERS).continues for provider in providers)


def split_names(text: str) -> list[str]:
    """Return the names of a chain, such as `anthropic:claude-haiku-4-5, openai:gpt-5-mini`."""
    return _BETWEEN_NAMES.split(text.strip())


def first_provider(source: object) -> str | None:
    """Return the provider of the first name in a chain; a `key_variable` applies only to it."""
    if isinstance(source, str):
        return parse_spec(split_names(source)[0]).provider
    if isinstance(source, Sequence):
        return next(filter(None, map(first_provider, source)), None)
    return None


def parse_spec(text: str) -> ModelSpec:
    """Read `provider:model` or `provider:model@base-url`.

    Raises:
        ModelError: `unknown_model`: the text has neither form, or its URL has no scheme.
    """
    # A model name may contain an `@` itself, as in `model@latest`.
    name, *urls = re.split(r"@(?=https?://)", text.strip(), maxsplit=1)
    base_url = urls[0] if urls else ""
    provider, _, model = name.partition(":")
    is_list = "," in name or " " in base_url  # names, one of which lacks its provider
    if not provider or not model or is_list or (urls and not is_http_url(base_url)):
        raise ModelError("unknown_model", f"model {name!r} is not a name: write {_FORMS}")
    if "://" in name:  # it may have a password
        raise ModelError("unknown_model", f"a URL is not a model's name: write {_FORMS}")
    if not urls and (bare := _BARE_ADDRESS.fullmatch(name)):
        model, host, path = bare.groups()
        raise ModelError(
            "unknown_model",
            f"{host!r} of model {model!r} has no scheme: write {model}@http://{host}{path or '/v1'}",
        )
    provider, _, model = canonical_name(name).partition(":")
    return ModelSpec(provider=provider, model=model, base_url=base_url or None)
