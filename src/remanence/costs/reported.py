"""Validation of model calls that an application reports."""

from datetime import datetime
from typing import Any, get_args

from remanence.arguments import (
    require_amount,
    require_choices,
    require_count,
    require_moment,
    require_one_of,
    require_text,
    require_unicode,
)
from remanence.types import Usage
from remanence.types.usage import Purpose


def require_usage(usage: Usage) -> None:
    """Raise `InvalidArgument` unless *usage* is a `Usage` that every ledger takes and can sum."""
    require_one_of(Usage, usage=usage)
    require_text(**_fields(usage, "purpose", "model", "outcome"))
    require_text(**_fields(usage, "user"), optional=True)
    require_unicode(**_fields(usage, "model", "outcome", "user"))
    require_choices(get_args(Purpose), **{"usage.purpose": [usage.purpose]})
    counts = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    require_count(**_fields(usage, *counts))
    require_amount(**_fields(usage, "cost_usd"), optional=True)
    require_amount(**_fields(usage, "duration_seconds"))
    require_one_of(datetime, **_fields(usage, "at"))
    require_moment(**_fields(usage, "at"))


def _fields(usage: Usage, *names: str) -> dict[str, Any]:
    return {f"usage.{name}": getattr(usage, name) for name in names}
