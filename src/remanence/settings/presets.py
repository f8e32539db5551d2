"""The policy that settings describe."""

import dataclasses
import difflib
from collections.abc import Callable

from remanence.errors import InvalidPolicy
from remanence.policy.policy import Policy
from remanence.settings import Settings


def policy_of(settings: Settings) -> Policy:
    """Return the policy that *settings* describe: a preset with changes.

    Raises:
        InvalidPolicy: a field is unknown, or its value contradicts the others.
    """
    known = {field.name for field in dataclasses.fields(Policy)}
    for name in settings.policy:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {nearest[0]!r}?" if nearest else f"known are {sorted(known)}"
            raise InvalidPolicy(f"policy.{name} is unknown: {hint}")
    make: Callable[..., Policy] = getattr(Policy, settings.preset)
    return make(**settings.policy)
