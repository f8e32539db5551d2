"""A process that observes by jobs, with a model of so many seconds: `... URL SECONDS`."""

import asyncio
import sys

from remanence import Memory, Policy, Settings
from remanence.protocols import ObserveRequest
from remanence.testing import ScriptedObserver
from remanence.types import Draft

POLICY = Policy(observe_tokens=100, keep_last=2)


class SlowObserver(ScriptedObserver):
    """Answers after a while; the first call is announced."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    async def observe(self, request: ObserveRequest) -> Draft:
        if not self.requests:
            print("at work", flush=True)
        await asyncio.sleep(self._seconds)
        return await super().observe(request)


async def main() -> None:
    """Work until killed."""
    url, seconds = sys.argv[1:]
    async with Memory.open(
        url,
        policy=POLICY,
        observer=SlowObserver(float(seconds)),
        settings=Settings(engine="procrastinate", workers=1),
    ):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
