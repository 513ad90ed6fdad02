"""
`kgateway clusters`: the clusters that have names, and the one that commands use.
"""

from argparse import Namespace
from collections.abc import Iterator

from kgateway.cli.common.cluster_profiles import FILE, Target, files, read_profiles, target
from kgateway.cli.common.json_document import Json
from kgateway.cli.common.output import NAME_MAX, Column, table
from kgateway.cli.common.parser import Command, add_example

_COLUMNS = (Column("CLUSTER", NAME_MAX), Column("BOOTSTRAP", 200), Column("FROM", NAME_MAX))


def _run(options: Namespace) -> Iterator[str | Json]:
    clusters, used = read_profiles().clusters.values(), target()
    if options.json:
        listed = [
            {"cluster": one.name, "bootstrap": one.bootstrap.split(","), "file": str(one.file)} for one in clusters
        ]
        yield {"clusters": listed, "used": _json(used)}
        return
    if clusters:
        yield from table(_COLUMNS, [(one.name, one.bootstrap, one.file) for one in clusters])
    else:
        _, of_user = files()
        yield f'no clusters are configured: write [clusters.NAME] and bootstrap = "HOST:PORT" into {FILE} or {of_user}'
    yield ""
    yield f"commands use {used.bootstrap}: {used.source}"


CLUSTERS = Command(lambda parser: add_example(parser, "kgateway clusters"), _run)


def _json(used: Target) -> Json:
    return {"cluster": used.cluster, "bootstrap": used.bootstrap.split(","), "source": used.source}
