"""What the brain preset shows: five memories that match, and the headings of a model's notes."""

import re
from pathlib import Path

import pytest
from tests.requirements.samples import IN_MEMORY, system_text
from tests.requirements.test_brain_models import OBSERVER, REFLECTOR

from remanence import Memory, Message, Policy
from remanence.testing.models import ScriptedModel

PRESETS_PAGE = Path(__file__).parents[2] / "docs" / "howto" / "presets.md"
LONG = (
    " and feeds them sugar syrup in autumn, checks the frames each second Sunday with her "
    "neighbour, and sells the honey at the market of the old harbour before Christmas, where she "
    "has shared a stall with her sister since the spring of the year in which they moved"
)


@pytest.mark.req("B-21", "B-74", "B-78")
@pytest.mark.parametrize("rest", ["", LONG * 2], ids=["short", "long"])
@pytest.mark.parametrize(("kept", "shown"), [(4, 4), (5, 5), (9, 5)])
async def test_five_facts_that_match_are_shown_where_there_are_five(
    kept: int, shown: int, rest: str
) -> None:
    async with Memory.open(IN_MEMORY, policy=Policy.brain()) as memory:
        for number in range(kept):
            await memory.facts.save(f"Ana keeps bees in garden {number}{rest}", user="ana")
        chat = memory.conversation("a", user="ana")
        await chat.append(Message.user("How are my bees?"))
        context = await chat.context(system="You help.")

    lines = re.findall(r"^- \[\w+\] Ana keeps bees in garden \d", context.volatile, re.MULTILINE)
    assert len(set(lines)) == shown
    assert context.volatile.count(f"{rest} (id: ") == shown
    assert "bees" not in "".join(block.text for block in context.system)


@pytest.mark.req("B-20", "B-44", "B-58")
@pytest.mark.parametrize(("budget", "last"), [(10_000, "room nine is free"), (45, "has room nine")])
async def test_the_headings_of_a_models_notes_and_reflections_stand_in_the_prompt(
    budget: int, last: str
) -> None:
    notes = (
        "## harbour tour\n#1 [Decision] user: leaves at noon\n#2 [Fact] assistant: seats are kept\n"
        "## hotel\n#3 [Preference] user: a quiet room\n#4 [Fact] assistant: room nine is free"
    )
    condensed = (
        "## harbour tour\n#1 [Decision] user: leaves at noon\n"
        "## hotel\n#3 [Preference] user: a quiet room\n#4 [Fact] assistant: has room nine"
    )
    policy = Policy.brain(observe_tokens=300, tail_tokens=900, reflect_tokens=(budget,))
    async with Memory.open(
        IN_MEMORY,
        policy=policy,
        observer=ScriptedModel([notes]),
        reflector=ScriptedModel([condensed]),
    ) as memory:
        chat = memory.conversation("a")
        for word in ("today", "again"):
            text = f"{word}, with all that the old harbour offers to those who come by train" * 5
            await chat.append(Message.user(text), Message.assistant(text))
        await chat.flush()
        shown = system_text((await chat.context()).to_anthropic())

    pieces = ("[Decision]", "harbour tour: leaves at noon", "hotel: a quiet room", f"hotel: {last}")
    places = [shown.index(piece) for piece in pieces]
    assert places == sorted(places)


@pytest.mark.req("B-36", "B-51")
def test_the_page_on_presets_names_the_settings_of_both_models() -> None:
    page = PRESETS_PAGE.read_text(encoding="utf-8")

    assert f'`observer_model="anthropic:{OBSERVER}"`' in page
    assert f'`reflector_model="anthropic:{REFLECTOR}"`' in page
