"""
`kgateway transactions list`: all transactional ids, with their states.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from functools import partial
from typing import Any

from kgateway.cli.control import as_json, table
from kgateway.cli.layout import told_node
from kgateway.cli.states import add_states
from kgateway.client.cluster import Cluster
from kgateway.client.transactions import Listed, listed

_HEADINGS = ("TRANSACTIONAL ID", "STATE", "PRODUCER", "COORDINATOR")
_LIMITS = (255, 20, 20, 80)
_STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")
EXAMPLE = "kgateway transactions list --state Ongoing"


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    add_states(parser, _STATES, "those")


def run(options: Namespace, cluster: Cluster) -> Iterator[str]:
    """
    Those that fit.
    """
    known = cluster.settled(partial(listed, cluster))
    fitting = [one for one in known if not options.state or one.state in options.state]
    if options.json:
        yield as_json({"transactions": [_told(one) for one in fitting]})
    elif fitting:
        yield from table(_HEADINGS, _LIMITS, [_row(one) for one in fitting])
    else:
        yield f"none of the {len(known)} transactional ids fits" if known else "there are no transactional ids"


def _row(one: Listed) -> tuple[str, ...]:
    return one.transactional_id, one.state, str(one.producer_id), str(one.coordinator)


def _told(one: Listed) -> dict[str, Any]:
    return {
        "transactional_id": one.transactional_id,
        "state": one.state,
        "producer_id": one.producer_id,
        "coordinator": told_node(one.coordinator),
    }
