"""Tables of figures of the learned scores, for `train_notes.py`.

`at` has the cutoff of each head, in the order of the columns of `truth` and `scores`.
"""

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score

Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]


def print_heads(
    title: str, known: Truths, truth: Truths, scores: Floats, at: dict[str, float]
) -> None:
    """A row per head: area under the curve, average precision, points of the curve, the cutoff."""
    print(f"\n{title}: {len(truth):,} sentences")
    print(f"{'head':9} {'n':>5}   AUC    AP  P at R=.5 .8   R at P=.9 .95   at cutoff P    R")
    for number, head in enumerate(at):
        rows = known[:, number]
        is_true, score = truth[rows, number], scores[rows, number]
        if not 0 < is_true.sum() < len(is_true):
            continue
        precision, recall, _ = precision_recall_curve(is_true, score)
        taken = score >= at[head]
        right = (taken & is_true).sum()
        print(
            f"{head:9} {is_true.sum():5}  {roc_auc_score(is_true, score):.3f} "
            f"{average_precision_score(is_true, score):.3f}"
            f"    {precision[recall >= 0.5].max():.2f}    {precision[recall >= 0.8].max():.2f}"
            f"   {recall[precision >= 0.9].max():.2f}    {recall[precision >= 0.95].max():.2f}"
            f"       {right / max(taken.sum(), 1):.2f} {right / is_true.sum():.2f}"
        )


def print_languages(
    languages: NDArray[np.str_], truth: Truths, scores: Floats, at: dict[str, float]
) -> None:
    """A row per language: area under the curve of four heads, precision and recall at cutoffs."""
    shown = ("worth", "personal", "dec", "quoted", "inst")
    print(f"{'':3}" + "".join(f" {head:>9} AUC    P    R" for head in shown))
    for language in sorted(set(languages)):
        here, cells = languages == language, []
        for head in shown:
            number = list(at).index(head)
            is_true, score = truth[here, number], scores[here, number]
            if not is_true.any():
                cells.append(" " * 24)
                continue
            taken = score >= at[head]
            right = (taken & is_true).sum()
            area = roc_auc_score(is_true, score)
            cells.append(
                f" {is_true.sum():9} {area:.2f} {right / max(taken.sum(), 1):.2f} {right / is_true.sum():.2f}"
            )
        print(f"{language:3}{''.join(cells)}")
