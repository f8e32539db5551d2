"""Each score reads the features that its weights were fitted to.

`tests/golden/scores.tsv` has the checksum of each file of weights, and that of the scores of a few
texts. If only the second changes, the features changed, and the weights mean nothing for them.
`UPDATE_GOLDEN=1` takes the scores of weights that were fitted again over.
"""

import os
from collections.abc import Callable
from importlib import resources
from itertools import pairwise
from pathlib import Path
from zlib import crc32

from remanence.observers.learned import (
    answers,
    fact,
    fact_pairs,
    forgetting,
    openings,
    pairs,
    revisions,
    statements,
    topics,
    weights,
)
from remanence.observers.learned.features import Line
from remanence.observers.learned.openings import line_of
from remanence.observers.learned.score import MoreFeatures, no_more, scorer

GOLDEN = Path(__file__).parents[1] / "golden" / "scores.tsv"
TEXTS = (
    "I moved from Lisbon to Porto in January, and I'm not going back.",
    "We moved to Porto, not to Lisbon.",
    "How long do you keep what I told you about my sister's flat?",
    "Forget where we parked, please: it was 3 days ago!",
    "Ab jetzt bitte nur noch auf Deutsch antworten.",
    "Nein, der Zug fährt nicht mehr um 9:15, sondern um 10:40.",
    "Olvida mi dirección antigua, por favor.",
    "Mi hermana trabaja en el hospital desde 2019.",
    "Traduis : « Je n'ai jamais aimé le café. »",
    "Je ne mange plus de viande depuis l'été.",
    "Non ho la macchina, ma ho due biciclette.",
    "Ik woon niet meer in Gent.",
    "Já não trabalho no banco.",
    "Nie jem orzechów, bo mam alergię.",
    "Я больше не живу в Казани.",
    "Artık İzmir'de oturmuyorum.",
    "أنا لا أشرب القهوة بعد الظهر.",
    "मैं अब दिल्ली में नहीं रहता।",
    "我对花生过敏,上个月搬到了杭州。",
    "来月から大阪で働きます。",
    "저는 매운 음식을 못 먹어요.",
    "Tôi không còn ở Huế nữa.",
    "deploy.sh: port 8080 -> 9090, timeout=30s",
)


def _of_lines(file: str, more: MoreFeatures = no_more) -> list[dict[str, float]]:
    lines = [Line(text, "user") for text in TEXTS]
    answers = [
        Line(one, "user", reply_to=Line(other, "assistant")) for one, other in pairwise(TEXTS)
    ]
    return [scorer(file, more).score(line) for line in (*lines, *answers)]


def _of_pairs(score: Callable[[str, str], float]) -> list[float]:
    return [round(score(one, other), 3) for one, other in pairwise(TEXTS)]


def _of_revisions() -> list[float]:
    features = [revisions.revision_features(one, "OK?", other) for one, other in pairwise(TEXTS)]
    return [round(pairs.score_of_groups(groups, revisions.FILE), 3) for groups in features]


SCORES: dict[str, Callable[[], object]] = {
    weights.FILE: lambda: _of_lines(weights.FILE),
    answers.FILE: lambda: _of_lines(answers.FILE),
    fact.FILE: lambda: _of_lines(fact.FILE),
    forgetting.ASKING: lambda: [
        round(scorer(forgetting.ASKING).share_of(word, forgetting.ASKS), 3)
        for text in TEXTS
        for word in text.lower().split()
    ],
    forgetting.FILE: lambda: _of_lines(forgetting.FILE, forgetting.with_negations),
    statements.FILE: lambda: _of_lines(statements.FILE, statements.surroundings),
    openings.FILE: lambda: [scorer(openings.FILE).score(line_of(text)) for text in TEXTS],
    pairs.FILE: lambda: _of_pairs(pairs.score_of_end),
    fact_pairs.FILE: lambda: _of_pairs(fact_pairs.score_of_facts),
    revisions.FILE: _of_revisions,
    topics.FILE: lambda: _of_pairs(topics.common_topic),
}


def _checksums(file: str) -> tuple[str, str]:
    """Checksums of the weights and of their scores."""
    fitted = (resources.files(weights.__package__) / file).read_bytes()
    return f"{crc32(fitted):08x}", f"{crc32(repr(SCORES[file]()).encode()):08x}"


def test_every_file_of_weights_is_looked_at() -> None:
    files = {file.name for file in resources.files(weights.__package__).iterdir()}

    assert SCORES.keys() == {name for name in files if name.endswith(".bin")}


def test_scores_read_the_features_that_their_weights_were_fitted_to() -> None:
    found = {file: _checksums(file) for file in sorted(SCORES)}
    rows = [row.split("\t") for row in GOLDEN.read_text("utf-8").splitlines()]
    fitted = {file: (of_weights, of_scores) for file, of_weights, of_scores in rows}
    stale = [
        file
        for file, (of_weights, of_scores) in fitted.items()
        if found[file][0] == of_weights and found[file][1] != of_scores
    ]

    assert not stale, "their features changed: fit them again, or undo the change"
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(
            "".join("\t".join((file, *found[file])) + "\n" for file in found), "utf-8"
        )
    else:
        assert found == fitted, "fitted again: set UPDATE_GOLDEN=1 to take their scores over"
