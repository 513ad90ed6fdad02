"""
`kgateway transactions describe`: the producer of a transactional id, and its transaction.
"""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from functools import partial
from typing import Any

from kgateway.cli.control import as_json
from kgateway.cli.layout import told_node
from kgateway.cli.refused import Refused
from kgateway.client.cluster import Cluster
from kgateway.client.transactions import Described, described
from kgateway.observe.plain import printable
from kgateway.wire.errors import KafkaError

EXAMPLE = "kgateway transactions describe billing-1"


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    parser.add_argument("ids", metavar="ID", nargs="+", help="a transactional id")


def run(options: Namespace, cluster: Cluster) -> Iterator[str]:
    """
    One after the other.
    """
    told, problems = [], []
    for transactional_id in dict.fromkeys(options.ids):
        try:
            found = cluster.settled(partial(described, cluster, transactional_id))
        except KafkaError as error:
            problems.append(f"transactional id {transactional_id!r}: {error}")
            continue
        told.append(_told(found))
        if not options.json:
            yield from _lines(found)
    if options.json:
        yield as_json({"transactions": told})
    if problems:
        raise Refused("; ".join(problems))


def _lines(found: Described) -> Iterator[str]:
    producer = f"producer {found.producer_id} in epoch {found.producer_epoch}"
    yield printable(f"{found.transactional_id}: {found.state}, {producer}, coordinator {found.coordinator}")
    if found.started_ms is not None:
        open_s = time.time() - found.started_ms / 1000
        yield f"  open for {open_s:.1f} s, and aborted after {found.timeout_ms / 1000:g}"
    if found.partitions:
        yield printable(f"  writes to {', '.join(map(str, found.partitions))}")


def _told(found: Described) -> dict[str, Any]:
    return {
        "transactional_id": found.transactional_id,
        "state": found.state,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "timeout_ms": found.timeout_ms,
        "started_ms": found.started_ms,
        "partitions": [{"topic": one.topic, "partition": one.index} for one in found.partitions],
        "coordinator": told_node(found.coordinator),
    }
