"""
`kgateway spark verify`: whether archives have each offset once, and each record as the log has it. Exit code 0: nothing
is wrong; 1: something is; 2: it cannot be said.
"""

import json
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kgateway.cli.bar import size
from kgateway.cli.control import add_json
from kgateway.cli.refused import Refused
from kgateway.cli.spark_archive import place_of, summary, told
from kgateway.cli.spark_places import IN_A_FILER, PLACE, archived, folder, place
from kgateway.cli.spark_progress import Progress
from kgateway.cli.spark_session import add_topics, session
from kgateway.observe.plain import printable

if TYPE_CHECKING:
    from kgateway.spark.archive.verifying import Outcome

EXAMPLE = "kgateway spark verify orders --in archive"
_FAULTY = 1


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    parser.add_argument(
        "topics", metavar="TOPIC", nargs="*", help="of which; without any, all whose archives are there"
    )
    parser.add_argument(
        "--in", metavar=PLACE, dest="folder", type=place, required=True, help=f"where the archives are, {IN_A_FILER}"
    )
    parser.add_argument("--no-log", action="store_true", help="look at the archives alone, not at the log")
    add_json(parser)
    add_topics(parser)


def run(options: Namespace) -> Iterator[str]:
    """
    What was found, then a summary.
    """
    topics = options.topics or archived(options, options.folder)
    faults, outcomes = 0, []
    with session(options) as spark:
        for topic in topics:
            began, outcome = time.monotonic(), _outcome(options, spark, topic)
            faults += outcome.faults
            outcomes.append(_told(topic, outcome))
            if not options.json:
                yield from map(printable, _lines(topic, outcome, time.monotonic() - began))
    if options.json:
        yield json.dumps(outcomes, indent=2)
    if faults:
        sys.stdout.flush()
        raise SystemExit(_FAULTY)


def _outcome(options: Namespace, spark: Any, topic: str) -> "Outcome":
    from kgateway.spark.archive.verifying import Outcome, Verifying
    from kgateway.spark.failures import Unreadable

    archive = folder(options, options.folder, topic)
    verifying = Verifying(spark, archive, topic, None if options.no_log else place_of(options))
    with Progress(f"verifying {topic}", "files") as progress:
        try:
            for step in verifying.steps():
                if isinstance(step, Outcome):
                    return step
                progress.done(*step)
        except Unreadable as error:
            raise Refused(f"{error}{'' if options.no_log else '; --no-log looks at the archive alone'}") from error
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
        yield f"{removed:,} records removed by compaction, {outcome.proven:,} of them rightly, as the log shows"
    yield (
        f"{records:,} records of {size(raw)} in {len(files):,} files, {outcome.compared:,} of them compared with the "
        f"log, {outcome.alone:,} known by their checksum alone, in {seconds:.1f} s: {_found(outcome.faults)}"
    )


def _found(faults: int) -> str:
    return f"{faults:,} {'fault' if faults == 1 else 'faults'}" if faults else "nothing is wrong"


def _told(topic: str, outcome: "Outcome") -> dict[str, Any]:
    archive = told(outcome.manifest) if outcome.manifest else {"topic": topic, "partitions": []}
    findings = [asdict(finding) for finding in outcome.findings]
    counts = {"compared": outcome.compared, "alone": outcome.alone, "proven": outcome.proven}
    return archive | counts | {"findings": findings}
