"""
`kgateway seaweedmq verify`: whether log files are whole, and the ledgers of topics agree with them.
"""

import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from typing import TYPE_CHECKING

from kgateway.cli.common.errors import FAILED
from kgateway.cli.common.json_document import Json
from kgateway.cli.common.output import size
from kgateway.cli.common.progress import Progress
from kgateway.cli.seaweedmq.cluster import Say, seaweedmq_command, topic_name
from kgateway.plurals import counted

if TYPE_CHECKING:
    from kgateway.broker.seaweedmq.inspection.read_only_cluster import ReadOnlyCluster
    from kgateway.broker.seaweedmq.inspection.verification import Finding, Tally

_SHOWN_MAX = 20  # of one kind, in one partition

_EPILOG = """\
Ledger: the file of the saved ledger is as it was written. Sequence: rows follow one another, and each names the message
that the log has. Time: it never goes back, and no row has a time after its message was published. Coverage: every
offset of the log is in a row, and no row has an offset that is not in the log; the files, which are read even if there
is no ledger, have all messages from the first to the last.
Findings that are marked (no fault) are not saved yet; a gateway saves them some seconds later, or when it starts.

Exit code 0: nothing is wrong; 1: something is; 2: the cluster cannot be read.

example:
  $ kgateway seaweedmq verify --masters master1:9333,master2:9333
  $ kgateway seaweedmq verify --masters master1:9333 orders payments
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("topics", metavar="TOPIC", nargs="*", type=topic_name, help="only these topics (default all)")


async def _verify(options: Namespace, outside: "ReadOnlyCluster", say: Say) -> int:
    from kgateway.broker.seaweedmq.inspection.verification import Verification

    began, findings = time.monotonic(), Findings(say, options.json)
    topics = await outside.topics(options.topics)
    verification = Verification(outside, topics)
    tally = verification.tally
    with Progress() as progress:
        async for finding in verification.steps():
            if finding is None:
                progress.show(tally.bytes, tally.bytes_in_all)
            else:
                progress.clear()
                findings.add(finding)
    findings.end()
    if options.json:
        counts = {name: getattr(tally, name) for name in ("partitions", "rows", "files", "bytes")}
        say({"topics": len(topics)} | counts | {"findings": findings.found})
    else:
        say(_summary(len(topics), tally, time.monotonic() - began, findings.faults))
    return FAILED if findings.faults else 0


VERIFY = seaweedmq_command(_add_arguments, _verify, _EPILOG)


class Findings:
    """
    Prints findings, with a limit on each kind in a partition; or keeps them all for programs.
    """

    def __init__(self, say: Say, wants_json: bool) -> None:
        self.faults = 0
        self.found: list[Json] = []
        self._wants_json = wants_json
        self._say = say
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, finding: "Finding") -> None:
        place, kind, reason, is_fault = finding
        self.faults += is_fault
        if self._wants_json:
            self.found.append({"place": place, "kind": kind, "reason": reason, "is_fault": is_fault})
            return
        self._counts[place, kind] += 1
        if self._counts[place, kind] <= _SHOWN_MAX:
            self._say(f"{'' if is_fault else '(no fault) '}{place}: {kind}: {reason}")

    def end(self) -> None:
        for (place, kind), count in self._counts.items():
            if count > _SHOWN_MAX:
                self._say(f"{place}: {kind}: and {count - _SHOWN_MAX:,} more")


def _summary(topics: int, tally: "Tally", seconds: float, faults: int) -> str:
    counts = (topics, "topic"), (tally.partitions, "partition"), (tally.rows, "row"), (tally.files, "file")
    found = counted(faults, "finding", form=",") if faults else "nothing is wrong"
    return f"{', '.join(counted(*each, form=',') for each in counts)}, {size(tally.bytes)} in {seconds:.1f} s: {found}"
