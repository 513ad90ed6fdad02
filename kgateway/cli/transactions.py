"""
`kgateway transactions`: transactions of any server that speaks Kafka's protocol.
"""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from functools import partial
from typing import Any

from kgateway.cli.common.cluster import cluster_command, refuse_parts
from kgateway.cli.common.colours import Colour
from kgateway.cli.common.errors import CommandError, Problem, UnknownTopicOrPartition, UsageError
from kgateway.cli.common.json_document import Json, error_of
from kgateway.cli.common.output import NAME_MAX, Column, node_json, table
from kgateway.cli.common.stdio import confirm
from kgateway.cli.common.topic_names import all_topics, no_such_topic
from kgateway.cli.common.values import add_states, add_yes
from kgateway.client.cluster import Cluster
from kgateway.client.transactions import (
    ActiveProducer,
    TransactionDescription,
    TransactionListing,
    abort_in_partition,
    abort_transaction,
    active_producers,
    describe_transaction,
    list_transactions,
)
from kgateway.observe.printable import printable
from kgateway.plurals import counted
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import KafkaError

_OPEN = "Ongoing"
_COLUMNS = (
    Column("TRANSACTIONAL ID", NAME_MAX),
    Column("STATE", 20, colours={_OPEN: Colour.YELLOW}),
    Column("PRODUCER", 20),
    Column("COORDINATOR", 80),
)
_STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")


def _add_list(parser: ArgumentParser) -> None:
    add_states(parser, _STATES, "transactions")


def _list(options: Namespace, cluster: Cluster) -> Iterator[str | Json]:
    known = cluster.retry(partial(list_transactions, cluster))
    matching = [one for one in known if not options.state or one.state in options.state]
    if options.json:
        yield {"transactions": [_listed_json(one) for one in matching]}
    elif matching:
        rows = [(one.transactional_id, one.state, one.producer_id, one.coordinator) for one in matching]
        yield from table(_COLUMNS, rows)
    else:
        yield (
            f"no transactional id matches ({counted(len(known), 'transactional id')} in all)"
            if known
            else "there are no transactional ids"
        )


LIST = cluster_command(_add_list, _list, "kgateway transactions list --state Ongoing")


def _listed_json(one: TransactionListing) -> dict[str, Any]:
    return {
        "transactional_id": one.transactional_id,
        "state": one.state,
        "producer_id": one.producer_id,
        "coordinator": node_json(one.coordinator),
    }


def _add_describe(parser: ArgumentParser) -> None:
    parser.add_argument("ids", metavar="ID", nargs="+", help="a transactional id")


def _describe(options: Namespace, cluster: Cluster) -> Iterator[str | Json]:
    found: list[Json] = []
    problems: dict[str, Problem] = {}
    for transactional_id in dict.fromkeys(options.ids):
        try:
            one = cluster.retry(partial(describe_transaction, cluster, transactional_id))
        except KafkaError as error:
            problem = problems[f"transactional id {transactional_id!r}"] = Problem.of(error)
            found.append({"transactional_id": transactional_id} | error_of(problem))
            continue
        found.append(_json(one))
        if not options.json:
            yield from _text(one)
    if options.json:
        yield {"transactions": found}
    refuse_parts(problems)


DESCRIBE = cluster_command(_add_describe, _describe, "kgateway transactions describe billing-1")


def _text(found: TransactionDescription) -> Iterator[str]:
    producer = f"producer {found.producer_id} in epoch {found.producer_epoch}"
    yield printable(f"{found.transactional_id}: {found.state}, {producer}, coordinator {found.coordinator}")
    if found.started_ms is not None:
        open_s = time.time() - found.started_ms / 1000
        yield f"  open for {open_s:.1f} s, will be aborted after {found.timeout_ms / 1000:g} s"
    if found.partitions:
        yield printable(f"  writes to {', '.join(map(str, found.partitions))}")


def _json(found: TransactionDescription) -> dict[str, Any]:
    return {
        "transactional_id": found.transactional_id,
        "state": found.state,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "timeout_ms": found.timeout_ms,
        "started_ms": found.started_ms,
        "partitions": [{"topic": one.topic, "partition": one.index} for one in found.partitions],
        "coordinator": node_json(found.coordinator),
    }


def _add_abort(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", nargs="?", help="the transactional id of the producer")
    parser.add_argument(
        "--hanging",
        nargs=3,
        metavar=("TOPIC", "PARTITION", "OFFSET"),
        help="a transaction that begins here and is unknown to every coordinator",
    )
    add_yes(parser)


def _check_abort(options: Namespace) -> None:
    if bool(options.id) == bool(options.hanging):
        raise UsageError("name a transactional id, or a transaction with --hanging")
    if options.hanging and not all(text.isascii() and text.isdecimal() for text in options.hanging[1:]):
        raise UsageError(f"partition and offset are numbers: {' '.join(options.hanging[1:])}")


def _abort(options: Namespace, cluster: Cluster) -> Iterator[str | Json]:
    aborted = _abort_hanging(options, cluster) if options.hanging else _abort_open(options, cluster)
    yield {"aborted": aborted} if options.json else f"{aborted}: aborted"


ABORT = cluster_command(_add_abort, _abort, "kgateway transactions abort billing-1 --yes", check=_check_abort)


def _abort_open(options: Namespace, cluster: Cluster) -> str:
    """
    Fence the producer, which aborts its transaction.
    """
    transactional_id: str = options.id
    found = cluster.retry(partial(describe_transaction, cluster, transactional_id))
    if found.state != _OPEN:
        raise CommandError(f"{transactional_id} has no transaction open: it is {found.state}")
    partitions = ", ".join(map(str, found.partitions))
    confirm(options, f"abort what {transactional_id} has written to {partitions}, and fence its producer")
    cluster.retry(partial(abort_transaction, cluster, transactional_id))
    return transactional_id


def _abort_hanging(options: Namespace, cluster: Cluster) -> str:
    """
    Write the marker that no coordinator will write.
    """
    name, index, offset = options.hanging
    partition = _partition(name, int(index), cluster)
    open_ones = cluster.retry(partial(active_producers, cluster, partition))
    hanging = next((one for one in open_ones if one.first_offset == int(offset)), None)
    if hanging is None:
        raise CommandError(f"no transaction of {partition} begins at offset {offset}{_others(open_ones)}")
    confirm(options, f"abort what producer {hanging.producer_id} has written to {partition} from offset {offset} on")
    cluster.retry(partial(abort_in_partition, cluster, partition, hanging))
    return f"{partition} from offset {offset} on"


def _partition(name: str, index: int, cluster: Cluster) -> TopicPartition:
    known = all_topics(cluster)
    if name not in known:
        raise UnknownTopicOrPartition(no_such_topic(name, known))
    partitions = [part.partition for part in known[name].parts]
    partition = TopicPartition(name, index)
    if partition not in partitions:
        raise UnknownTopicOrPartition(f"there is no partition {partition}: {name} has {len(partitions)}")
    return partition


def _others(open_ones: list[ActiveProducer]) -> str:
    offsets = ", ".join(str(one.first_offset) for one in open_ones)
    return f", but at {offsets}" if offsets else ": none is open there"
