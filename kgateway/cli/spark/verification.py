"""
`kgateway spark verify`: whether archives have each offset once, and each record as the log has it.
"""

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kgateway.cli.common.errors import FAILED, MISTAKE, CommandError
from kgateway.cli.common.json_document import Json
from kgateway.cli.common.output import size
from kgateway.cli.common.progress import Progress
from kgateway.cli.spark.archive import archive_json, location_of, summary
from kgateway.cli.spark.locations import IN_A_FILER, LOCATION, archive_of, archived_topics, location
from kgateway.cli.spark.session import add_topics, session, spark_job
from kgateway.observe.printable import printable
from kgateway.plurals import counted

if TYPE_CHECKING:
    from kgateway.spark.archive.verification import Outcome


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("topics", metavar="TOPIC", nargs="*", help="topics to verify (default all that have archives)")
    parser.add_argument(
        "--in",
        metavar=LOCATION,
        dest="folder",
        type=location,
        required=True,
        help=f"the folder of the archives, {IN_A_FILER}",
    )
    parser.add_argument("--no-log", action="store_true", help="check only the archives, not the log")
    add_topics(parser)


def _run(options: Namespace) -> Iterator[str | Json]:
    topics = options.topics or archived_topics(options, options.folder)
    faults, outcomes = 0, []
    if not options.no_log:
        location_of(options).check_servers()
    with session(options) as spark:
        for topic in topics:
            began, outcome = time.monotonic(), _outcome(options, spark, topic)
            faults += outcome.faults
            outcomes.append(_json(topic, outcome))
            if not options.json:
                yield from map(printable, _lines(topic, outcome, time.monotonic() - began))
    if options.json:
        yield {"archives": outcomes}
    if faults:
        sys.stdout.flush()
        raise SystemExit(FAILED)


VERIFY = spark_job(
    _add_arguments,
    _run,
    "kgateway spark verify orders --in archive",
    if_interrupted=lambda options: "not everything was verified",
    failed=MISTAKE,
)


def _outcome(options: Namespace, spark: Any, topic: str) -> "Outcome":
    from kgateway.spark.archive.verification import Outcome, Verification
    from kgateway.spark.errors import Unreadable

    archive = archive_of(options, options.folder, topic)
    verifying = Verification(spark, archive, topic, None if options.no_log else location_of(options))
    with Progress(f"verifying {topic}", "files") as progress:
        try:
            for step in verifying.steps():
                if isinstance(step, Outcome):
                    return step
                progress.show(*step)
        except Unreadable as error:
            raise CommandError(f"{error}{'' if options.no_log else '; --no-log checks only the archive'}") from error
    raise AssertionError("the outcome comes last")


def _lines(topic: str, outcome: "Outcome", seconds: float) -> Iterator[str]:
    for finding in outcome.findings:
        yield f"{'' if finding.is_fault else '(no fault) '}{finding.place}: {finding.reason}"
    if outcome.manifest is None:
        yield f"topic {topic}: {_found(outcome.faults)}"
        return
    yield from summary(outcome.manifest)
    files = outcome.manifest.files
    records, raw = sum(file.count for file in files), sum(file.raw_bytes for file in files)
    removed = sum(file.removed for file in files)
    if removed:
        yield f"{removed:,} records removed by compaction, {outcome.proven:,} of them correctly, as the log shows"
    held = f"{counted(records, 'record', form=',')} ({size(raw)}) in {counted(len(files), 'file', form=',')}"
    yield (
        f"{held}: {outcome.compared:,} compared with the log and {outcome.alone:,} verified only by checksum "
        f"in {seconds:.1f} s: {_found(outcome.faults)}"
    )


def _found(faults: int) -> str:
    return counted(faults, "fault", form=",") if faults else "nothing is wrong"


def _json(topic: str, outcome: "Outcome") -> dict[str, Any]:
    archive = archive_json(outcome.manifest) if outcome.manifest else {"topic": topic, "partitions": []}
    findings = [asdict(finding) for finding in outcome.findings]
    counts = {"compared": outcome.compared, "alone": outcome.alone, "proven": outcome.proven}
    return archive | counts | {"findings": findings}
