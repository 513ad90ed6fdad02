"""
What has become of each topic that was to be made, changed or deleted.
"""

from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from kgateway.cli.control import as_json
from kgateway.cli.refused import Refused
from kgateway.client.cluster import Cluster
from kgateway.wire.errors import KafkaError


def done_to_each(
    options: Namespace, cluster: Cluster, names: Sequence[str], done: str, work: Callable[[str], None]
) -> Iterator[str]:
    """
    Do it to one after the other; a line for each, and at the end why it was not done to some.
    """
    problems = {name: _problem(cluster, partial(work, name)) for name in dict.fromkeys(names)}
    if options.json:
        key = done.partition(" ")[0]
        yield as_json({"topics": [{"topic": name, key: not why, "problem": why} for name, why in problems.items()]})
    else:
        yield from (f"{name}: {done}" for name, why in problems.items() if not why)
    kept = [f"{name} is not {done}: {why}" for name, why in problems.items() if why]
    if kept:
        raise Refused("; ".join(kept))


def _problem(cluster: Cluster, work: Callable[[], None]) -> str | None:
    try:
        cluster.settled(work)
    except KafkaError as error:
        return str(error)
    return None
