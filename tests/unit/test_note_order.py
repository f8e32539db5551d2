"""The order in which a context shows segments."""

import pytest
from tests.builders import state

from remanence.context.layout import ContextRequest, Layout
from remanence.policy.policy import Policy
from remanence.testing.clock import START
from remanence.testing.store_contract.samples import observation
from remanence.types import Snapshot

SEGMENTS = (
    observation(1, 4, generation=2),
    observation(5, 6, generation=1),
    observation(7, 8),
    observation(9, 10),
)


@pytest.mark.parametrize(
    ("policy", "ids"),
    [
        (Policy(), ["g2-1-4", "g1-5-6", "g0-7-8", "g0-9-10"]),
        (Policy.lango(enabled=True), ["g2-1-4", "g1-5-6", "g0-9-10", "g0-7-8"]),
    ],
    ids=["default", "lango"],
)
def test_the_highest_generation_comes_first(policy: Policy, ids: list[str]) -> None:
    reflected = state(last_seq=10, observed_seq=10, active_seq=10, reflected_seq=6, tail_seq=11)

    snapshot = Snapshot(state=reflected, segments=SEGMENTS, tail=())
    context = Layout(snapshot, ContextRequest(now=START), policy, len, lambda _: 1).context()

    assert [block.segment_id for block in context.system if block.segment_id] == ids
