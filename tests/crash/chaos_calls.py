"""Calls of models by what came of them, from the events of workers and of those who disturb them."""

from collections import Counter
from collections.abc import Iterable


def outcomes(events: Iterable[str]) -> Counter[str]:
    """Count calls, their answers and failures, those that a kill cut short, and discarded answers.

    A call *beside another* is begun while another process makes one for the same conversation, and
    was not stopped since: a lease should have prevented it.
    """
    counts: Counter[str] = Counter()
    running: dict[tuple[str, str], int] = {}
    last_signal: dict[str, int] = {}
    for number, line in enumerate(events):
        event, process, *conversation = line.split()
        call = process, "".join(conversation)
        match event:
            case "call":
                counts["calls"] += 1
                counts["beside another"] += any(
                    about == call[1] and other != process and began > last_signal.get(other, -1)
                    for (other, about), began in running.items()
                )
                running[call] = number
            case "answer" | "failure":
                counts[f"{event}s"] += 1
                running.pop(call, None)
            case "discard":
                counts["discarded"] += 1
            case "SIGKILL":
                mine = [each for each in running if each[0] == process]
                counts["cut short"] += len(mine)
                running = {each: began for each, began in running.items() if each not in mine}
            case _:
                last_signal[process] = number
    return counts
