"""
The command line of a benchmark beside another server: which workloads, how often, and what is printed and written.
"""

import argparse
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from bench.calibration import calibrate
from bench.kafka.rounds import NotMeasurable, Plan, progress
from bench.kafka.table import Compared
from bench.recording import add_results
from bench.results import Result, Results, comparison

_SHORT_SHARE = 0.05

Comparison = Callable[[], Sequence[Compared]]


def parser(package: str, description: str, measured: Sequence[str], usual: Plan) -> argparse.ArgumentParser:
    """
    The options that all benchmarks share.
    """
    made = argparse.ArgumentParser(prog=f"python -m {package}", description=description)
    made.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"what to measure, of {', '.join(measured)}")
    made.add_argument("--rounds", type=int, help=f"how many are counted; {usual.rounds} unless told otherwise")
    made.add_argument("--warm-ups", type=int, help=f"how many are not, before them; {usual.warm_ups}")
    made.add_argument("--short", action="store_true", help="one round without a warm-up, and a twentieth of the work")
    add_results(made)
    made.set_defaults(usual=usual, measured=measured)
    return made


def asked(arguments: Sequence[str], parser: argparse.ArgumentParser) -> tuple[argparse.Namespace, Plan]:
    """
    What was chosen, with all workloads where none is named, and how much is done of each.
    """
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.workloads) - set(chosen.measured):
        parser.error(f"there is no {', '.join(sorted(unknown))}: it is one of {', '.join(chosen.measured)}")
    chosen.workloads = chosen.workloads or chosen.measured
    usual = Plan(rounds=1, warm_ups=0, share=_SHORT_SHARE) if chosen.short else chosen.usual
    rounds = usual.rounds if chosen.rounds is None else chosen.rounds
    warm_ups = usual.warm_ups if chosen.warm_ups is None else chosen.warm_ups
    if rounds < 1 or warm_ups < 0:
        parser.error("there must be a round, and no fewer than no warm-ups")
    return chosen, Plan(rounds, warm_ups, usual.share)


def measure_all(
    chosen: argparse.Namespace,
    workload: Callable[[str], tuple[str, Comparison]],
    results: Results,
    folder: Path | None = None,
) -> int:
    """
    Print the title and the table of each workload, and write the results; the exit code. If one fails, the others still
    run. `folder` is where the servers keep their data.
    """
    print(f"Measured {results.origin}", flush=True)
    if chosen.short:
        print("A trial of whether all of it works: what it measures means nothing.", flush=True)
    done = [_measure(*workload(name), results) for name in chosen.workloads]
    results = replace(results, short=chosen.short, origin=replace(results.origin, after=calibrate(folder)))
    print(f"\n{results.origin.calibration_told}")
    if chosen.results:
        results.write(chosen.results)
    return 0 if all(done) else 1


def _measure(title: str, compare: Comparison, results: Results) -> bool:
    print(f"\n{title}\n", flush=True)
    try:
        rows = list(map(Result.of, compare()))
        print(comparison(rows, results.other), flush=True)
        results.rows.extend(rows)
    except NotMeasurable as why:
        print(f"Not measured: {why}", flush=True)
    except Exception as failure:
        progress(traceback.format_exc())
        print(f"Failed: {failure!r}", flush=True)
        return False
    return True
