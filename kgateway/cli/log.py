"""
`kgateway log`: what is in the files of a log, and whether they are as they should be.

Both subcommands only read. They work on the folder of a gateway that runs, on one that was left by a crash, and on the
folders of partitions and the files that Kafka wrote.
"""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from kgateway.broker.log.data_folder.folder_lock import holder
from kgateway.broker.log.files.local_disk import ReadOnlyDisk
from kgateway.broker.log.inspection.dump import DumpLine, DumpRequest, dump, dump_partition, segments
from kgateway.broker.log.inspection.findings import Finding, Tally
from kgateway.broker.log.inspection.log_check import check_log
from kgateway.broker.log.inspection.log_paths import (
    PARTITION_OR_SEGMENT,
    NoLog,
    is_data_folder,
    is_partition_folder,
    no_log_in,
)
from kgateway.cli.common.errors import FAILED, MISTAKE, CommandError
from kgateway.cli.common.json_document import Json, json_line
from kgateway.cli.common.output import cut, size, width
from kgateway.cli.common.parser import Command, add_example
from kgateway.cli.common.progress import Progress
from kgateway.cli.common.values import offset, positive
from kgateway.cli.produce.record_json import record_fields
from kgateway.observe.printable import printable
from kgateway.plurals import counted

_WHERE = f"a data folder, {PARTITION_OR_SEGMENT}"


def _add_partition(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--partition", metavar="TOPIC-INDEX", action="append", default=[], help="only this partition; may be repeated"
    )


def _add_check(parser: ArgumentParser) -> None:
    _add_partition(parser)
    parser.add_argument("path", metavar="DIR", type=Path, help=_WHERE)
    add_example(parser, "kgateway log check kgateway-data")


def _add_dump(parser: ArgumentParser) -> None:
    _add_partition(parser)
    parser.add_argument("paths", metavar="PATH", type=Path, nargs="+", help=f"{_WHERE}; also other files of a log")
    parser.add_argument(
        "--records", action="store_true", help="show the records below each batch: time, key, value, headers"
    )
    parser.add_argument(
        "--from", metavar="OFFSET", dest="start", type=offset, default=0, help="the first offset to show"
    )
    parser.add_argument(
        "--limit", metavar="N", type=positive, help="at most N batches, or records with --records, of each PATH"
    )
    add_example(parser, "kgateway log dump kgateway-data --partition orders-0 --records --limit 10")


def _readable(run: Callable[[Namespace], Iterable[str | Json]]) -> Callable[[Namespace], Iterator[str | Json]]:
    """
    Report what cannot be read in a line, with exit code 2.
    """

    def output(options: Namespace) -> Iterator[str | Json]:
        try:
            for part in run(options):
                yield printable(part) if isinstance(part, str) else part
        except NoLog as error:
            raise CommandError(str(error), MISTAKE) from error
        except OSError as error:
            raise CommandError(f"{error.filename} cannot be read: {error.strerror}", MISTAKE) from error

    return output


def _check(options: Namespace) -> Iterator[str | Json]:
    began = time.monotonic()
    user = holder(options.path)
    survey, steps = check_log(options.path, ReadOnlyDisk(), holder=user, only=options.partition)
    if user and not options.json:
        yield f"{options.path} is in use by {user}: data that is being written may look unfinished, and is not reported"
    findings = []
    with Progress() as progress:
        for found in steps:
            if found is None:
                progress.show(survey.tally.bytes, survey.tally.bytes_in_all)
                continue
            progress.clear()
            findings.append(found)
            if not options.json:
                yield str(found) if found.is_fault else f"(no fault) {found}"
    faults = sum(found.is_fault for found in findings)
    if options.json:
        yield _json(survey.tally, findings, user)
    else:
        yield _summary(survey.tally, time.monotonic() - began, faults)
    if faults:
        raise SystemExit(FAILED)


def _json(tally: Tally, findings: list[Finding], user: str | None) -> Json:
    counts = {name: getattr(tally, name) for name in ("files", "batches", "records", "bytes")}
    return {"in_use_by": user} | counts | {"findings": [asdict(one) | {"path": str(one.path)} for one in findings]}


def _summary(tally: Tally, seconds: float, faults: int) -> str:
    found = counted(faults, "finding") if faults else "nothing is wrong"
    counts = (tally.files, "file"), (tally.batches, "batch", "batches"), (tally.records, "record")
    what = ", ".join(counted(*each, form=",") for each in counts)
    return f"{what} according to batch headers, {size(tally.bytes)} in {seconds:.1f} s: {found}"


def _dump(options: Namespace) -> Iterator[str | Json]:
    limit = {} if options.limit is None else {"limit": options.limit}
    wanted, disk = DumpRequest(options.records, options.start, **limit), ReadOnlyDisk()
    columns = width()
    for path in options.paths:
        for line in _dumped(path, disk, options.partition, wanted):
            if not options.json:
                yield cut(line.text, columns)
            elif line.fields or line.record:
                yield json_line(line.fields | (record_fields(line.record) if line.record else {}))


def _dumped(path: Path, disk: ReadOnlyDisk, only: list[str], wanted: DumpRequest) -> Iterator[DumpLine]:
    """
    The file that is named, or what is in the folder.
    """
    if not path.is_dir():
        yield from dump(path, disk, wanted)
        return
    names = disk.names(path)
    inside = [path / name for name in only or sorted(names)]
    folders = [path] if segments(path, disk) else [folder for folder in inside if segments(folder, disk)]
    if not folders:
        if is_data_folder(names) or is_partition_folder(names):
            raise NoLog(f"{path} has no log{' of ' + ', '.join(only) if only else ''}")
        raise no_log_in(path, disk)
    for folder in folders:
        yield from dump_partition(folder, disk, wanted)


CHECK = Command(_add_check, _readable(_check))
DUMP = Command(_add_dump, _readable(_dump))
