"""
`kgateway groups list`: all groups, with their types and states.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from functools import partial
from typing import Any

from kgateway.cli.control import as_json, table
from kgateway.cli.layout import told_node
from kgateway.cli.states import add_states
from kgateway.client.cluster import Cluster
from kgateway.client.groups import TYPES, Listed, listed

_HEADINGS = ("GROUP", "TYPE", "STATE", "PROTOCOL", "COORDINATOR")
_LIMITS = (255, 10, 20, 30, 80)
_STATES = ("Empty", "Stable", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Dead")
EXAMPLE = "kgateway groups list --state Empty"


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    parser.add_argument("--type", choices=TYPES, action="append", help="only groups of this type; may be repeated")
    add_states(parser, _STATES, "groups")


def run(options: Namespace, cluster: Cluster) -> Iterator[str]:
    """
    The groups that fit.
    """
    known = cluster.settled(partial(listed, cluster))
    fitting = [group for group in known if _fits(group.type, options.type) and _fits(group.state, options.state)]
    if options.json:
        yield as_json({"groups": [_told(group) for group in fitting]})
    elif fitting:
        yield from table(_HEADINGS, _LIMITS, [_row(group) for group in fitting])
    else:
        yield f"none of the {len(known)} groups fits" if known else "there are no groups"


def _fits(value: str, wanted: list[str] | None) -> bool:
    return not wanted or value in wanted


def _row(group: Listed) -> tuple[str, ...]:
    return group.group_id, group.type or "-", group.state or "-", group.protocol_type or "-", str(group.coordinator)


def _told(group: Listed) -> dict[str, Any]:
    return {
        "group": group.group_id,
        "type": group.type,
        "state": group.state,
        "protocol_type": group.protocol_type,
        "coordinator": told_node(group.coordinator),
    }
