"""Put small faults into the core, one at a time, and count those that its tests notice.

A first run of the tests of a package notes which of its lines each test executes. Every mutant then
runs in a process of its own, forked from one that has collected the tests: the code of its function
is exchanged in place and the tests of the changed lines run, until one fails. A change outside of
functions takes effect when a module is imported: those processes are forked before that.
"""

import argparse
import dataclasses
import functools
import gc
import importlib
import importlib.machinery
import importlib.util
import json
import os
import pickle
import random
import sys
import time
import tomllib
import types
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import coverage
import pytest
from tools.mutants import Mutant, lines_with_code, mutants

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "remanence"
CONFIG = ROOT / "tools" / "mutate.toml"
PRELOADED = ("hypothesis", "fastapi", "rich.table", "typer", "numpy", "apsw", "genai_prices")
OPTIONS = (
    *("-q", "--no-header", "-p", "no:xdist", "-p", "no:cacheprovider"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
)
KILLED, SURVIVED, UNREACHED, HUNG = "killed", "survived", "not reached", "hung"
START_SECONDS = 15.0
HANG_FACTOR = 10.0

_T = TypeVar("_T")


class Baseline(NamedTuple):
    """Seconds of each test, and for each file of the core the tests that execute a line."""

    seconds: dict[str, float]
    tests: dict[str, dict[int, list[str]]]
    failed: list[str]


class Result(NamedTuple):
    """What became of a mutant, and the test that noticed it."""

    mutant: Mutant
    outcome: str
    test: str


class Package(NamedTuple):
    """Files of the core, and the tests whose task it is to notice faults in them."""

    files: tuple[Path, ...]
    tests: tuple[str, ...]


def main(arguments: list[str]) -> int:
    """0 if enough of the mutants of every package were noticed."""
    os.chdir(ROOT)
    config = tomllib.loads(CONFIG.read_text(encoding="utf-8"))
    packages = {name: _package(table) for name, table in config["packages"].items()}
    options = _options(arguments, packages)
    for name in PRELOADED:
        importlib.import_module(name)
    rows: list[list[object]] = []
    enough = True
    for name in options.packages:
        results = _package_results(packages[name], options)
        score = Counter(result.outcome for result in results)
        noticed = score[KILLED] + score[HUNG]
        share = noticed / max(1, score.total())
        enough &= share >= options.least
        count = f"{noticed} of {score.total()} noticed, {score[HUNG]} by hanging"
        print(f"{name}: {count}, {share:.1%}", flush=True)
        for mutant, outcome, _ in results:
            if outcome in (SURVIVED, UNREACHED):
                reason = config["survivors"].get(mutant.key, "no reason is known")
                place = f"{mutant.file}:{mutant.first_line}"
                print(f"{place}: {outcome}: {mutant.key} ({reason})", flush=True)
                rows.append([*mutant.place, mutant.key, outcome])
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=0), encoding="utf-8")
    return 0 if enough else 1


