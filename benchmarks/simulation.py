"""Many active conversations against workers and a provider's limits, as a discrete simulation.

Due observations arrive as a Poisson process, as those of many conversations do. Each waits for one of the
workers' slots, then for the provider's limits, then for the model; a slot is kept meanwhile.
"""

import argparse
import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import simpy

from benchmarks.rows import Row, percentile, show

Process: TypeAlias = Generator[simpy.Event, Any, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Conversations and what an observation of one takes."""

    conversations: int = 1_000_000
    turn_seconds: float = 300.0  # between two turns of a conversation
    turn_tokens: int = 800
    observe_tokens: int = 8_000
    input_tokens: int = 13_300  # of all calls for an observation, with its share of reflections
    output_tokens: int = 1_600
    model_seconds: float = 8.0
    overhead_seconds: float = 0.02  # of the worker and the database

    @property
    def due_per_second(self) -> float:
        tokens_per_second = self.conversations * self.turn_tokens / self.turn_seconds
        return tokens_per_second / self.observe_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Slots of all workers together, and the requests a minute that the provider takes."""

    slots: int
    requests_per_minute: float | None = None


@dataclass
class Outcome:
    """Seconds that observations waited, and how many were made in which time."""

    waits: list[float] = field(default_factory=list)
    made: int = 0
    seconds: float = 0.0
    left: int = 0


class Provider:
    """A provider that takes requests at an even pace, up to its limit."""

    def __init__(self, environment: simpy.Environment, requests_per_minute: float | None) -> None:
        self._environment = environment
        self._pause = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._free_at = 0.0

    def admission(self) -> simpy.Event:
        now = self._environment.now
        at = max(now, self._free_at)
        self._free_at = at + self._pause
        return self._environment.timeout(at - now)


def simulate(load: Load, capacity: Capacity, *, seconds: float, seed: int = 1) -> Outcome:
    """Let observations become due for so many seconds."""
    environment = simpy.Environment()
    outcome, chance = Outcome(), random.Random(seed)
    slots = simpy.Resource(environment, capacity.slots)
    provider = Provider(environment, capacity.requests_per_minute)

    def arrive() -> Process:
        while True:
            yield environment.timeout(chance.expovariate(load.due_per_second))
            environment.process(observe())

    def observe() -> Process:
        due_at = environment.now
        with slots.request() as slot:
            yield slot
            yield provider.admission()
            outcome.waits.append(environment.now - due_at)
            yield environment.timeout(
                load.overhead_seconds + chance.expovariate(1 / load.model_seconds)
            )
        outcome.made += 1

    environment.process(arrive())
    environment.run(until=seconds)
    outcome.seconds = seconds
    outcome.left = len(slots.queue)
    return outcome


def rows(
    load: Load, capacities: Sequence[Capacity], *, seconds: float, prices: tuple[float, float]
) -> list[Row]:
    """The wait of an observation at each capacity; prices are dollars for a million tokens."""
    needed = load.due_per_second * (load.model_seconds + load.overhead_seconds)
    dollars = (load.input_tokens * prices[0] + load.output_tokens * prices[1]) / 1_000_000
    hourly = 3_600 * load.due_per_second * dollars
    table = []
    for capacity in capacities:
        outcome = simulate(load, capacity, seconds=seconds)
        limit = capacity.requests_per_minute
        limited = f"{limit:,.0f} requests a minute" if limit else "no limit of the provider"
        table.append(
            Row(
                what=f"wait of an observation, p95, {capacity.slots:,} slots, {limited}",
                measured=percentile(outcome.waits, 0.95),
                unit="s",
                detail=f"p50 {percentile(outcome.waits, 0.5):.1f} s; {outcome.made / seconds:,.0f} of "
                f"{load.due_per_second:,.0f} a second; {outcome.left:,} wait in the end; "
                f"{needed:,.0f} slots are busy on average",
            )
        )
    table.append(Row(what="cost of all observations", measured=hourly, unit="$/hour"))
    return table


def measure(*, seconds: float = 200.0) -> list[Row]:
    """A million conversations with a turn in five minutes: too few slots, enough, and a limit."""
    load = Load()
    capacities = [Capacity(slots=slots) for slots in (2_500, 2_700, 2_800, 3_000)]
    limits = [
        Capacity(slots=3_000, requests_per_minute=limit) for limit in (18_000, 20_400, 24_000)
    ]
    return rows(load, [*capacities, *limits], seconds=seconds, prices=(1.0, 5.0))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conversations", type=int, default=1_000_000)
    parser.add_argument("--turn-seconds", type=float, default=300.0)
    parser.add_argument("--model-seconds", type=float, default=8.0)
    parser.add_argument("--slots", type=int, default=3_000)
    parser.add_argument("--requests-per-minute", type=float, default=None)
    parser.add_argument("--seconds", type=float, default=200.0)
    parser.add_argument("--prices", type=float, nargs=2, default=(1.0, 5.0), metavar=("IN", "OUT"))
    given = parser.parse_args()
    load = Load(
        conversations=given.conversations,
        turn_seconds=given.turn_seconds,
        model_seconds=given.model_seconds,
    )
    capacity = Capacity(slots=given.slots, requests_per_minute=given.requests_per_minute)
    show(rows(load, [capacity], seconds=given.seconds, prices=tuple(given.prices)))


if __name__ == "__main__":
    main()
