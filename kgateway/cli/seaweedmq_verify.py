"""
`kgateway seaweedmq verify`: whether log files are whole, and the ledgers of topics agree with them.
"""

import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterable

from kgateway.broker.seaweedmq.outside import Outside
from kgateway.broker.seaweedmq.verifying import Finding, Tally, Verifying
from kgateway.cli.bar import Bar, size
from kgateway.cli.seaweedmq_cluster import FOUND, Say, add_cluster, look, topic_name

_SHOWN_MAX = 20  # of one kind, in one partition

_EPILOG = """\
Sequence: rows follow one another, and each names the message that the log has. Time: it never goes back, and no row has
one after its message was published. Coverage: every offset of the log is in a row, and no row has any that the log has
not; and the files, which are read also where there is no ledger, have all messages from the first to the last. What is
marked (no fault) was not kept yet; a gateway keeps it some seconds later, or when it starts.

Exit code 0: nothing is wrong; 1: something is; 2: the cluster cannot be read.

Examples:
  kgateway seaweedmq verify --masters master1:9333,master2:9333
  kgateway seaweedmq verify --masters master1:9333 orders payments
"""


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    add_cluster(parser)
    parser.add_argument(
        "topics", metavar="TOPIC", nargs="*", type=topic_name, help="only these; without any, all there are"
    )
    parser.epilog = _EPILOG


def run(options: Namespace) -> Iterable[str]:
    """
    It prints what is wrong as it is found, and ends the program.
    """
    look(options, lambda outside, say: _verify(outside, options.topics, say))
    return ()


async def _verify(outside: Outside, names: list[str], say: Say) -> int:
    began, bar, found = time.monotonic(), Bar(), Found(say)
    topics = await outside.topics(names)
    await outside.load()
    verifying = Verifying(outside, topics)
    tally = verifying.tally
    async for finding in verifying.steps():
        if finding is None:
            bar.show(tally.bytes, tally.bytes_in_all, time.monotonic() - began)
        else:
            bar.clear()
            found.tell(finding)
    bar.clear()
    found.end()
    say(_summary(len(topics), tally, time.monotonic() - began, found.faults))
    return FOUND if found.faults else 0


class Found:
    """
    Tells findings, but of those that are many only some.
    """

    def __init__(self, say: Say) -> None:
        self.faults = 0
        self._say = say
        self._counts: Counter[tuple[str, str]] = Counter()

    def tell(self, finding: Finding) -> None:
        """
        One more.
        """
        place, kind, reason, is_fault = finding
        self.faults += is_fault
        self._counts[place, kind] += 1
        if self._counts[place, kind] <= _SHOWN_MAX:
            self._say(f"{'' if is_fault else '(no fault) '}{place}: {kind}: {reason}")

    def end(self) -> None:
        """
        Say how many were not told.
        """
        for (place, kind), count in self._counts.items():
            if count > _SHOWN_MAX:
                self._say(f"{place}: {kind}: and {count - _SHOWN_MAX:,} more")


def _summary(topics: int, tally: Tally, seconds: float, faults: int) -> str:
    counts = (topics, "topic"), (tally.partitions, "partition"), (tally.rows, "row"), (tally.files, "file")
    found = _counted(faults, "finding") if faults else "nothing is wrong"
    return f"{', '.join(_counted(*each) for each in counts)}, {size(tally.bytes)} in {seconds:.1f} s: {found}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
