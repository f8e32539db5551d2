"""Application callbacks before and after each observation and reflection."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from remanence.arguments import require_amount, require_async
from remanence.background import guard_host_code
from remanence.errors import ObservationRejected, ObservationSkipped
from remanence.protocols import Observer, ObserveRequest, Reflector, ReflectRequest
from remanence.types import Draft

T = TypeVar("T")

NOTHING = Draft(notes=(), made_by="nothing", nothing=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Async functions that see each request and draft, and may change or veto it.

    A hook returns the request or draft to use, or None as a veto: then nothing is written, no
    failure is recorded, and the step is tried again later. A hook that raises, or takes longer than
    `timeout_seconds`, makes the step fail. Whatever `before_*` removes from a request never reaches
    observers, notes or loss reports.

    Raises:
        InvalidArgument: a hook is not async, or the timeout is not a number of seconds.
    """

    before_observe: Callable[[ObserveRequest], Awaitable[ObserveRequest | None]] | None = None
    after_observe: Callable[[ObserveRequest, Draft], Awaitable[Draft | None]] | None = None
    before_reflect: Callable[[ReflectRequest], Awaitable[ReflectRequest | None]] | None = None
    after_reflect: Callable[[ReflectRequest, Draft], Awaitable[Draft | None]] | None = None
    timeout_seconds: float = 5.0

    def __post_init__(self) -> None:
        for name in ("before_observe", "after_observe", "before_reflect", "after_reflect"):
            if (hook := getattr(self, name)) is not None:
                require_async(**{name: hook})
        require_amount(timeout_seconds=self.timeout_seconds)


async def observe(
    observer: Observer, request: ObserveRequest, hooks: Hooks
) -> tuple[ObserveRequest, Draft]:
    """Return the request after the hooks, and the resulting draft."""
    request = await prepare(request, hooks)
    draft = _draft(observer, await observer.observe(request)) if request.messages else NOTHING
    return request, await _call(hooks, "after_observe", draft, request)


async def prepare(request: ObserveRequest, hooks: Hooks) -> ObserveRequest:
    """Return the request after its `before_observe` hook."""
    changed = await _call(hooks, "before_observe", request)
    # Content that the hook removed from the request would still be in the live prompt.
    return changed if hooks.before_observe is None else replace(changed, live=None)


async def reflect(
    reflector: Reflector, request: ReflectRequest, hooks: Hooks
) -> tuple[ReflectRequest, Draft]:
    """Return the request after the hooks, and the resulting draft."""
    request = await _call(hooks, "before_reflect", request)
    draft = _draft(reflector, await reflector.reflect(request))
    return request, await _call(hooks, "after_reflect", draft, request)


def _draft(maker: Observer | Reflector, draft: object) -> Draft:
    """Return what an observer or reflector, which may be the application's own, has returned."""
    if not isinstance(draft, Draft):
        raise ObservationRejected(
            "no_draft",
            f"{type(maker).__name__} returned a {type(draft).__name__}: return a Draft, with "
            "nothing=True if nothing is worth a note",
        )
    return draft


async def _call(hooks: Hooks, name: str, value: T, *before: object) -> T:
    """Return the result of the hook called *name*, or *value* if there is none."""
    hook: Callable[..., Awaitable[object]] | None = getattr(hooks, name)
    if hook is None:
        return value
    deadline = asyncio.timeout(hooks.timeout_seconds)
    try:
        async with deadline:
            with guard_host_code():
                changed = await hook(*before, value)
    except ObservationSkipped:
        raise
    except Exception as error:
        if deadline.expired():
            message = f"hook {name} took longer than {hooks.timeout_seconds:g} s"
            raise ObservationRejected("hook_timeout", message) from error
        message = f"hook {name} raised {type(error).__name__}: {error}"
        raise ObservationRejected("hook_failed", message) from error
    if changed is None:
        raise ObservationSkipped("vetoed", f"hook {name} vetoed it")
    if not isinstance(changed, type(value)):
        raise ObservationRejected(
            "hook_failed",
            f"hook {name} returned a {type(changed).__name__}: return a {type(value).__name__}, "
            "or None",
        )
    return changed
