"""
`kgateway produce`: send records to a topic of any server that speaks Kafka's protocol.
"""

import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator
from functools import partial

from kgateway.cli.common.cluster import cluster_command
from kgateway.cli.common.errors import CommandError, UnknownTopicOrPartition, UsageError
from kgateway.cli.common.interrupts import Interrupts
from kgateway.cli.common.output import throughput
from kgateway.cli.common.progress import Progress
from kgateway.cli.common.topic_names import all_topics, no_such_topic
from kgateway.cli.common.values import pair, rate
from kgateway.cli.produce.input import STDIN, Input, RecordReader
from kgateway.client.cluster import Cluster
from kgateway.client.connection import Unanswered
from kgateway.client.producer import ACKS, Producer, Undelivered
from kgateway.client.topics import SERVERS_CHOICE, create_topic
from kgateway.plurals import counted
from kgateway.records.compression import Codec
from kgateway.wire.errors import KafkaError

_CODECS = {codec.name.lower(): codec for codec in Codec}
_EXAMPLE = "printf 'a:1\\nb:2\\n' | kgateway produce orders --key-delimiter :"
_TICK_S = 0.01  # shorter waits cost more than they are worth


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC", nargs="?", help="the topic to write to")
    parser.add_argument("-t", "--topic", metavar="TOPIC", dest="named_topic", help="TOPIC, given as an option")
    parser.add_argument("files", metavar="FILE", nargs="*", help="files with a record per line; - or none for stdin")
    parser.add_argument("--create", action="store_true", help="create the topic if it does not exist")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--whole-file", action="store_true", help="each file is one record")
    form.add_argument(
        "--json",
        action="store_true",
        help="each line is an object with any of key, value, headers, partition, timestamp, as `consume --json` prints",
    )
    key = parser.add_mutually_exclusive_group()
    key.add_argument("-k", "--key", metavar="TEXT", help="the key of all records without a key of their own")
    key.add_argument(
        "-K",
        "--key-delimiter",
        metavar="TEXT",
        type=_delimiter,
        help="each line is a key, this text, and a value; \\t is a tab",
    )
    parser.add_argument(
        "-H",
        "--header",
        metavar="K=V",
        type=pair,
        action="append",
        default=[],
        help="a header of all records; may be repeated",
    )
    parser.add_argument(
        "-p", "--partition", metavar="N", type=_index, help="the partition of all records that do not name one"
    )
    parser.add_argument(
        "--acks",
        choices=[*ACKS],
        default="all",
        help="which servers must have stored a record; `all` also prevents duplicates",
    )
    parser.add_argument("-z", "--compression", choices=[*_CODECS], default="none", help="the compression of batches")
    parser.add_argument("--rate", metavar="N", type=rate, help="at most N records per second")
    parser.add_argument("-q", "--quiet", action="store_true", help="no summary")


def _check(options: Namespace) -> None:
    if options.named_topic is not None:
        options.files = [one for one in (options.topic, *options.files) if one is not None]
        options.topic = options.named_topic
    if options.topic is None:
        raise UsageError("the following arguments are required: TOPIC")
    options.files = options.files or [STDIN]
    if options.key_delimiter and (options.json or options.whole_file):
        raise UsageError("--key-delimiter is for lines, not for --json or --whole-file")


def _produce(options: Namespace, cluster: Cluster) -> Iterator[str]:
    _find_topic(options, cluster)
    producer = Producer(cluster, options.topic, ACKS[options.acks], _CODECS[options.compression])
    began = time.monotonic()
    with Interrupts() as interrupts:
        source = Input(options.files, options.whole_file, interrupts)
        try:
            with Progress() as progress:
                _send(options, source, producer, progress, interrupts)
        except (CommandError, KafkaError, Unanswered, Undelivered) as error:
            delivered = f"{counted(producer.records, 'record')} {'was' if producer.records == 1 else 'were'} delivered"
            raise CommandError(f"{error} ({delivered})") from error
        if not options.quiet:
            done = f"produced to {options.topic}"
            print(throughput(producer.records, producer.bytes, done, time.monotonic() - began), file=sys.stderr)
        if interrupts.came:
            sys.exit(interrupts.exit_code)
    yield from ()


PRODUCE = cluster_command(_add_arguments, _produce, _EXAMPLE, check=_check, has_json=False)


def _find_topic(options: Namespace, cluster: Cluster) -> None:
    known = all_topics(cluster)
    if options.topic in known:
        return
    if not options.create:
        raise UnknownTopicOrPartition(f"{no_such_topic(options.topic, known)}; --create creates it")
    cluster.retry(partial(create_topic, cluster, options.topic, SERVERS_CHOICE, SERVERS_CHOICE, {}))


def _send(options: Namespace, source: Input, producer: Producer, progress: Progress, interrupts: Interrupts) -> None:
    try:
        _send_pieces(options, source, producer, progress, interrupts)
    except (CommandError, Undelivered):
        producer.flush()  # the records before the mistake are good
        raise
    producer.flush()


def _send_pieces(
    options: Namespace, source: Input, producer: Producer, progress: Progress, interrupts: Interrupts
) -> None:
    total, has_bar = source.size(), not source.is_typed
    limit = RateLimit(options.rate, interrupts)
    reader = RecordReader(options)
    taken = 0
    for piece in source.pieces():
        if piece is None or limit.is_early():
            producer.flush()
            limit.wait()
        if piece is None:
            continue
        if interrupts.came:
            break
        if source.taken != taken:
            taken = source.taken
            reader.look_at_the_clock()
            if has_bar:
                progress.show(taken, total)
        producer.send(reader.record(piece))


class RateLimit:
    """
    Counts records, and delays them to a rate.
    """

    def __init__(
        self, rate: float | None, interrupts: Interrupts, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = rate
        self._interrupts = interrupts
        self._seconds = seconds
        self._began = seconds()
        self._count = 0

    def is_early(self) -> bool:
        """
        Count one more record; returns whether it must wait.
        """
        if self._rate is None:
            return False
        self._count += 1
        return self._due() - self._seconds() > _TICK_S

    def wait(self) -> None:
        """
        Sleep until the last counted record is due.
        """
        if self._rate is not None:
            self._interrupts.rest(max(self._due() - self._seconds(), 0))

    def _due(self) -> float:
        return self._began + (self._count - 1) / (self._rate or 1)


def _delimiter(text: str) -> bytes:
    if not text:
        raise ArgumentTypeError("must not be empty")
    return text.replace("\\t", "\t").encode(errors="surrogateescape")


def _index(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"must be a partition number of at least 0, not {text!r}")
    return int(text)
