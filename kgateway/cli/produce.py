"""
`kgateway produce`: send records to a topic of any server that speaks Kafka's protocol.
"""

import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from functools import partial

from kgateway.cli.asking import add_server, told
from kgateway.cli.bar import Bar, size
from kgateway.cli.example import add_example
from kgateway.cli.interrupts import Interrupts
from kgateway.cli.layout import counted
from kgateway.cli.named import unknown
from kgateway.cli.pace import Pace
from kgateway.cli.pairs import pair
from kgateway.cli.produce_input import STDIN, Input
from kgateway.cli.produce_records import Reading
from kgateway.cli.refused import Refused
from kgateway.client.cluster import Cluster
from kgateway.client.connection import Unanswered
from kgateway.client.producer import ACKS, Producer, Undelivered
from kgateway.client.topics import SERVERS_CHOICE, create, topics
from kgateway.records.compression import Codec
from kgateway.wire.errors import KafkaError

_CODECS = {codec.name.lower(): codec for codec in Codec}
_INTERRUPTED = 130  # as shells know it
_EXAMPLE = "printf 'a:1\\nb:2\\n' | kgateway produce orders --key-delimiter :"


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    parser.add_argument("topic", metavar="TOPIC", help="where to")
    parser.add_argument(
        "files", metavar="FILE", nargs="*", default=[STDIN], help="a record a line; - or none for stdin"
    )
    parser.add_argument("--create", action="store_true", help="make the topic if it is not there")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--whole-file", action="store_true", help="each file is one record")
    form.add_argument(
        "--json",
        action="store_true",
        help="each line is an object with any of key, value, headers, partition, timestamp, as `consume --json` prints",
    )
    key = parser.add_mutually_exclusive_group()
    key.add_argument("--key", metavar="TEXT", help="the key of all records that have none of their own")
    key.add_argument(
        "--key-delimiter", metavar="TEXT", type=_delimiter, help="each line is a key, this, and a value; \\t is a tab"
    )
    parser.add_argument(
        "--header", metavar="K=V", type=pair, action="append", default=[], help="a header of all; may be repeated"
    )
    parser.add_argument("--partition", metavar="N", type=_index, help="this one, for all that name none")
    parser.add_argument("--acks", choices=[*ACKS], default="all", help="who must have it; `all` also means no doubles")
    parser.add_argument("--compression", choices=[*_CODECS], default="none", help="of the batches")
    parser.add_argument("--rate", metavar="N", type=_rate, help="no more than N records a second")
    parser.add_argument("-q", "--quiet", action="store_true", help="no summary")
    parser.set_defaults(check=partial(_check, parser))
    add_server(parser)
    add_example(parser, _EXAMPLE)


def _check(parser: ArgumentParser, options: Namespace) -> None:
    if options.key_delimiter and (options.json or options.whole_file):
        parser.error("--key-delimiter is for lines, and neither for --json nor for --whole-file")


def run(options: Namespace) -> Iterator[str]:
    """
    Nothing on stdout; how much it was on stderr.
    """
    options.check(options)
    return told("produce", options, partial(_produce, options))


def _produce(options: Namespace, cluster: Cluster) -> Iterator[str]:
    _find_topic(options, cluster)
    producer = Producer(cluster, options.topic, ACKS[options.acks], _CODECS[options.compression])
    began, bar = time.monotonic(), Bar()
    with Interrupts() as interrupts:
        source = Input(options.files, options.whole_file, interrupts)
        try:
            _send(options, source, producer, bar, interrupts)
        except (KafkaError, Refused, Unanswered, Undelivered) as error:
            bar.clear()
            delivered = f"{counted(producer.records, 'record')} {'was' if producer.records == 1 else 'were'} delivered"
            raise Refused(f"{error} ({delivered})") from error
        finally:
            bar.clear()
        if not options.quiet:
            print(_summary(options, producer, time.monotonic() - began), file=sys.stderr)
        if interrupts.came:
            sys.exit(_INTERRUPTED)
    yield from ()


def _send(options: Namespace, source: Input, producer: Producer, bar: Bar, interrupts: Interrupts) -> None:
    try:
        _take(options, source, producer, bar, interrupts)
    except (Refused, Undelivered):
        producer.flush()  # what stands before is good
        raise
    producer.flush()


def _take(options: Namespace, source: Input, producer: Producer, bar: Bar, interrupts: Interrupts) -> None:
    began, total = time.monotonic(), source.size()
    pace = Pace(options.rate, interrupts)
    reading = Reading(options)
    taken = 0
    for piece in source.pieces():
        if piece is None or pace.is_early():
            producer.flush()
            pace.wait()
        if piece is None:
            continue
        if interrupts.came:
            break
        if source.taken != taken:
            taken = source.taken
            reading.look_at_the_clock()
            bar.show(taken, total, time.monotonic() - began)
        producer.send(reading.record(piece))


def _find_topic(options: Namespace, cluster: Cluster) -> None:
    known = cluster.settled(partial(topics, cluster))
    if options.topic in known:
        return
    if not options.create:
        raise Refused(f"{unknown(options.topic, known)}; --create makes it")
    cluster.settled(partial(create, cluster, options.topic, SERVERS_CHOICE, SERVERS_CHOICE, {}))


def _summary(options: Namespace, producer: Producer, seconds: float) -> str:
    what = f"{producer.records:,} record{'' if producer.records == 1 else 's'} of {size(producer.bytes)}"
    rate = f"{producer.records / seconds:,.0f} a second, {size(producer.bytes / seconds)}/s"
    return f"{what} produced to {options.topic} in {seconds:.1f} s: {rate}"


def _delimiter(text: str) -> bytes:
    if not text:
        raise ArgumentTypeError("an empty text stands everywhere: say which one is between key and value")
    return text.replace("\\t", "\t").encode(errors="surrogateescape")


def _index(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r} is no partition: they count from 0")
    return int(text)


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0
    if not 0 < rate < float("inf"):
        raise ArgumentTypeError(f"{text!r} is no number above 0")
    return rate
