"""
`kgateway groups delete`: forget groups that have no members, and all they have committed.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from functools import partial

from kgateway.cli.control import as_json
from kgateway.cli.refused import Refused
from kgateway.client.cluster import Cluster
from kgateway.client.groups import delete
from kgateway.wire.errors import ErrorCode, KafkaError

_WHY = {
    ErrorCode.NON_EMPTY_GROUP: "it has members; stop them first",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group",
}
EXAMPLE = "kgateway groups delete billing"


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    parser.add_argument("groups", metavar="GROUP", nargs="+", help="its id")


def run(options: Namespace, cluster: Cluster) -> Iterator[str]:
    """
    What has become of each.
    """
    problems = {group_id: _problem(cluster, group_id) for group_id in dict.fromkeys(options.groups)}
    if options.json:
        told = [{"group": group_id, "deleted": not why, "problem": why} for group_id, why in problems.items()]
        yield as_json({"groups": told})
    else:
        yield from (f"{group_id}: deleted" for group_id, why in problems.items() if not why)
    kept = [f"{group_id} is not deleted: {why}" for group_id, why in problems.items() if why]
    if kept:
        raise Refused("; ".join(kept))


def _problem(cluster: Cluster, group_id: str) -> str | None:
    try:
        cluster.settled(partial(delete, cluster, group_id))
    except KafkaError as error:
        return _WHY.get(error.code, str(error))
    return None
