"""A repair is asked for where a note lost a value that matters, not for each note."""

import re
from collections import Counter

import pytest
from tests.requirements.samples import IN_MEMORY

from remanence import Memory, Message, Policy
from remanence.protocols import ModelRequest
from remanence.testing import FixedClock
from remanence.testing.models import ScriptedModel
from remanence.types import ToolCallPart

TURNS = 160
CITIES = ("Leipzig", "Porto", "Turin", "Gdansk", "Lyon")
SAID = re.compile(r"#(\d+) user: (.+?\.)\n", re.DOTALL)
ORDER = re.compile(r"order (\S+) .* in (\w+).* (\d+) chairs at (\S+) EUR .* by (\w+)", re.DOTALL)


def turn(number: int) -> list[Message]:
    """A turn with all that looks like a value and is none, and three values that matter."""
    order, city = f"K{4471 + number}-B", CITIES[number % len(CITIES)]
    call = ToolCallPart(id=f"call-{number}", name="find_order", arguments='{"dueWithin_days": 14}')
    result = (
        f'{{"orderId": "{order}", "warehouse_code": "LEJ{number}", "lines": [{{"sku": "CH-{number}",'
        f' "on_hand": {number * 7}, "eta": "2026-03-{number % 28 + 1:02}T09:30:00Z"}}]}}'
    )
    return [
        Message.user(
            f"Good morning! I'm looking at order {order} for the office in {city}. They'd like "
            f"{number + 3} chairs at {80 + number}.50 EUR each, and it's got to be there by Friday."
        ),
        Message.assistant("I'll look at it.", tool_calls=[call]),
        Message.tool(f"call-{number}", result),
        Message.assistant(f"It's in stock, so Friday isn't a problem. That's order {order} then."),
    ]


class Writer:
    """Notes as a capable model writes them; each note of so many turns loses the order's number."""

    def __init__(self, *, loses_every: int | None) -> None:
        self.lost = 0
        self._loses_every = loses_every

    def __call__(self, request: ModelRequest) -> str:
        if request.purpose == "repair":
            values = request.prompt.rpartition("missing values>")[0].splitlines()[-2:]
            return "\n".join(f"[Fact] user: orders {value.strip()}" for value in values[:1])
        if request.purpose == "reflect":
            return "[Fact] user: orders chairs for the offices, week by week"
        return "\n".join(self._line(seq, text) for seq, text in SAID.findall(request.prompt))

    def _line(self, seq: str, text: str) -> str:
        found = ORDER.search(text)
        assert found is not None, text
        order, city, chairs, price, day = found.groups()
        if self._loses_every and int(order[1:5]) % self._loses_every == 0:
            self.lost += 1
            order = "one"
        return f"#{seq} [Fact] user: {city} wants {chairs} chairs at {price} EUR by {day}, {order}"


async def live(writer: Writer) -> Counter[str]:
    """The model calls of a life under lango, by purpose."""
    model = ScriptedModel(otherwise=writer)
    async with Memory.open(
        IN_MEMORY, policy=Policy.lango(enabled=True), model=model, clock=FixedClock()
    ) as memory:
        chat = memory.conversation("chairs")
        for number in range(TURNS):
            await chat.append(*turn(number))
            await chat.flush()
        state = await chat.state()
    assert state.failures == 0
    return Counter(request.purpose for request in model.requests)


@pytest.mark.req("L-31", "L-66", "L-67")
async def test_notes_that_kept_what_matters_cost_no_repair() -> None:
    calls = await live(Writer(loses_every=None))

    assert calls["observe"] >= 16
    assert calls["reflect"] >= 1
    assert calls["repair"] == 0


@pytest.mark.req("L-31", "L-66")
async def test_only_a_note_that_lost_a_value_costs_a_repair() -> None:
    writer = Writer(loses_every=40)
    calls = await live(writer)

    assert writer.lost == 4
    assert calls["observe"] >= 16
    assert 1 <= calls["repair"] <= writer.lost
