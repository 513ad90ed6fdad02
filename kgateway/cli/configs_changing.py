"""
What the subcommands share that change configs.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import partial

from kgateway.cli.configs_resource import add_resource, resource
from kgateway.cli.control import as_json
from kgateway.cli.pairs import pair, refuse_repeated
from kgateway.cli.refused import Refused
from kgateway.client.cluster import Cluster
from kgateway.client.configs import Change, Resource, alter, described
from kgateway.wire.errors import ErrorCode, KafkaError

_DONE = {Change.SET: "set", Change.UNSET: "unset", Change.APPEND: "appended", Change.SUBTRACT: "subtracted"}


def add_values(parser: ArgumentParser) -> None:
    """
    Which configs, and what of them.
    """
    add_resource(parser)
    parser.add_argument("values", metavar="CONFIG=VALUE", type=pair, nargs="+", help="a config and its value")
    parser.set_defaults(check=lambda options: refuse_repeated(parser, options.values))
    add_dry_run(parser)


def add_dry_run(parser: ArgumentParser) -> None:
    """
    The option for who is not sure.
    """
    parser.add_argument("--dry-run", action="store_true", help="only have the server say whether it can be done")


def change(options: Namespace, cluster: Cluster, how: Change, values: Mapping[str, str | None]) -> Iterator[str]:
    """
    Do it, all or nothing; a line for each config.
    """
    wanted = resource(options, cluster)
    if how is Change.UNSET:
        _refuse_unknown(cluster, wanted, values)
    try:
        cluster.settled(partial(alter, cluster, wanted, how, values, options.dry_run))
    except KafkaError as error:
        raise Refused(f"{error}{_near(cluster, wanted, values, error)}; nothing is changed") from error
    if options.json:
        yield as_json({"kind": wanted.kind, "name": wanted.name, "changed": not options.dry_run, "configs": [*values]})
        return
    done = f"would be {_DONE[how]}" if options.dry_run else _DONE[how]
    yield from (f"{wanted}: {_shown(name, value)} {done}" for name, value in values.items())


def _shown(name: str, value: str | None) -> str:
    return name if value is None else f"{name}={value}"


def _near(cluster: Cluster, wanted: Resource, values: Mapping[str, str | None], error: KafkaError) -> str:
    """
    Which config may be meant, where the server knows none of a name.
    """
    if error.code not in {ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST} or "did you mean" in str(error):
        return ""
    return _meant(values, _names(cluster, wanted))


def _refuse_unknown(cluster: Cluster, wanted: Resource, names: Iterable[str]) -> None:
    """
    Servers take it for done to unset what there is not, and what was meant stays set. Where the server does not tell
    which configs there are, so be it.
    """
    try:
        known = _names(cluster, wanted)
    except KafkaError:
        return
    unknown = [name for name in names if known and name not in known]
    if unknown:
        raise Refused(f"{wanted} has no config {unknown[0]}{_meant(unknown, known)}; nothing is changed")


def _names(cluster: Cluster, wanted: Resource) -> list[str]:
    return [config.name for config in described(cluster, [wanted]).get(wanted, [])]


def _meant(names: Iterable[str], known: list[str]) -> str:
    near = [match for name in names if name not in known for match in get_close_matches(name, known, n=1)]
    return f"; did you mean {' or '.join(near)}?" if near else ""
