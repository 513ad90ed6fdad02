r"""
`kgateway consume`: print the records of topics of any server that speaks Kafka's protocol.
"""

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from functools import partial

from kgateway.cli.asking import add_server, told
from kgateway.cli.bar import size
from kgateway.cli.consume_format import SHOWS, check_format
from kgateway.cli.consume_member import read_as_member
from kgateway.cli.consume_output import Output
from kgateway.cli.consume_reading import Reading
from kgateway.cli.example import add_example
from kgateway.cli.interrupts import Interrupts
from kgateway.cli.named import chosen
from kgateway.cli.pairs import indexes, positive
from kgateway.cli.places import BEGINNING, place
from kgateway.cli.refused import Refused
from kgateway.cli.standard import Unwritable
from kgateway.client.cluster import Cluster
from kgateway.client.offsets import Partition
from kgateway.client.topics import topics
from kgateway.observe.plain import printable

_INTERRUPTED = 130  # as shells know it
_EXAMPLE = r"kgateway consume orders --from -10 -f '%p %o %k: %s\n'"
_FORMAT = (
    "how a record is written, '%%s\\n' if not given: %%t topic, %%p partition, %%o offset, %%T timestamp, %%k key, "
    "%%s value, %%h headers, %%K and %%S lengths of key and value, %%R the latter in four bytes; \\n \\r \\t \\xHH"
)


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    _add_what(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("-f", "--format", metavar="FORMAT", type=check_format, help=_FORMAT)
    form.add_argument("--json", action="store_true", help="a line of JSON for each; what is no text is base64")
    told_how = "; escaped on a terminal, else text, if not given"
    parser.add_argument("--key-as", choices=[*SHOWS], help=f"how keys are written{told_how}")
    parser.add_argument("--value-as", choices=[*SHOWS], help=f"how values are written{told_how}")
    parser.add_argument("-q", "--quiet", action="store_true", help="no summary")
    parser.set_defaults(check=partial(_check, parser))
    add_server(parser)
    add_example(parser, _EXAMPLE)


def _add_what(parser: ArgumentParser) -> None:
    places = "an offset, -N for N before the end, or a time such as 2026-11-21T18:25:08Z"
    parser.add_argument(
        "topics", metavar="TOPIC", nargs="+", help="of which; a pattern such as 'order*' may stand here"
    )
    parser.add_argument("--partition", metavar="N[,N]", type=indexes, help="only these of each topic")
    parser.add_argument(
        "--from",
        metavar="PLACE",
        dest="start",
        type=place,
        default=BEGINNING,
        help=f"where to begin in each partition: beginning, which it is if not given, end, {places}",
    )
    parser.add_argument("--until", metavar="PLACE", type=place, help=f"where to end, before this record: end, {places}")
    parser.add_argument("-n", "--count", metavar="COUNT", type=positive, help="no more than so many records in all")
    parser.add_argument("--follow", action="store_true", help="wait for more at the end; else that is the end")
    parser.add_argument(
        "--group",
        metavar="GROUP",
        help="read as a member of this group, from where it has come to, and commit what was written",
    )


def _check(parser: ArgumentParser, options: Namespace) -> None:
    if options.group is not None and options.partition:
        parser.error("--partition and --group: the group says which partitions")
    if options.group == "":
        parser.error("argument --group: an empty group id: is a variable of the shell not set?")
    if options.json and (options.key_as or options.value_as):
        parser.error("--key-as and --value-as are not for --json, which has text, and base64 for what is none")


def run(options: Namespace) -> Iterator[str]:
    """
    The records on stdout, and how much it was on stderr.
    """
    options.check(options)
    return told("consume", options, partial(_consume, options))


def _consume(options: Namespace, cluster: Cluster) -> Iterator[str]:
    partitions = _partitions(options, cluster)
    began, output = time.monotonic(), Output(options)
    with Interrupts() as interrupts:
        try:
            if options.group:
                read_as_member(options, cluster, output, interrupts, partial(_note, options))
            else:
                reading = Reading(options, cluster, partitions, output, interrupts)
                _note(options, reading.notes)
                while not (reading.is_over or interrupts.came):
                    reading.step()
        finally:
            if not options.quiet and not isinstance(sys.exception(), BrokenPipeError | Unwritable):
                print(_summary(output, time.monotonic() - began), file=sys.stderr)
        if interrupts.came and not options.follow:
            sys.exit(_INTERRUPTED)
    yield from ()


def _partitions(options: Namespace, cluster: Cluster) -> list[Partition]:
    wanted = chosen(cluster.settled(partial(topics, cluster)), options.topics)
    options.topics = [topic.name for topic in wanted]
    partitions = [part.partition for topic in wanted for part in topic.parts]
    if not options.partition:
        return partitions
    kept = [one for one in partitions if one.index in options.partition]
    missing = set(options.partition) - {one.index for one in kept}
    if missing:
        where = ", ".join(f"{topic.name} has {len(topic.parts)}" for topic in wanted)
        raise Refused(f"there is no partition {min(missing)}: {where}")
    return kept


def _note(options: Namespace, notes: list[str]) -> None:
    if not options.quiet:
        for note in notes:
            print(printable(f"kgateway consume: {note}"), file=sys.stderr)


def _summary(output: Output, seconds: float) -> str:
    what = f"{output.records:,} record{'' if output.records == 1 else 's'} of {size(output.bytes)}"
    rate = f"{output.records / seconds:,.0f} a second, {size(output.bytes / seconds)}/s"
    return f"{what} consumed in {seconds:.1f} s: {rate}"
