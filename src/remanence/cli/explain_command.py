"""`remanence explain`: how sentences of a transcript are selected for notes, and their scores."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from remanence.cli import output
from remanence.cli.options import AsJson, Ratio, TranscriptFile
from remanence.cli.transcripts import open_transcript
from remanence.facts.extractive import HOME_SCORE, home_margin
from remanence.facts.statements import statement_lines
from remanence.observers.extractive import Explanation, explain
from remanence.observers.learned.openings import FILE as OPENINGS, line_of
from remanence.observers.learned.score import Explanation as ScoreExplanation, Scorer, scorer
from remanence.observers.learned.statements import alone, statement_scorer
from remanence.observers.spoken import spoken_lines

STRONGEST = 5
_OTHERS = 3
"""Number of other scores shown per line, those furthest above their cutoffs."""


def run(
    *,
    file: TranscriptFile,
    score: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Show this learned score, such as worth, and its features."
        ),
    ] = None,
    ratio: Ratio = None,
    strongest: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="With --score: the number of features per sentence, by default 5.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show which sentences of a transcript become notes, and why."""
    scorers = {
        head: each
        for each in (scorer(), statement_scorer(), scorer(OPENINGS))
        for head in each.weights.heads
    }
    if score is None and strongest is not None:
        raise typer.BadParameter("--strongest is for a score: name one with --score")
    if score is not None and ratio is not None:
        raise typer.BadParameter("--ratio is for notes: leave it out, or leave out --score")
    if score is not None and score not in scorers:
        raise typer.BadParameter(
            f"--score: {score!r:.80} is not a score: choose one of {', '.join(scorers)}"
        )
    messages = [entry.message for entry in open_transcript(file).entries()]
    if score is None:
        _show_choice(explain(messages, ratio=ratio), as_json=as_json)
        return
    chosen, lines = scorers[score], list(spoken_lines(messages))
    if chosen is statement_scorer():
        lines = [alone(line) for line in statement_lines(messages)]
    elif chosen is scorer(OPENINGS):
        openings = (line for line in lines if line.role == "user" and line.opening is None)
        lines = [line_of(line.text) for line in openings]
    elif score == HOME_SCORE:
        lines = [alone(line) for line in lines if line.role == "user"]
    explanations = [
        chosen.explain(line, head=score, limit=strongest or STRONGEST) for line in lines
    ]
    cutoffs = [_cutoffs(chosen, one.line.text) for one in explanations]
    shown = zip(explanations, cutoffs, strict=True)
    if as_json:
        sentences = [_score_document(one, at[score]) for one, at in shown]
        output.write_json({"sentences": sentences})
    else:
        for one, at in shown:
            _print_score(one, score, at)


def _cutoffs(chosen: Scorer, text: str) -> Mapping[str, float]:
    """Return the scores from which something follows: a home must be sure."""
    cutoffs = dict(chosen.weights.cutoffs)
    if HOME_SCORE in cutoffs:
        cutoffs[HOME_SCORE] += home_margin(text)
    return cutoffs


def _show_choice(explanations: Sequence[Explanation], *, as_json: bool) -> None:
    if as_json:
        output.write_json({"sentences": [_document(one) for one in explanations]})
        return
    for one in explanations:
        mark = "*" if one.is_taken else " "
        output.line(f"{mark} {one.seq} {one.speaker}: {one.text}")
        weights = "".join(f" × {f.amount:.2f} {f.feature} ({f.weight:g})" for f in one.factors)
        first = ", first" if one.is_standing else ""
        output.line(f"  {one.score:.1f} = {one.value:.1f}{weights}{first}", style="dim")


def _document(one: Explanation) -> dict[str, object]:
    return {
        "seq": one.seq,
        "speaker": one.speaker,
        "text": one.text,
        "value": one.value,
        "factors": [factor._asdict() for factor in one.factors],
        "score": round(one.score, 2),
        "standing": one.is_standing,
        "taken": one.is_taken,
    }


def _score_document(explanation: ScoreExplanation, cutoff: float) -> dict[str, object]:
    return {
        "role": explanation.line.role,
        "text": explanation.line.text,
        "cutoff": cutoff,
        "scores": explanation.scores,
        "strongest": [part._asdict() for part in explanation.strongest],
        "others": explanation.others,
        "bias": explanation.bias,
    }


def _print_score(explanation: ScoreExplanation, head: str, cutoffs: Mapping[str, float]) -> None:
    scores = explanation.scores
    over = {name: score - cutoffs[name] for name, score in scores.items() if name != head}
    others = sorted((name for name in over if over[name] >= 0), key=lambda name: -over[name])
    labels = "".join(f", {name} {scores[name]:+.1f}" for name in others[:_OTHERS])
    output.line(f"{explanation.line.role}: {explanation.line.text}")
    shown = f"{head} {scores[head]:+.1f}, cutoff {cutoffs[head]:+.1f}"
    output.line(f"  {shown}{labels}", style="bold")
    features = ", ".join(f"[{name}] {amount:+.2f}" for name, amount in explanation.strongest)
    rest = f"others {explanation.others:+.2f}, bias {explanation.bias:+.2f}"
    output.line(f"  {', '.join(filter(None, (features, rest)))}", style="dim")
