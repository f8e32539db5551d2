"""The simulated prompt caches bill as their vendors say, and the cost of a conversation by them."""

import pytest
from benchmarks.cost import (
    OTHER_MODEL,
    PROMISE_CHARACTERS,
    SYSTEM,
    full_history,
    note_cost,
    paid,
    prices_of,
    with_memory,
)
from benchmarks.prompt_cache import AnthropicCache, Billed, OpenAICache, Piece

from remanence import Policy


def blocks(count: int, *, tokens: int = 100, marked: tuple[int, ...] = ()) -> list[Piece]:
    return [Piece(f"block {n}", tokens, n in marked) for n in range(count)]


@pytest.fixture
def cache() -> AnthropicCache:
    return AnthropicCache(lifetime_seconds=300, least_tokens=1_024)


def test_a_prompt_is_written_up_to_its_last_breakpoint_and_read_by_the_next(
    cache: AnthropicCache,
) -> None:
    assert cache.bill(blocks(14, marked=(2, 11)), at=0) == Billed(0, 1_200, 200)
    assert cache.bill(blocks(16, marked=(2, 15)), at=60) == Billed(1_200, 400, 0)


def test_a_use_renews_the_lifetime_and_idleness_ends_it(cache: AnthropicCache) -> None:
    prompt = blocks(12, marked=(11,))
    for at in (0, 290, 580):
        billed = cache.bill(prompt, at=at)

    assert billed == Billed(1_200, 0, 0)
    assert cache.bill(prompt, at=881) == Billed(0, 1_200, 0)


def test_a_changed_block_ends_what_is_read(cache: AnthropicCache) -> None:
    cache.bill(blocks(30, marked=(11, 29)), at=0)
    changed = blocks(30, marked=(11, 29))
    changed[20] = Piece("other", 100)

    assert cache.bill(changed, at=1) == Billed(1_200, 1_800, 0)


@pytest.mark.parametrize(("length", "read"), [(32, 1_200), (33, 0)])
def test_a_breakpoint_looks_back_over_twenty_blocks(
    cache: AnthropicCache, length: int, read: int
) -> None:
    cache.bill(blocks(12, marked=(11,)), at=0)

    assert cache.bill(blocks(length, marked=(length - 1,)), at=1).read == read


def test_a_short_prefix_is_not_cached(cache: AnthropicCache) -> None:
    prompt = blocks(10, marked=(9,))

    assert [cache.bill(prompt, at=at) for at in (0, 1)] == [Billed(0, 0, 1_000)] * 2


def test_openai_reads_the_longest_known_prefix_in_steps_of_128_tokens() -> None:
    cache = OpenAICache(lifetime_seconds=600)
    cache.bill(blocks(15), at=0)

    assert cache.bill(blocks(20), at=1) == Billed(1_408, 0, 592)
    assert cache.bill([Piece("new", 100), *blocks(20)], at=2) == Billed(0, 0, 2_100)
    assert cache.bill(blocks(20), at=700) == Billed(0, 0, 2_000)
    assert OpenAICache(lifetime_seconds=600).bill(blocks(5), at=0) == Billed(0, 0, 500)


@pytest.mark.timeout(120)
@pytest.mark.req("B-76", "B-77", "B-78")
async def test_what_brain_saves_grows_with_the_conversation_and_its_observer_is_rare() -> None:
    """Turns of 750 tokens, and 6,000 as trigger, as the document's own figures imply."""
    policy = Policy.brain(observe_tokens=6_000)
    run = await with_memory(policy, 80, "warm", PROMISE_CHARACTERS, SYSTEM)
    history = full_history(80, "warm", PROMISE_CHARACTERS, SYSTEM)
    price = prices_of(OTHER_MODEL).plain / 1e6
    before = [sum(piece.tokens for piece in prompt) * price for _, prompt in history]
    memory = paid(run.prompts, OTHER_MODEL)

    saved = {
        n: 1 - (memory.sum(n) + note_cost(run.calls, n)) / sum(before[:n]) for n in (20, 40, 80)
    }
    rests = [b.turn - a.turn for a, b in zip(run.calls, run.calls[1:], strict=False)]

    assert saved[20] < saved[40] < saved[80]
    assert saved[80] > 0.75
    assert 6 <= sum(rests) / len(rests) <= 10
