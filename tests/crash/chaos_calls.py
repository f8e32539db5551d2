"""Calls of models by what came of them, from the events of workers and of those who disturb them."""

from collections import Counter
from collections.abc import Iterable


def outcomes(events: Iterable[str]) -> Counter[str]:
    """Count calls, their answers and failures, and those that a kill cut short.

    Answers may be discarded after a stop of the process that asked, or without one. A call beside
    another is one for a conversation for which a process that was not stopped made one already.
    """
    counts: Counter[str] = Counter()
    running: set[tuple[str, str]] = set()
    began: dict[tuple[str, str], int] = {}
    last_signal: dict[str, int] = {}
    stopped: set[str] = set()
    for number, line in enumerate(events):
        event, process, *conversation = line.split()
        call = process, "".join(conversation)
        match event:
            case "call":
                others = {other for other, about in running if about == call[1]} - {process}
                counts["calls"] += 1
                counts["beside another"] += bool(others - stopped)
                running.add(call)
                began[call] = number
            case "answer" | "failure":
                counts[f"{event}s"] += 1
                running.discard(call)
            case "discard":
                was_stopped = last_signal.get(process, 0) > began[call]
                counts[f"discarded {'after a' if was_stopped else 'without a'} stop"] += 1
            case "SIGKILL":
                mine = {each for each in running if each[0] == process}
                counts["cut short"] += len(mine)
                running -= mine
            case "SIGSTOP":
                last_signal[process] = number
                stopped.add(process)
            case "SIGCONT":
                last_signal[process] = number
                stopped.discard(process)
    return counts
