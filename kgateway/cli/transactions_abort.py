"""
`kgateway transactions abort`: end an open transaction, and shut its producer out; or one that hangs in a partition.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from functools import partial

from kgateway.cli.confirming import add_yes, confirm
from kgateway.cli.control import as_json
from kgateway.cli.named import unknown
from kgateway.cli.refused import Refused
from kgateway.client.cluster import Cluster
from kgateway.client.offsets import Partition
from kgateway.client.topics import topics
from kgateway.client.transactions import Writing, abort, abort_in, described, writing

_OPEN = "Ongoing"
EXAMPLE = "kgateway transactions abort billing-1 --yes"


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    parser.add_argument("id", metavar="ID", nargs="?", help="the transactional id of the producer")
    parser.add_argument(
        "--hanging",
        nargs=3,
        metavar=("TOPIC", "PARTITION", "OFFSET"),
        help="a transaction that begins here, and of which no coordinator knows",
    )
    add_yes(parser)
    parser.set_defaults(check=partial(_check, parser))


def _check(parser: ArgumentParser, options: Namespace) -> None:
    if bool(options.id) == bool(options.hanging):
        parser.error("name a transactional id, or what is --hanging")
    if options.hanging and not all(text.isascii() and text.isdecimal() for text in options.hanging[1:]):
        parser.error(f"partition and offset are numbers: {' '.join(options.hanging[1:])}")


def run(options: Namespace, cluster: Cluster) -> Iterator[str]:
    """
    What has become of it.
    """
    told = _ended_by_hand(options, cluster) if options.hanging else _aborted(options, cluster)
    yield as_json({"aborted": told}) if options.json else f"{told}: aborted"


def _aborted(options: Namespace, cluster: Cluster) -> str:
    transactional_id: str = options.id
    found = cluster.settled(partial(described, cluster, transactional_id))
    if found.state != _OPEN:
        raise Refused(f"{transactional_id} has no transaction open: it is {found.state}")
    places = ", ".join(map(str, found.partitions))
    confirm(options, f"abort what {transactional_id} has written to {places}, and shut its producer out")
    cluster.settled(partial(abort, cluster, transactional_id))
    return transactional_id


def _ended_by_hand(options: Namespace, cluster: Cluster) -> str:
    name, index, offset = options.hanging
    partition = _partition(name, int(index), cluster)
    open_ones = cluster.settled(partial(writing, cluster, partition))
    hanging = next((one for one in open_ones if one.first_offset == int(offset)), None)
    if hanging is None:
        raise Refused(f"no transaction of {partition} begins at offset {offset}{_others(open_ones)}")
    confirm(options, f"abort what producer {hanging.producer_id} has written to {partition} from offset {offset} on")
    cluster.settled(partial(abort_in, cluster, partition, hanging))
    return f"{partition} from offset {offset} on"


def _partition(name: str, index: int, cluster: Cluster) -> Partition:
    known = cluster.settled(partial(topics, cluster))
    if name not in known:
        raise Refused(unknown(name, known))
    there = [part.partition for part in known[name].parts]
    partition = Partition(name, index)
    if partition not in there:
        raise Refused(f"there is no partition {partition}: {name} has {len(there)}")
    return partition


def _others(open_ones: list[Writing]) -> str:
    offsets = ", ".join(str(one.first_offset) for one in open_ones)
    return f", but at {offsets}" if offsets else ": none is open there"
