"""
`kgateway log`: what is in the files of a log, and whether they are as they should be.

Both subcommands only read. They work on the folder of a gateway that runs, on one that was left by a crash, and on the
folders of partitions and the files that Kafka wrote.
"""

import shutil
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from kgateway.broker.log.checking import NothingToCheck, check
from kgateway.broker.log.dumping import NothingToDump, Wanted, dump, dump_partition, segments
from kgateway.broker.log.findings import Tally
from kgateway.broker.log.looking import ReadingDisk, holder
from kgateway.cli.bar import Bar, size
from kgateway.cli.control import WIDTH
from kgateway.observe.plain import printable

_FOUND, _UNREADABLE = 1, 2  # exit codes


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    kinds = parser.add_subparsers(dest="kind", metavar="WHAT", required=True)
    for name, run_it, what in (("check", _check, _CHECK), ("dump", _dump, _DUMP)):
        kind = kinds.add_parser(name, help=what.partition(".")[0].lower(), description=what)
        kind.add_argument(
            "--partition", metavar="TOPIC-INDEX", action="append", default=[], help="only this one; may be repeated"
        )
        kind.set_defaults(run_log=run_it)
        if name == "check":
            kind.add_argument("path", metavar="DIR", type=Path, help=_WHERE)
            continue
        kind.add_argument("paths", metavar="PATH", type=Path, nargs="+", help=f"{_WHERE}; of files also others")
        kind.add_argument(
            "--records", action="store_true", help="below each batch its records: time, key, value, headers"
        )
        kind.add_argument("--from", metavar="OFFSET", dest="start", type=int, default=0, help="the first offset")
        kind.add_argument(
            "--limit", metavar="N", type=int, help="so many batches, or records with --records, of each PATH"
        )


_WHERE = "a data folder, the folder of a partition, or a .log file"
_CHECK = (
    "Check the files of a log. It changes nothing, and may run beside the gateway. Each line says where something is "
    "wrong, what, and what to do. Exit code 0: nothing is wrong; 1: something is; 2: it cannot be read."
)
_DUMP = (
    "Show the batches of a log. It changes nothing, and may run beside the gateway. PATH may also be an index, a "
    "snapshot or a leader epoch file. Times are UTC."
)


def run(options: Namespace) -> Iterator[str]:
    """
    The lines, as they are found.
    """
    try:
        yield from map(printable, options.run_log(options))
    except (NothingToCheck, NothingToDump) as error:
        _end(options, str(error))
    except OSError as error:
        _end(options, f"{error.filename} cannot be read: {error.strerror}")


def _end(options: Namespace, reason: str) -> None:
    print(f"kgateway log {options.kind}: {printable(reason)}", file=sys.stderr)
    raise SystemExit(_UNREADABLE)


def _check(options: Namespace) -> Iterator[str]:
    began = time.monotonic()
    user = holder(options.path)
    survey, steps = check(options.path, ReadingDisk(), holder=user, only=options.partition)
    if user:
        yield f"{options.path} is in use by {user}: what it is just writing may look unfinished, and is not counted"
    bar, faults = Bar(), 0
    for found in steps:
        if found is None:
            bar.show(survey.tally.bytes, survey.tally.bytes_in_all, time.monotonic() - began)
        else:
            bar.clear()
            faults += found.is_fault
            yield str(found) if found.is_fault else f"(no fault) {found}"
    bar.clear()
    yield _summary(survey.tally, time.monotonic() - began, faults)
    if faults:
        raise SystemExit(_FOUND)


def _summary(tally: Tally, seconds: float, faults: int) -> str:
    found = "nothing is wrong" if not faults else f"{faults} finding{'' if faults == 1 else 's'}"
    counted = f"{tally.files:,} files, {tally.batches:,} batches, {tally.records:,} records by their headers"
    return f"{counted}, {size(tally.bytes)} in {seconds:.1f} s: {found}"


def _dump(options: Namespace) -> Iterator[str]:
    limit = {} if options.limit is None else {"limit": options.limit}
    wanted, disk = Wanted(options.records, options.start, **limit), ReadingDisk()
    width = shutil.get_terminal_size((WIDTH, 0)).columns if sys.stdout.isatty() else WIDTH
    for path in options.paths:
        for line in _shown(path, disk, options.partition, wanted):
            shown = printable(line)
            yield shown if len(shown) <= width else shown[: width - 1] + "…"


def _shown(path: Path, disk: ReadingDisk, only: list[str], wanted: Wanted) -> Iterator[str]:
    """
    The file that is named, or what is in the folder.
    """
    if not path.is_dir():
        return dump(path, disk, wanted)
    inside = [path / name for name in only or sorted(disk.names(path))]
    folders = [path] if segments(path, disk) else [folder for folder in inside if segments(folder, disk)]
    if not folders:
        raise NothingToDump(f"{path} has no log{' of ' + ', '.join(only) if only else ''}")
    return chain.from_iterable(dump_partition(folder, disk, wanted) for folder in folders)
