"""
`kgateway groups describe`: a group, its members and how far they have read.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

from kgateway.cli.control import as_json
from kgateway.cli.groups_text import group_text
from kgateway.cli.layout import told_node
from kgateway.cli.refused import Refused
from kgateway.client.cluster import Cluster
from kgateway.client.groups import CLASSIC, CONSUMER, Described, described, listed
from kgateway.client.reading import Reading, read_by
from kgateway.wire.errors import KafkaError

_KNOWN_HERE = (CLASSIC, CONSUMER, "")  # a server of old does not tell, and has classic ones alone
EXAMPLE = "kgateway groups describe billing"


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    parser.add_argument("groups", metavar="GROUP", nargs="*", help="its id")
    parser.add_argument("--all", action="store_true", help="all classic and consumer groups")
    parser.set_defaults(check=partial(_check, parser))


def _check(parser: ArgumentParser, options: Namespace) -> None:
    if bool(options.groups) == options.all:
        parser.error("name groups, or say --all")


def run(options: Namespace, cluster: Cluster) -> Iterator[str]:
    """
    One group after the other.
    """
    told, problems = [], []
    for number, group_id in enumerate(_wanted(options, cluster)):
        try:
            group = cluster.settled(partial(described, cluster, group_id))
            readings = cluster.settled(partial(read_by, cluster, group))
        except KafkaError as error:
            problems.append(f"group {group_id!r}: {error}")
            continue
        if options.json:
            told.append(_told(group, readings))
        else:
            yield from [""] if number else []
            yield from group_text(group, readings)
    if options.json:
        yield as_json({"groups": told})
    if problems:
        raise Refused("; ".join(problems))


def _wanted(options: Namespace, cluster: Cluster) -> list[str]:
    if options.all:
        known = cluster.settled(partial(listed, cluster))
        return [group.group_id for group in known if group.type in _KNOWN_HERE]
    return list(dict.fromkeys(options.groups))


def _told(group: Described, readings: list[Reading]) -> dict[str, Any]:
    return {
        "group": group.group_id,
        "type": group.type,
        "state": group.state,
        "protocol_type": group.protocol_type,
        "assignor": group.assignor,
        "epoch": group.epoch,
        "coordinator": told_node(group.coordinator),
        "members": [asdict(member) for member in group.members],
        "lag": sum(one.lag or 0 for one in readings),
        "partitions": [_told_reading(one) for one in readings],
    }


def _told_reading(reading: Reading) -> dict[str, Any]:
    return {
        "topic": reading.partition.topic,
        "partition": reading.partition.index,
        "committed": reading.committed and reading.committed.offset,
        "metadata": reading.committed and reading.committed.metadata,
        "end": reading.end,
        "lag": reading.lag,
        "member_id": reading.member_id,
    }
