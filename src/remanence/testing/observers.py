"""Observers and reflectors that follow a script."""

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeAlias

from remanence.protocols import ObserveRequest, ReflectRequest
from remanence.types import Draft, Note

ObserveAnswer: TypeAlias = Draft | BaseException | Callable[[ObserveRequest], Draft]
ReflectAnswer: TypeAlias = Draft | BaseException | Callable[[ReflectRequest], Draft]


def brief_notes(request: ObserveRequest) -> Draft:
    """Return a note for each message, with its number and first words."""
    notes = tuple(
        Note(
            text=f"#{message.seq} {' '.join(message.full_text.split()[:3])}"[:40],
            first_seq=message.seq,
            last_seq=message.seq,
            observed_at=message.created_at,
        )
        for message in request.messages
    )
    kept = notes[: max(1, request.target_tokens // 20)]
    return Draft(notes=kept, made_by="scripted/1", nothing=not kept)


def brief_reflection(request: ReflectRequest) -> Draft:
    """Return the first notes of the segments, as many as the target allows."""
    notes = tuple(note for segment in request.segments for note in segment.notes)
    kept = notes[: max(1, request.target_tokens // 40)]
    return Draft(notes=kept, made_by="scripted/1", nothing=not kept)


class ScriptedObserver:
    """Returns one scripted answer per call, then `brief_notes`; records its requests.

    An exception in the script is raised. With `gate`, each call waits until that event is set; the
    first call sets `called`.
    """

    def __init__(
        self, script: Iterable[ObserveAnswer] = (), *, gate: asyncio.Event | None = None
    ) -> None:
        self.requests: list[ObserveRequest] = []
        self.called = asyncio.Event()
        self._script = list(script)
        self._gate = gate

    async def observe(self, request: ObserveRequest) -> Draft:
        self.requests.append(request)
        self.called.set()
        if self._gate is not None:
            await self._gate.wait()
        answer = self._script.pop(0) if self._script else brief_notes
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, Draft) else answer(request)


class ScriptedReflector:
    """Returns one scripted answer per call, then `brief_reflection`; records its requests."""

    def __init__(self, script: Iterable[ReflectAnswer] = ()) -> None:
        self.requests: list[ReflectRequest] = []
        self._script = list(script)

    async def reflect(self, request: ReflectRequest) -> Draft:
        self.requests.append(request)
        answer = self._script.pop(0) if self._script else brief_reflection
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, Draft) else answer(request)
