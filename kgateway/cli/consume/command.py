"""
`kgateway consume`: print the records of topics of any server that speaks Kafka's protocol.
"""

import sys
import time
from argparse import SUPPRESS, Namespace
from collections.abc import Iterator
from functools import partial

from kgateway.cli.common.cluster import cluster_command
from kgateway.cli.common.errors import UnknownTopicOrPartition, Unwritable, UsageError
from kgateway.cli.common.interrupts import Interrupts
from kgateway.cli.common.offset_spec import BEGINNING, offset_spec
from kgateway.cli.common.output import throughput
from kgateway.cli.common.parser import Parser
from kgateway.cli.common.times import TIMES
from kgateway.cli.common.topic_names import all_topics, matching_topics
from kgateway.cli.common.values import add_topics, indexes, positive
from kgateway.cli.consume.member import read_as_member
from kgateway.cli.consume.output import LINE, SHOWS, Output, check_format
from kgateway.cli.consume.reader import Reader
from kgateway.client.cluster import Cluster
from kgateway.observe.printable import printable
from kgateway.topic_partition import TopicPartition

_EXAMPLE = r"kgateway consume orders --from -10 -f '%p %o %k: %s\n'"
_FORMAT = (
    "how a record is written (default '%%s\\n'): %%t topic, %%p partition, %%o offset, %%T timestamp, %%k key, "
    "%%s value, %%h headers, %%K and %%S lengths of key and value, %%R the latter in four bytes; \\n \\r \\t \\xHH"
)


def _add_arguments(parser: Parser) -> None:
    offsets = f"an offset, -N for N before the end, {TIMES}"
    add_topics(parser, "topics", help="topics to read; a pattern such as 'order*' is also allowed")
    parser.add_argument("-p", "--partition", metavar="N[,N]", type=indexes, help="only these partitions of each topic")
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "-o",
        "--from",
        "--offset",
        metavar="PLACE",
        dest="start",
        type=offset_spec,
        default=BEGINNING,
        help=f"where to begin in each partition: beginning (the default), end, {offsets}",
    )
    start.add_argument("--from-beginning", action="store_const", const=BEGINNING, dest="start", help=SUPPRESS)
    parser.add_argument(
        "--until", metavar="PLACE", type=offset_spec, help=f"where to end, before this record: end, {offsets}"
    )
    parser.add_argument(
        "-n",
        "-c",
        "--count",
        "--max-messages",
        metavar="COUNT",
        type=positive,
        help="the maximum number of records",
    )
    end = parser.add_mutually_exclusive_group()
    end.add_argument("--follow", action="store_true", help="wait for more at the end, instead of exiting")
    end.add_argument("-e", dest="follow", action="store_false", help="exit at the end, as without --follow")
    parser.add_argument(
        "-G",
        "--group",
        metavar="GROUP",
        help="read as a member of this group, from its committed offsets, and commit what was written",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("-f", "--format", metavar="FORMAT", type=check_format, help=_FORMAT)
    form.add_argument(
        "-K",
        "--key-delimiter",
        metavar="TEXT",
        type=_keyed_format,
        dest="format",
        help="write the key, this text, and the value",
    )
    form.add_argument(
        "-J", "--json", action="store_true", help="write a line of JSON per record; bytes that are not text are base64"
    )
    escaped = " (default escaped on a terminal, otherwise text)"
    parser.add_argument("--key-as", choices=[*SHOWS], help=f"how keys are written{escaped}")
    parser.add_argument("--value-as", choices=[*SHOWS], help=f"how values are written{escaped}")
    parser.add_argument("-q", "--quiet", action="store_true", help="no summary")


def _keyed_format(delimiter: str) -> str:
    return check_format(f"%k{delimiter.replace('%', '%%')}{LINE}")


def _check(options: Namespace) -> None:
    if options.group is not None and options.partition:
        raise UsageError("--partition and --group: the group assigns the partitions")
    if options.group == "":
        raise UsageError("argument --group: an empty group id: is a shell variable unset?")
    if options.json and (options.key_as or options.value_as):
        raise UsageError("--key-as and --value-as cannot be used with --json, which writes text or base64")


def _consume(options: Namespace, cluster: Cluster) -> Iterator[str]:
    partitions = _partitions(options, cluster)
    began = time.monotonic()
    with Interrupts() as interrupts:
        output = Output(options, interrupts)
        try:
            if options.group:
                read_as_member(options, cluster, output, interrupts, partial(_note, options))
            else:
                begin = partial(Reader, options, cluster, partitions, output, interrupts)
                if reader := interrupts.unless_interrupted(begin):
                    _note(options, reader.notes)
                    while not (reader.is_over or interrupts.came):
                        reader.step()
        finally:
            if not options.quiet and not isinstance(sys.exception(), BrokenPipeError | Unwritable):
                seconds = time.monotonic() - began
                print(throughput(output.records, output.bytes, "consumed", seconds), file=sys.stderr)
        if interrupts.came and not options.follow:
            sys.exit(interrupts.exit_code)
    yield from ()


CONSUME = cluster_command(_add_arguments, _consume, _EXAMPLE, check=_check, has_json=False)


def _partitions(options: Namespace, cluster: Cluster) -> list[TopicPartition]:
    wanted = matching_topics(all_topics(cluster), options.topics)
    options.topics = [topic.name for topic in wanted]
    partitions = [part.partition for topic in wanted for part in topic.parts]
    if not options.partition:
        return partitions
    kept = [one for one in partitions if one.index in options.partition]
    missing = set(options.partition) - {one.index for one in kept}
    if missing:
        where = ", ".join(f"{topic.name} has {len(topic.parts)}" for topic in wanted)
        raise UnknownTopicOrPartition(f"there is no partition {min(missing)}: {where}")
    return kept


def _note(options: Namespace, notes: list[str]) -> None:
    if not options.quiet:
        for note in notes:
            print(printable(f"kgateway consume: {note}"), file=sys.stderr)