def _options(arguments: list[str], packages: Iterable[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutate", description=__doc__)
    parser.add_argument("packages", nargs="*", default=list(packages), help="all by default")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=6.0, help="of tests for a mutant, at most")
    parser.add_argument("--least", type=float, default=0.85, help="share that has to be noticed")
    parser.add_argument("--json", default="", help="a file for the mutants that nothing noticed")
    parser.add_argument("--sample", type=int, default=0, help="mutants of each file; 0 for all")
    parser.add_argument("--only", default="", help="mutants of files with this in their name")
    return parser.parse_args(arguments)


def _package(table: Mapping[str, Sequence[str]]) -> Package:
    files = sorted({file for pattern in table["files"] for file in SOURCE.glob(pattern)})
    return Package(tuple(file.relative_to(ROOT) for file in files), tuple(table["tests"]))


def _package_results(package: Package, options: argparse.Namespace) -> list[Result]:
    files = [file for file in package.files if options.only in file.as_posix()]
    baseline = _in_fork(lambda: _measured(package.tests, files))
    if baseline.failed:
        print(f"left out, as they fail without any fault: {baseline.failed}", flush=True)
    found = [mutant for file in files for mutant in _sampled(mutants(file), options.sample)]
    choice = _Choice(baseline, options.seconds)
    inside = [mutant for mutant in found if mutant.in_function]
    outside = [mutant for mutant in found if not mutant.in_function]
    return [
        *_in_fork(lambda: _run_collected(package, inside, choice, options.workers)),
        *_pooled(outside, choice, options.workers, _run_imported),
    ]


def _sampled(found: Iterator[Mutant], count: int) -> list[Mutant]:
    """So many of them, the same in each run; all if *count* is 0."""
    every = list(found)
    return random.Random(7).sample(every, count) if 0 < count < len(every) else every


# Which test executes which line


class _Measuring:
    """A pytest plugin: the coverage and time of each test."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.coverage = coverage.Coverage(
            data_file=None, config_file=False, include=[str(ROOT / file) for file in files]
        )
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        began = time.monotonic()
        yield
        self.seconds[item.nodeid] = time.monotonic() - began

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def _measured(tests: Sequence[str], files: Sequence[Path]) -> Baseline:
    plugin = _Measuring(files)
    plugin.coverage.start()
    pytest.main([*OPTIONS, *tests], plugins=[plugin])
    plugin.coverage.stop()
    data = plugin.coverage.get_data()
    usable = set(plugin.seconds) - set(plugin.failed)
    executed = {
        file.as_posix(): {
            line: sorted(usable.intersection(names))
            for line, names in data.contexts_by_lineno(str(ROOT / file)).items()
        }
        for file in files
    }
    return Baseline({name: plugin.seconds[name] for name in usable}, executed, plugin.failed)


class _Choice:
    """Tests for a mutant: those that noticed others nearby first, then quick and narrow ones."""

    def __init__(self, baseline: Baseline, most_seconds: float) -> None:
        self._baseline = baseline
        self._most_seconds = most_seconds
        self._breadth = Counter(
            test for lines in baseline.tests.values() for tests in lines.values() for test in tests
        )
        self._noticed: defaultdict[Path, Counter[str]] = defaultdict(Counter)
        self._executable: dict[Path, set[int]] = {}

    def learn(self, result: Result) -> None:
        if result.test:
            self._noticed[result.mutant.file][result.test] += 1

    def tests(self, mutant: Mutant) -> list[str]:
        lines = self._baseline.tests[mutant.file.as_posix()]
        reached = self._changed(mutant) if mutant.in_function else lines
        seconds, noticed = self._baseline.seconds, self._noticed[mutant.file]
        ordered = sorted(
            {test for line in reached for test in lines.get(line, ())},
            key=lambda test: (-noticed[test], self._breadth[test] * seconds[test], test),
        )
        chosen: list[str] = []
        left = self._most_seconds
        for test in ordered:
            left -= seconds[test]
            if left < 0 and chosen:
                break
            chosen.append(test)
        return chosen

    def _changed(self, mutant: Mutant) -> range:
        """The changed lines; where none of them is ever executed, those of their statement."""
        changed = range(mutant.first_line, mutant.last_line + 1)
        if mutant.file not in self._executable:
            code = compile(mutant.source, mutant.file, "exec", dont_inherit=True)
            self._executable[mutant.file] = lines_with_code(code)
        return mutant.statement if self._executable[mutant.file].isdisjoint(changed) else changed

    def seconds(self, tests: Sequence[str]) -> float:
        return sum(self._baseline.seconds[test] for test in tests)


# Running mutants


class _Collected(NamedTuple):
    """What a process that has collected the tests gives to its forks."""

    items: Mapping[str, pytest.Item]
    config: pytest.Config
    functions: Sequence[types.FunctionType]
    caches: Sequence["functools._lru_cache_wrapper[object]"]


def _run_collected(
    package: Package, found: Sequence[Mutant], choice: _Choice, workers: int
) -> list[Result]:
    """Run changed functions in forks of a process that has collected the tests."""
    results: list[Result] = []
    names = {str(file.resolve()) for file in package.files}

    class Loop:
        @pytest.hookimpl(tryfirst=True)
        def pytest_runtestloop(self, session: pytest.Session) -> bool:
            gc.unfreeze()  # objects that the tests' own hook has frozen are not listed
            objects = gc.get_objects()
            collected = _Collected(
                items={item.nodeid: item for item in session.items},
                config=session.config,
                functions=[
                    found
                    for found in objects
                    if isinstance(found, types.FunctionType) and found.__code__.co_filename in names
                ],
                caches=[o for o in objects if isinstance(o, functools._lru_cache_wrapper)],
            )
            del objects
            gc.freeze()
            assert collected.functions, "a change would reach nothing that the tests call"
            run = functools.partial(_run_in_place, collected=collected)
            results.extend(_pooled(found, choice, workers, run))
            return True

    pytest.main([*OPTIONS, *package.tests], plugins=[Loop()])
    return results


def _pooled(
    found: Sequence[Mutant],
    choice: _Choice,
    workers: int,
    run: Callable[[Mutant, list[str], int], None],
) -> Iterator[Result]:
    """Run each mutant in a fork of this process, so many at once.

    One that hangs is noticed if its tests end without the change.
    """
    waiting: list[tuple[Mutant, list[str] | None]] = [(mutant, None) for mutant in reversed(found)]
    running: dict[int, _Running] = {}
    while waiting or running:
        while waiting and len(running) < workers:
            mutant, chosen = waiting.pop()
            tests = chosen or choice.tests(mutant)
            if not tests:
                yield Result(mutant, UNREACHED, "")
                continue
            reading, writing = os.pipe()
            process = os.fork()
            if not process:
                _run_child(functools.partial(run, mutant, tests, writing))
            os.close(writing)
            limit = time.monotonic() + START_SECONDS + HANG_FACTOR * choice.seconds(tests)
            running[process] = _Running(mutant, tests, reading, limit)
        for result, tests in _ended(running):
            mutant, outcome, _ = result
            if not mutant.is_made:
                yield Result(mutant, HUNG if outcome == SURVIVED else SURVIVED, "")
            elif outcome == HUNG:
                waiting.append((dataclasses.replace(mutant, is_made=False), tests))
            else:
                choice.learn(result)
                yield result
        time.sleep(0.005)


class _Running(NamedTuple):
    """A mutant in a process of its own: its tests, its pipe, and when it counts as hanging."""

    mutant: Mutant
    tests: list[str]
    reading: int
    limit: float


def _ended(running: dict[int, _Running]) -> Iterator[tuple[Result, list[str]]]:
    for process, (mutant, tests, reading, limit) in list(running.items()):
        ended, status = os.waitpid(process, os.WNOHANG)
        if not ended and time.monotonic() < limit:
            continue
        if not ended:
            os.kill(process, 9)
            os.waitpid(process, 0)
        del running[process]
        with os.fdopen(reading, encoding="utf-8") as pipe:
            test = pipe.read()
        outcome = HUNG if not ended else KILLED if status else SURVIVED
        yield Result(mutant, outcome, test), tests


def _run_child(work: Callable[[], None]) -> None:
    """Do the work in a forked process and end it: 0 if no test failed."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    code = 3
    try:
        work()
        code = 0
    finally:
        os._exit(code)


class _Failing:
    """A pytest plugin: names the first test that fails and ends the process."""

    def __init__(self, writing: int) -> None:
        self._writing = writing

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            os.write(self._writing, report.nodeid.encode())
            os._exit(1)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            os._exit(2)


def _run_in_place(
    mutant: Mutant,
    tests: list[str],
    writing: int,
    *,
    collected: _Collected,
) -> None:
    """Exchange the code of the changed function and run the tests."""
    name = str(mutant.file.resolve())
    before = compile(mutant.source, name, "exec", dont_inherit=True)
    after = compile(mutant.tree(), name, "exec", dont_inherit=True)
    exchanged = dict(_changed_functions(before, after))
    gc.disable()  # it would touch, and so copy, all memory that is shared with the parent
    for function in collected.functions:
        if function.__code__ in exchanged:
            function.__code__ = exchanged[function.__code__]
    for cache in collected.caches:
        cache.cache_clear()  # what the old code computed
    collected.config.pluginmanager.register(_Failing(writing))
    chosen = [collected.items[test] for test in tests]
    for item, following in zip(chosen, [*chosen[1:], None], strict=True):
        collected.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def _changed_functions(
    before: types.CodeType, after: types.CodeType
) -> Iterator[tuple[types.CodeType, types.CodeType]]:
    """The outermost functions that differ."""
    for old, new in zip(before.co_consts, after.co_consts, strict=False):
        if isinstance(old, types.CodeType) and isinstance(new, types.CodeType) and old != new:
            if old.co_flags & 0x2:  # local variables are slots: a function, not a class
                yield old, new
            else:
                yield from _changed_functions(old, new)


def _run_imported(mutant: Mutant, tests: list[str], writing: int) -> None:
    """Run the tests in a process that imports the changed module."""
    sys.meta_path.insert(0, _Changed(mutant))
    code = pytest.main([*OPTIONS, *tests], plugins=[_Failing(writing)])
    if code != pytest.ExitCode.OK:
        os._exit(2)


class _Changed(importlib.machinery.SourceFileLoader):
    """Finds and loads one module, changed."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant
        module = mutant.file.with_suffix("").relative_to("src")
        super().__init__(".".join(module.parts), str(mutant.file.resolve()))

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self.path, loader=self)

    def get_code(self, _: str) -> types.CodeType:
        return compile(self._mutant.tree(), self.path, "exec", dont_inherit=True)


def _in_fork(work: Callable[[], _T]) -> _T:
    """The result of work in a process of its own, which leaves no module behind."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        os.close(reading)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(work(), pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    os.waitpid(process, 0)
    result: _T = pickle.loads(data)
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
