"""`remanence explain`: scores of the sentences of a transcript, and the features that made them."""

from typing import Annotated

import typer

from remanence.cli.options import AsJson, TranscriptFile
from remanence.cli.output import Printer, warn, write_json
from remanence.cli.transcripts import open_transcript
from remanence.observers.learned.score import Explanation, scorer
from remanence.observers.spoken import lines_of

WRONG_USE = 2
_OTHERS = 3
"""Further scores that a line shows, the highest above their cutoffs."""


def run(
    *,
    file: TranscriptFile,
    score: Annotated[
        str, typer.Option(metavar="NAME", help="The score whose features are shown.")
    ] = "worth",
    strongest: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many features a sentence shows.")
    ] = 5,
    as_json: AsJson = False,
) -> int:
    """Score the sentences of a transcript, and show the features behind a score."""
    heads = scorer().weights.heads
    if score not in heads:
        warn(f"--score: {score!r} is not a score: choose one of {', '.join(heads)}")
        return WRONG_USE
    lines = [line for entry in open_transcript(file).entries() for line in lines_of(entry.message)]
    explanations = scorer().explain(lines, head=score, limit=strongest)
    if as_json:
        write_json({"sentences": [document(one) for one in explanations]})
    else:
        for one in explanations:
            _print(Printer(), one, score)
    return 0


def document(explanation: Explanation) -> dict[str, object]:
    """An explanation as JSON."""
    return {
        "role": explanation.line.role,
        "text": explanation.line.text,
        "scores": explanation.scores,
        "strongest": [part._asdict() for part in explanation.strongest],
    }


def _print(printer: Printer, explanation: Explanation, head: str) -> None:
    scores, cutoffs = explanation.scores, scorer().weights.cutoffs
    over = {name: score - cutoffs[name] for name, score in scores.items() if name != head}
    others = sorted((name for name in over if over[name] >= 0), key=lambda name: -over[name])
    labels = "".join(f", {name} {scores[name]:+.1f}" for name in others[:_OTHERS])
    printer.line(f"{explanation.line.role}: {explanation.line.text}")
    printer.line(f"  {head} {scores[head]:+.1f}{labels}", style="bold")
    features = ", ".join(f"[{name}] {amount:+.2f}" for name, amount in explanation.strongest)
    printer.line(f"  {features}", style="dim")
