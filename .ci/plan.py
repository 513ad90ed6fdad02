"""
Runs tox's named environments after the default suite, in at most an hour.

First the environments that the change touches, then a fifth of all, by the day, so that each runs at least every fifth
day; then what there is time for. An environment is begun only when it is expected to end in time, and when today's
fifth still fits behind it. Nothing is known but the clone: the change is what is not on `origin/main`, or, in a clone
of main itself, all commits of the last hours before the newest.

    python .ci/plan.py MINUTE [all]     MINUTE: of the hour that are gone; all: everything, however long it takes
    python .ci/plan.py 8 show           what would run now, and what would be left out
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LAST_MINUTE = 57  # what is expected to end later is not begun; three are for what takes longer than expected
DAYS = 5  # a rotation
HOURS = 6  # of commits that make one change


class Row(NamedTuple):
    """Environments that run together."""

    tox: str
    minutes: int  # with the settings that `.ci/run` exports, installation included, on a slow machine with two cores
    day: int  # of the rotation
    paths: tuple[str, ...]  # beginnings of the paths that touch it


_CODEC = ("kgateway/messages/", "kgateway/records/", "kgateway/wire/")
_REQUESTS = (*_CODEC, "handlers/", "kgateway/conversion/", "kgateway/fetch/", "kgateway/produce/", "kgateway/server/")
_LOG = ("kgateway/broker/log/", "kgateway/broker/partition/", "tests/broker/log/")
_GROUPS = ("kgateway/coordination/", "kgateway/groups/", "tests/clients/groups/")
_TRANSACTIONS = ("kgateway/coordination/", "kgateway/transactions/")
_SEAWEEDMQ = ("kgateway/broker/seaweed/", "kgateway/broker/seaweedmq/", "tests/broker/seaweed")
_SPARK = ("kgateway/client/", "kgateway/spark/", "pyspark_kgateway/")
_SHORT = "--short produce_batches consume latency start memory commits compaction transactions committed"

TABLE = (
    Row(
        "-e release,plugin",
        7,
        0,
        (
            ".dockerignore",
            "MANIFEST.in",
            "README.md",
            "docs/seaweedmq.md",
            "docs/tutorial.md",
            "examples/",
            "kgateway/cli/",
            "kgateway/testing/",
            "packaging/",
            "setup.cfg",
            "tests/packaging/",
            "twisted/",
        ),
    ),
    Row(
        "-e docs",
        1,
        0,
        (
            "CHANGELOG.md",
            "CONTRIBUTING.md",
            "README.md",
            "SECURITY.md",
            "docs/",
            "kgateway/api.py",
            "kgateway/context.py",
            "kgateway/embedded.py",
            "kgateway/interfaces.py",
            "kgateway/security/permissions.py",
            "kgateway/server/gateway.py",
            "kgateway/testing/",
            "kgateway/wire/errors.py",
            "setup.cfg",
        ),
    ),
    Row("-e spark", 17, 0, (*_SPARK, "tests/spark/")),
    Row("-e connect", 3, 0, (*_TRANSACTIONS, "tests/clients/connect/")),
    Row("-e atheris -- -max_total_time=60", 2, 0, (*_CODEC, "tests/fuzz/")),
    Row("-e kafka", 3, 1, (*_CODEC, "kgateway/conversion/", "tests/kafka/")),
    Row("-e seaweedmq-sql", 3, 1, (*_SEAWEEDMQ, "tests/clients/weed_sql/")),
    Row("-e crash", 6, 1, (*_LOG, "tests/faults/")),
    Row("-e transactions", 4, 1, (*_TRANSACTIONS, "tests/clients/transactions/")),
    Row("-e seaweedmq-clients", 7, 1, (*_SEAWEEDMQ, "tests/clients/")),
    Row("-e py312", 6, 1, ("setup.cfg",)),
    Row("-e hostile", 3, 2, (*_REQUESTS, "kgateway/tcp.py", "tests/faults/")),
    Row(
        "-e admin",
        5,
        4,
        ("handlers/", "kgateway/admin/", "kgateway/cluster/", "kgateway/config/", "tests/clients/admin/"),
    ),
    Row("-e seaweedmq", 18, 2, (*_SEAWEEDMQ, "tests/faults/seaweedmq/")),
    Row("-e compiled", 14, 2, (*_REQUESTS, "kgateway/compilation.py", "pyproject.toml", "setup.py")),
    Row("-e bench-seaweedmq -- --short", 4, 2, (*_SEAWEEDMQ, "bench/seaweedmq/")),
    Row("-e py313", 6, 0, ("setup.cfg",)),
    # Two at a time, but for those that use apt-get or Maven at the same time as another.
    Row(
        "run-parallel -p 2 -e confluent,java,kafkapython,go,aiokafka,node",
        7,
        3,
        (*_REQUESTS, *_GROUPS, "tests/clients/"),
    ),
    Row("-e groups", 5, 3, _GROUPS),
    Row("-e streams", 3, 3, (*_TRANSACTIONS, "tests/clients/streams/")),
    Row("-e spark-own", 7, 3, (*_SPARK, "tests/spark_own/")),
    Row(
        "-e compiled-long",
        17,
        3,
        ("kgateway/compilation.py", "kgateway/wire/native_functions.py", "pyproject.toml", "setup.py"),
    ),
    Row("-e bench-spark -- --records 100=50000 --records 1000=20000", 5, 3, (*_SPARK, "bench/spark")),
    Row("-e kcat,old,tshark,shells", 5, 4, (*_REQUESTS, "kgateway/cli/", "tests/clients/")),
    Row("-e power", 4, 4, _LOG),
    Row("-e spark-kills", 5, 4, ("kgateway/spark/", "tests/spark/kills/")),
    Row("-e deep", 5, 4, (*_CODEC, "tests/records/", "tests/wire/")),
    Row(f"-e bench-kafka -- {_SHORT}", 5, 4, (*_REQUESTS, "bench/")),
    Row("-e bench", 3, 4, (*_REQUESTS, "bench/")),
)


def ordered(day: int, changed: Iterable[str]) -> list[Row]:
    """
    Put the rows that the change touches first, and those whose day is near before the others.
    """
    paths = list(changed)
    return sorted(
        TABLE, key=lambda row: (not any(path.startswith(row.paths) for path in paths), (row.day - day) % DAYS)
    )


class Outcome(NamedTuple):
    """What became of the rows."""

    passed: list[Row]
    failed: list[Row]
    left_out: list[Row]


def carry_out(
    rows: list[Row], day: int, limit: float, minute: Callable[[], float], passes: Callable[[Row], bool]
) -> Outcome:
    """
    Run the rows that end before the limit. A row of another day leaves the time that those of today need.
    """
    outcome = Outcome([], [], [])
    owed = sum(row.minutes for row in rows if row.day == day % DAYS)
    for row in rows:
        if row.day == day % DAYS:
            owed -= row.minutes
            end = minute() + row.minutes
        else:
            end = minute() + row.minutes + owed
        if end > limit:
            outcome.left_out.append(row)
        else:
            (outcome.passed if passes(row) else outcome.failed).append(row)
    return outcome


def changed_paths() -> list[str]:
    """
    List the files that the newest change touches, or none where Git cannot say.
    """
    head, base = _git("rev-parse", "HEAD"), _git("merge-base", "HEAD", "origin/main")
    if base and base != head:
        return _git("diff", "--name-only", *base, *head)
    newest = _git("log", "-1", "--format=%ct")
    if not newest:
        return []
    since = int(newest[0]) - HOURS * 3600
    return sorted(set(_git("log", f"--since=@{since}", "--format=", "--name-only", "--no-renames")))


def _git(*arguments: str) -> list[str]:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []


def main(minutes_gone: str, how: str = "") -> int:
    """
    Run tox, and say what was left out; fails when an environment does.
    """
    began, day = time.monotonic() - float(minutes_gone) * 60, int(time.time()) // 86_400
    changed = changed_paths()
    print(f"day {day % DAYS} of {DAYS}; the change touches {len(changed)} files", flush=True)

    def minute() -> float:
        return (time.monotonic() - began) / 60

    def passes(row: Row) -> bool:
        print(f"minute {minute():.0f}: tox {row.tox}", flush=True)
        return subprocess.run([".venv/bin/tox", *row.tox.split()], cwd=ROOT, check=False).returncode == 0

    rows = ordered(day, changed)
    if how == "show":
        outcome = imagined(rows, day, float(minutes_gone))
    else:
        outcome = carry_out(rows, day, float("inf") if how == "all" else LAST_MINUTE, minute, passes)
    words = ("would run" if how == "show" else "passed", "FAILED", "left out")
    for what, those in zip(words, outcome, strict=True):
        for row in those:
            print(f"{what}: tox {row.tox}")
    print(f"minute {minute():.0f}: done", flush=True)
    return 1 if outcome.failed else 0


def imagined(rows: list[Row], day: int, minutes_gone: float) -> Outcome:
    """
    Tell what becomes of the rows when each passes and takes as long as expected.
    """
    spent = [minutes_gone]

    def passes(row: Row) -> bool:
        spent.append(row.minutes)
        return True

    return carry_out(rows, day, LAST_MINUTE, lambda: sum(spent), passes)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
