"""
`kgateway configs describe`: what was set for a topic, a broker or a group.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from functools import partial
from textwrap import wrap
from typing import Any

from kgateway.cli.configs_resource import add_resource, resource
from kgateway.cli.control import WIDTH, as_json, table
from kgateway.client.cluster import Cluster
from kgateway.client.configs import Config, described

_HEADINGS = ("CONFIG", "VALUE", "SOURCE", "DEFAULT")
_LIMITS = (80, 200, 20, 200)
_INDENT = "  "
EXAMPLE = "kgateway configs describe topic orders --all"


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    add_resource(parser)
    parser.add_argument("--all", action="store_true", help="also what nobody has set")
    parser.add_argument("--verbose", action="store_true", help="below each what it is for, as the server says it")


def run(options: Namespace, cluster: Cluster) -> Iterator[str]:
    """
    The configs, by name.
    """
    wanted = resource(options, cluster)
    told = cluster.settled(partial(described, cluster, [wanted], None, options.verbose))
    known = told.get(wanted, [])
    configs = [config for config in known if options.all or config.is_set]
    if options.json:
        yield as_json({"kind": wanted.kind, "name": wanted.name, "configs": [_told(config) for config in configs]})
    elif configs:
        yield from _text(configs, options.verbose)
    else:
        yield f"nothing is set for {wanted}: --all shows the {len(known)} configs that there are"


def _text(configs: list[Config], verbose: bool) -> Iterator[str]:
    rows = [(one.name, _shown(one.value, one), one.source, _shown(one.default, one)) for one in configs]
    heading, *lines = table(_HEADINGS, _LIMITS, rows)
    yield heading
    for line, config in zip(lines, configs, strict=True):
        yield line
        if verbose:
            yield from wrap(config.documentation or "", WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT)


def _shown(value: str | None, config: Config) -> str:
    return "(secret)" if config.is_sensitive else ("-" if value is None else value)


def _told(config: Config) -> dict[str, Any]:
    return {
        "config": config.name,
        "value": config.value,
        "source": config.source,
        "default": config.default,
        "read_only": config.is_read_only,
        "sensitive": config.is_sensitive,
        "documentation": config.documentation,
    }
