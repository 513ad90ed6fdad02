"""
Which package may import which, and where Twisted may appear.

Every module of ours falls under the longest prefix that fits it; a new package needs a line here before it can land.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

_LOGIC = {"kgateway.cluster", "kgateway.interfaces", "kgateway.messages", "kgateway.records", "kgateway.wire"}

# package or module -> the packages of ours it may import, besides itself
MAY_IMPORT = {
    "kgateway": set(),
    "kgateway.__main__": {"kgateway.cli"},
    "kgateway.wire": set(),
    "kgateway.messages": {"kgateway.wire"},
    "kgateway.records": {"kgateway.messages", "kgateway.wire"},
    "kgateway.config.hosts": set(),
    "kgateway.config": {"kgateway.config.hosts"},
    "kgateway.security.permissions": set(),
    "kgateway.cluster": {"kgateway.config", "kgateway.records", "kgateway.wire"},
    "kgateway.broker.aborted": set(),
    "kgateway.broker.partition_transactions": {"kgateway.broker.aborted"},
    "kgateway.broker.producers": {"kgateway.broker.partition_transactions", "kgateway.records", "kgateway.wire"},
    "kgateway.broker.rounds": set(),
    "kgateway.coordinating.places": {"kgateway.security.permissions"},
    "kgateway.interfaces": _LOGIC | {"kgateway.broker.producers", "kgateway.security.permissions"},
    "kgateway.security": {"kgateway.interfaces", "kgateway.security.permissions"},
    "kgateway.broker": _LOGIC
    | {
        "kgateway.broker.aborted",
        "kgateway.broker.producers",
        "kgateway.broker.rounds",
        "kgateway.coordinating.places",
        "kgateway.security.permissions",
    },
    "kgateway.broker.seaweed": _LOGIC
    | {"kgateway.broker", "kgateway.broker.producers", "kgateway.security.permissions", "kgateway.sending"},
    "kgateway.broker.seaweedmq": _LOGIC
    | {
        "kgateway.broker",
        "kgateway.broker.producers",
        "kgateway.broker.seaweed",
        "kgateway.config.hosts",
        "kgateway.coordinating.places",
        "kgateway.security.permissions",
    },
    "kgateway.later": {"kgateway.wire"},
    "kgateway.sending": {"kgateway.wire"},
    "kgateway.context": _LOGIC | {"kgateway.config", "kgateway.security.permissions"},
    "kgateway.api": _LOGIC | {"kgateway.context", "kgateway.security.permissions"},
    "kgateway.partitions": _LOGIC | {"kgateway.context", "kgateway.security.permissions"},
    "kgateway.features": _LOGIC | {"kgateway.context"},
    "kgateway.loggers": _LOGIC | {"kgateway.context"},
    "kgateway.alterations_elsewhere": _LOGIC | {"kgateway.context"},
    "kgateway.alterations": _LOGIC
    | {"kgateway.alterations_elsewhere", "kgateway.context", "kgateway.loggers", "kgateway.security.permissions"},
    "kgateway.converting": _LOGIC | {"kgateway.context"},
    "kgateway.fetching": _LOGIC
    | {
        "kgateway.context",
        "kgateway.converting",
        "kgateway.later",
        "kgateway.partitions",
        "kgateway.security.permissions",
    },
    "kgateway.coordinating": _LOGIC | {"kgateway.security.permissions"},
    "kgateway.groups": _LOGIC
    | {
        "kgateway.config",
        "kgateway.context",
        "kgateway.coordinating",
        "kgateway.coordinating.places",
        "kgateway.security.permissions",
        "kgateway.transactions",
    },
    "kgateway.transactions": _LOGIC
    | {
        "kgateway.broker.rounds",
        "kgateway.config",
        "kgateway.context",
        "kgateway.coordinating",
        "kgateway.coordinating.places",
        "kgateway.security.permissions",
    },
    "kgateway.producing": _LOGIC
    | {
        "kgateway.context",
        "kgateway.converting",
        "kgateway.partitions",
        "kgateway.security.permissions",
        "kgateway.transactions",
    },
    "handlers": _LOGIC
    | {
        "kgateway.alterations",
        "kgateway.api",
        "kgateway.broker.producers",
        "kgateway.converting",
        "kgateway.features",
        "kgateway.fetching",
        "kgateway.groups",
        "kgateway.loggers",
        "kgateway.partitions",
        "kgateway.producing",
        "kgateway.security.permissions",
        "kgateway.transactions",
    },
    "kgateway.observe.plain": set(),
    "kgateway.observe.reasons": {"kgateway.wire"},
    "kgateway.observe": {"kgateway.wire"},
    "kgateway.control.client": set(),
    "kgateway.control": {"kgateway.observe", "kgateway.observe.reasons", "kgateway.wire"},
    "kgateway.server": _LOGIC
    | {
        "kgateway",
        "kgateway.broker",
        "kgateway.broker.seaweed",
        "kgateway.broker.seaweedmq",
        "kgateway.config",
        "kgateway.context",
        "kgateway.control",
        "kgateway.later",
        "kgateway.loggers",
        "kgateway.observe",
        "kgateway.observe.plain",
        "kgateway.observe.reasons",
        "kgateway.security",
        "kgateway.security.permissions",
        "kgateway.sending",
    },
    "kgateway.embedded": _LOGIC | {"kgateway.server"},
    "kgateway.testing": set(),
    "kgateway.client": {"kgateway", "kgateway.messages", "kgateway.records", "kgateway.wire"},
    "kgateway.spark.filer.waiting": {"kgateway.broker.seaweed", "kgateway.spark"},
    "kgateway.spark": {
        "kgateway.broker",  # of the log: how its files are named and what is in them
        "kgateway.broker.aborted",
        "kgateway.broker.seaweed",  # of SeaweedMQ: the same, and who may read them
        "kgateway.broker.seaweedmq",
        "kgateway.client",
        "kgateway.messages",
        "kgateway.records",
        "kgateway.spark.filer.waiting",
        "kgateway.wire",
    },
    "kgateway.cli": {
        "kgateway",
        "kgateway.client",
        "kgateway.config",
        "kgateway.control.client",
        "kgateway.messages",
        "kgateway.observe.plain",
        "kgateway.records",
        "kgateway.wire",
    },
    "kgateway.cli.log": {"kgateway.broker", "kgateway.cli", "kgateway.observe.plain"},
    "kgateway.cli.topic_configs": {"kgateway.cluster"},
    "kgateway.cli.spark_session": {
        "kgateway.cli",
        "kgateway.client",
        "kgateway.config",
        "kgateway.observe.plain",
        "kgateway.spark",
        "kgateway.wire",
    },
    "kgateway.cli.spark_places": {"kgateway.cli", "kgateway.cli.spark_session", "kgateway.spark"},
    "kgateway.cli.spark": {"kgateway.cli", "kgateway.cli.spark_session"},
    "kgateway.cli.spark_report": {
        "kgateway.cli",
        "kgateway.cli.spark_session",
        "kgateway.client",
        "kgateway.observe.plain",
        "kgateway.spark",
    },
    "kgateway.cli.spark_backfill": {
        "kgateway.cli",
        "kgateway.cli.spark_session",
        "kgateway.client",
        "kgateway.observe.plain",
        "kgateway.records",
        "kgateway.spark",
        "kgateway.wire",
    },
    "kgateway.cli.spark_sql": {
        "kgateway.cli",
        "kgateway.cli.spark_places",
        "kgateway.cli.spark_session",
        "kgateway.cli.spark_sql_output",
        "kgateway.observe.plain",
        "kgateway.spark",
    },
    "kgateway.cli.spark_sql_output": {"kgateway.cli", "kgateway.observe.plain", "kgateway.spark"},
    "kgateway.cli.spark_archive": {
        "kgateway.cli",
        "kgateway.cli.spark_places",
        "kgateway.cli.spark_session",
        "kgateway.spark",
    },
    "kgateway.cli.spark_verify": {
        "kgateway.cli",
        "kgateway.cli.spark_archive",
        "kgateway.cli.spark_places",
        "kgateway.cli.spark_session",
        "kgateway.observe.plain",
        "kgateway.spark",
    },
    "kgateway.cli.spark_compact": {
        "kgateway.cli",
        "kgateway.cli.spark_archive",
        "kgateway.cli.spark_places",
        "kgateway.cli.spark_session",
        "kgateway.config",
        "kgateway.spark",
    },
    "kgateway.cli.seaweedmq_dev": {"kgateway.broker.seaweed", "kgateway.config"},
    "kgateway.cli.seaweedmq_cluster": {
        "kgateway.broker.seaweed",
        "kgateway.broker.seaweedmq",
        "kgateway.observe.plain",
    },
    "kgateway.cli.seaweedmq_verify": {"kgateway.broker.seaweedmq", "kgateway.cli", "kgateway.cli.seaweedmq_cluster"},
    "kgateway.cli.seaweedmq_stats": {"kgateway.broker.seaweedmq", "kgateway.cli", "kgateway.cli.seaweedmq_cluster"},
    "kgateway.cli.seaweedmq_mapping": {"kgateway.broker.seaweedmq", "kgateway.cli", "kgateway.cli.seaweedmq_cluster"},
}
_VALUES = {"twisted.internet.defer", "twisted.internet.interfaces", "twisted.logger", "twisted.python.failure"}

# what may see Twisted -> how much of it; only the server sees sockets, and only one function of it the reactor
MAY_IMPORT_TWISTED = {
    "kgateway.cluster": _VALUES,
    "kgateway.broker": _VALUES,
    "kgateway.broker.rounds": _VALUES,
    "kgateway.broker.seaweed": {"twisted"},
    "kgateway.broker.seaweedmq": _VALUES | {"twisted.internet.task"},
    "kgateway.interfaces": _VALUES,
    "kgateway.later": _VALUES,
    "kgateway.context": _VALUES,
    "kgateway.api": {"twisted.plugin"},
    "kgateway.alterations": _VALUES,
    "kgateway.partitions": _VALUES,
    "kgateway.converting": _VALUES,
    "kgateway.fetching": _VALUES,
    "kgateway.producing": _VALUES,
    "kgateway.coordinating": _VALUES,
    "kgateway.groups": _VALUES,
    "kgateway.transactions": _VALUES,
    "handlers": _VALUES,
    "kgateway.observe": _VALUES | {"twisted.internet.task"},
    "kgateway.control": {"twisted"},
    "kgateway.sending": {"twisted"},
    "kgateway.server": {"twisted"},
    "kgateway.embedded": _VALUES,
    "kgateway.spark.filer.waiting": {
        "twisted.internet.defer",
        "twisted.internet.pollreactor",
        "twisted.internet.threads",
    },
    "kgateway.cli": {"twisted.scripts"},
    "kgateway.cli.seaweedmq_cluster": {"twisted.internet.defer", "twisted.internet.task"},
}


def _modules() -> list[tuple[str, Path]]:
    paths = [path for top in ("kgateway", "handlers") for path in sorted((ROOT / top).rglob("*.py"))]
    return [(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"), path) for path in paths]


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module or ""


def _package(module: str) -> str:
    fitting = [package for package in MAY_IMPORT if f"{module}.".startswith(f"{package}.")]
    return max(fitting, key=len)


@pytest.mark.parametrize(("module", "path"), _modules(), ids=[module for module, _ in _modules()])
def test_imports_go_down_the_layers(module: str, path: Path) -> None:
    """
    A module imports its own package and those its package may, and Twisted only where it may.
    """
    package = _package(module)
    assert package != "kgateway" or module == "kgateway", f"{module} belongs to no layer: give its package a line"
    for name in _imports(path):
        top = name.split(".")[0]
        if top in ("kgateway", "handlers"):
            assert _package(name) in {package, *MAY_IMPORT[package]}, f"{module} imports {name}"
        allowed = MAY_IMPORT_TWISTED.get(package, set())
        assert top != "twisted" or any(f"{name}.".startswith(f"{part}.") for part in allowed), (
            f"{module} imports {name}"
        )


@pytest.mark.parametrize(("module", "path"), _modules(), ids=[module for module, _ in _modules()])
def test_handlers_do_not_know_each_other(module: str, path: Path) -> None:
    """
    A handler imports no handler: plugins are found by what modules hold, and one would be found twice.
    """
    assert not module.startswith("handlers.") or not any(name.startswith("handlers") for name in _imports(path))


def test_only_the_service_imports_the_reactor() -> None:
    """
    Everything else is given one.
    """
    importing = [module for module, path in _modules() if "import reactor" in path.read_text()]
    assert importing == ["kgateway.server.service"]
