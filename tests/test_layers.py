"""
The packages that each package may import, and the places where Twisted may be used.

The longest matching prefix applies to a module; a new package needs a line here before it can be merged.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

_LOGIC = {"kgateway.cluster", "kgateway.interfaces", "kgateway.messages", "kgateway.records", "kgateway.wire"}

_EVERYWHERE = {"kgateway.log_messages", "kgateway.plurals", "kgateway.topic_partition"}

# package or module -> the packages of ours it may import, besides itself and what may be imported everywhere
MAY_IMPORT = {
    "kgateway": {"kgateway.compilation"},
    "kgateway.__main__": {"kgateway.cli.main"},
    "kgateway.wire": set(),
    "kgateway.compilation": {"kgateway.config"},
    "kgateway.extras": set(),
    "kgateway.log_messages": set(),
    "kgateway.plurals": set(),
    "kgateway.topic_partition": {"kgateway.wire"},
    "kgateway.messages": {"kgateway.wire"},
    "kgateway.records": {"kgateway.messages", "kgateway.wire"},
    "kgateway.config.hosts": set(),
    "kgateway.config": {"kgateway.config.hosts"},
    "kgateway.security.permissions": set(),
    "kgateway.cluster": {"kgateway.config", "kgateway.records", "kgateway.wire"},
    "kgateway.broker.partition.transactions": set(),
    "kgateway.broker.partition.producer_state": {
        "kgateway.broker.partition.transactions",
        "kgateway.records",
        "kgateway.wire",
    },
    "kgateway.broker.rounds": set(),
    "kgateway.coordination.placement": {"kgateway.security.permissions"},
    "kgateway.interfaces": _LOGIC | {"kgateway.broker.partition.producer_state", "kgateway.security.permissions"},
    "kgateway.security": {"kgateway.interfaces", "kgateway.security.permissions"},
    "kgateway.broker": _LOGIC
    | {
        "kgateway.broker.partition.transactions",
        "kgateway.broker.partition.producer_state",
        "kgateway.broker.rounds",
        "kgateway.coordination.placement",
        "kgateway.security.permissions",
    },
    "kgateway.broker.seaweed": _LOGIC
    | {"kgateway.broker", "kgateway.broker.partition.producer_state", "kgateway.security.permissions", "kgateway.tcp"},
    "kgateway.broker.seaweedmq": _LOGIC
    | {
        "kgateway.broker",
        "kgateway.broker.partition.producer_state",
        "kgateway.broker.seaweed",
        "kgateway.config.hosts",
        "kgateway.coordination.placement",
        "kgateway.security.permissions",
    },
    "kgateway.late_response": {"kgateway.wire"},
    "kgateway.tcp": {"kgateway.wire"},
    "kgateway.socket_file": set(),
    "kgateway.action_queue": set(),
    "kgateway.context": _LOGIC | {"kgateway.action_queue", "kgateway.config", "kgateway.security.permissions"},
    "kgateway.api": _LOGIC | {"kgateway.context", "kgateway.conversion", "kgateway.security.permissions"},
    "kgateway.topic_lookup": _LOGIC | {"kgateway.context", "kgateway.security.permissions"},
    "kgateway.admin": set(),
    "kgateway.admin.features": _LOGIC | {"kgateway.context"},
    "kgateway.admin.log_levels": _LOGIC | {"kgateway.context"},
    "kgateway.admin.config_forwarding": _LOGIC | {"kgateway.context"},
    "kgateway.admin.config_alteration": _LOGIC
    | {
        "kgateway.admin.config_forwarding",
        "kgateway.context",
        "kgateway.admin.log_levels",
        "kgateway.security.permissions",
    },
    "kgateway.conversion": _LOGIC | {"kgateway.context"},
    "kgateway.fetch": _LOGIC
    | {
        "kgateway.context",
        "kgateway.conversion",
        "kgateway.late_response",
        "kgateway.topic_lookup",
        "kgateway.security.permissions",
    },
    "kgateway.coordination": _LOGIC | {"kgateway.security.permissions"},
    "kgateway.groups": _LOGIC
    | {
        "kgateway.broker.rounds",
        "kgateway.config",
        "kgateway.context",
        "kgateway.coordination",
        "kgateway.coordination.placement",
        "kgateway.security.permissions",
        "kgateway.transactions",
    },
    "kgateway.transactions": _LOGIC
    | {
        "kgateway.broker.rounds",
        "kgateway.config",
        "kgateway.context",
        "kgateway.coordination",
        "kgateway.coordination.placement",
        "kgateway.security.permissions",
    },
    "kgateway.produce": _LOGIC
    | {
        "kgateway.context",
        "kgateway.conversion",
        "kgateway.topic_lookup",
        "kgateway.security.permissions",
        "kgateway.transactions",
    },
    "kgateway.handlers": _LOGIC
    | {
        "kgateway.admin.config_alteration",
        "kgateway.api",
        "kgateway.broker.partition.producer_state",
        "kgateway.conversion",
        "kgateway.admin.features",
        "kgateway.fetch",
        "kgateway.groups",
        "kgateway.late_response",
        "kgateway.admin.log_levels",
        "kgateway.topic_lookup",
        "kgateway.produce",
        "kgateway.security.permissions",
        "kgateway.transactions",
    },
    "kgateway.observe.printable": set(),
    "kgateway.observe.reasons": {"kgateway.wire"},
    "kgateway.observe": {"kgateway.wire"},
    "kgateway.control.client": set(),
    "kgateway.control": {"kgateway.observe", "kgateway.observe.reasons", "kgateway.wire"},
    "kgateway.server": _LOGIC
    | {
        "kgateway",
        "kgateway.action_queue",
        "kgateway.broker",
        "kgateway.broker.seaweed",
        "kgateway.broker.seaweedmq",
        "kgateway.compilation",
        "kgateway.config",
        "kgateway.context",
        "kgateway.control",
        "kgateway.extras",
        "kgateway.late_response",
        "kgateway.admin.log_levels",
        "kgateway.observe",
        "kgateway.observe.printable",
        "kgateway.observe.reasons",
        "kgateway.security",
        "kgateway.security.permissions",
        "kgateway.socket_file",
        "kgateway.tcp",
    },
    "kgateway.server.process.tls": {"kgateway.config", "kgateway.server"},
    "kgateway.embedded": _LOGIC | {"kgateway.server"},
    "kgateway.testing": {"kgateway.config"},
    "kgateway.client": {"kgateway", "kgateway.messages", "kgateway.records", "kgateway.wire"},
    "kgateway.spark.seaweed.filer": {"kgateway.broker.seaweed", "kgateway.spark"},
    "kgateway.spark": {
        "kgateway.broker",  # of the log: how its files are named, and their content
        "kgateway.broker.partition.transactions",
        "kgateway.broker.seaweed",  # of SeaweedMQ: the same, and its readers
        "kgateway.broker.seaweedmq",
        "kgateway.client",
        "kgateway.messages",
        "kgateway.records",
        "kgateway.spark.seaweed.filer",
        "kgateway.wire",
    },
    "kgateway.cli": {
        "kgateway",
        "kgateway.cli.completion",
        "kgateway.client",
        "kgateway.compilation",
        "kgateway.config",
        "kgateway.control.client",
        "kgateway.extras",
        "kgateway.messages",
        "kgateway.observe.printable",
        "kgateway.records",
        "kgateway.wire",
    },
    "kgateway.cli.main": {
        "kgateway",
        "kgateway.cli",
        "kgateway.cli.completion",
        "kgateway.compilation",
        "kgateway.extras",
        "kgateway.server.process.tls",
    },
    "kgateway.cli.log": {"kgateway.broker", "kgateway.cli", "kgateway.observe.printable"},
    "kgateway.cli.completion": {"kgateway.cli", "kgateway.client", "kgateway.cluster"},
    "kgateway.cli.topic_configs": {"kgateway.cli", "kgateway.cluster"},
    "kgateway.cli.spark.session": {
        "kgateway.cli",
        "kgateway.client",
        "kgateway.config",
        "kgateway.observe.printable",
        "kgateway.spark",
        "kgateway.wire",
    },
    "kgateway.cli.spark.locations": {"kgateway.cli", "kgateway.cli.spark.session", "kgateway.spark"},
    "kgateway.cli.spark.report": {
        "kgateway.cli",
        "kgateway.cli.spark.locations",
        "kgateway.cli.spark.session",
        "kgateway.client",
        "kgateway.observe.printable",
        "kgateway.spark",
    },
    "kgateway.cli.spark.backfill": {
        "kgateway.cli",
        "kgateway.cli.spark.session",
        "kgateway.client",
        "kgateway.observe.printable",
        "kgateway.records",
        "kgateway.spark",
        "kgateway.wire",
    },
    "kgateway.cli.spark.sql": {
        "kgateway.cli",
        "kgateway.cli.spark.locations",
        "kgateway.cli.spark.session",
        "kgateway.cli.spark.sql_output",
        "kgateway.observe.printable",
        "kgateway.spark",
    },
    "kgateway.cli.spark.sql_output": {
        "kgateway.cli",
        "kgateway.cli.spark.locations",
        "kgateway.observe.printable",
        "kgateway.spark",
    },
    "kgateway.cli.spark.archive": {
        "kgateway.cli",
        "kgateway.cli.spark.locations",
        "kgateway.cli.spark.session",
        "kgateway.spark",
    },
    "kgateway.cli.spark.verification": {
        "kgateway.cli",
        "kgateway.cli.spark.archive",
        "kgateway.cli.spark.locations",
        "kgateway.cli.spark.session",
        "kgateway.observe.printable",
        "kgateway.spark",
    },
    "kgateway.cli.spark.compact": {
        "kgateway.cli",
        "kgateway.cli.spark.archive",
        "kgateway.cli.spark.locations",
        "kgateway.cli.spark.session",
        "kgateway.config",
        "kgateway.spark",
    },
    "kgateway.cli.seaweedmq.dev": {"kgateway.broker.seaweed", "kgateway.cli", "kgateway.config"},
    "kgateway.cli.seaweedmq.inspection": {"kgateway.broker.seaweed", "kgateway.broker.seaweedmq", "kgateway.cli"},
    "kgateway.cli.seaweedmq.cluster": {
        "kgateway.broker.seaweed",
        "kgateway.broker.seaweedmq",
        "kgateway.cli",
        "kgateway.cli.seaweedmq.inspection",
    },
    "kgateway.cli.seaweedmq.verification": {
        "kgateway.broker.seaweedmq",
        "kgateway.cli",
        "kgateway.cli.seaweedmq.cluster",
    },
    "kgateway.cli.seaweedmq.stats": {"kgateway.broker.seaweedmq", "kgateway.cli", "kgateway.cli.seaweedmq.cluster"},
    "kgateway.cli.seaweedmq.mapping": {"kgateway.broker.seaweedmq", "kgateway.cli", "kgateway.cli.seaweedmq.cluster"},
}

# package -> its sub-folders, each of which may import those before it: so they form no circle
FOLDERS = {
    "kgateway.broker": ("partition", "log", "seaweed", "seaweedmq"),
    "kgateway.broker.log": ("files", "segments", "recovery", "data_folder", "partition", "compaction", "inspection"),
    "kgateway.broker.seaweed": ("protos", "grpc", "security", "calls", "filer", "chain", "dev"),
    "kgateway.broker.seaweedmq": (
        *("formats", "layout", "ledger", "leadership", "files", "publishing", "topics", "tail"),
        *("partitions", "leader", "standby", "inspection"),
    ),
    "kgateway.cli": ("common", "gateway", "produce", "consume", "groups", "topics", "spark", "seaweedmq"),
    "kgateway.groups": ("assignors", "classic", "consumer"),
    "kgateway.messages": ("stored", "unserved"),
    "kgateway.server": ("process",),
    "kgateway.spark": (
        *("decoders", "http", "logs", "seaweed", "readers", "writers", "archive", "backfill", "compact", "sql"),
        "report",
    ),
}

_VALUES = {"twisted.internet.defer", "twisted.internet.interfaces", "twisted.logger", "twisted.python.failure"}

# what may use Twisted -> how much of it; only the server has sockets, and only one function of it the reactor
MAY_IMPORT_TWISTED = {
    "kgateway.cluster": _VALUES,
    "kgateway.broker": _VALUES,
    "kgateway.broker.rounds": _VALUES,
    "kgateway.broker.seaweed": {"twisted"},
    "kgateway.broker.seaweedmq": _VALUES | {"twisted.internet.task"},
    "kgateway.interfaces": _VALUES,
    "kgateway.action_queue": _VALUES,
    "kgateway.late_response": _VALUES,
    "kgateway.context": _VALUES,
    "kgateway.api": {"twisted.plugin"},
    "kgateway.admin.config_alteration": _VALUES,
    "kgateway.topic_lookup": _VALUES,
    "kgateway.conversion": _VALUES,
    "kgateway.fetch": _VALUES,
    "kgateway.produce": _VALUES,
    "kgateway.coordination": _VALUES,
    "kgateway.groups": _VALUES,
    "kgateway.transactions": _VALUES,
    "kgateway.handlers": _VALUES,
    "kgateway.observe": _VALUES | {"twisted.internet.task"},
    "kgateway.control": {"twisted"},
    "kgateway.tcp": {"twisted"},
    "kgateway.server": {"twisted"},
    "kgateway.embedded": _VALUES,
    "kgateway.spark.seaweed.filer": {
        "twisted.internet.defer",
        "twisted.internet.pollreactor",
        "twisted.internet.threads",
    },
    "kgateway.cli.main": {"twisted.scripts"},
    "kgateway.cli.seaweedmq.inspection": {"twisted.internet.defer", "twisted.internet.task"},
}


def _modules() -> list[tuple[str, Path]]:
    """
    Modules by name. `handlers/` is installed as `kgateway.handlers`, by a link in `kgateway/`.
    """
    homes = ((ROOT / "kgateway", "kgateway"), (ROOT / "handlers", "kgateway.handlers"))
    return [
        (".".join([package, *path.relative_to(home).with_suffix("").parts]).removesuffix(".__init__"), path)
        for home, package in homes
        for path in sorted(home.rglob("*.py"))
        if not path.is_relative_to(home / "handlers")
    ]


@cache
def _imports(path: Path) -> list[str]:
    return [*_imported(ast.parse(path.read_text()), path)]


def _imported(tree: ast.Module, path: Path) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            module = node.module or ""
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names if _is_module(f"{module}.{alias.name}"))


@cache
def _is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


def _package(module: str) -> str:
    fitting = [package for package in MAY_IMPORT if f"{module}.".startswith(f"{package}.")]
    return max(fitting, key=len)


@pytest.mark.parametrize(("module", "path"), _modules(), ids=[module for module, _ in _modules()])
def test_imports_go_down_the_layers(module: str, path: Path) -> None:
    """
    A module imports its own package and the packages allowed for it, and Twisted only where allowed.
    """
    package = _package(module)
    assert package != "kgateway" or module == "kgateway", f"{module} belongs to no layer: give its package a line"
    for name in _imports(path):
        top = name.split(".")[0]
        if top == "kgateway":
            assert _package(name) in {package, *_EVERYWHERE, *MAY_IMPORT[package]}, f"{module} imports {name}"
        allowed = MAY_IMPORT_TWISTED.get(package, set())
        assert top != "twisted" or any(f"{name}.".startswith(f"{part}.") for part in allowed), (
            f"{module} imports {name}"
        )


@pytest.mark.parametrize(("module", "path"), _modules(), ids=[module for module, _ in _modules()])
def test_handlers_do_not_import_each_other(module: str, path: Path) -> None:
    """
    Plugins are found among the objects of modules, so an imported handler would be found twice.
    """
    in_handlers = module.startswith("kgateway.handlers.")
    assert not in_handlers or not any(name.startswith("kgateway.handlers") for name in _imports(path))


def test_only_the_service_imports_the_reactor() -> None:
    """
    All other code gets a reactor as an argument.
    """
    importing = [module for module, path in _modules() if "import reactor" in path.read_text()]
    assert importing == ["kgateway.server.service"]


@pytest.mark.parametrize(("module", "path"), _modules(), ids=[module for module, _ in _modules()])
def test_sub_folders_form_no_cycle(module: str, path: Path) -> None:
    """
    A module in a sub-folder imports only sibling folders that precede its own in the row of their package.
    """
    for package, folders in FOLDERS.items():
        folder = _folder_in(package, module)
        if folder is None:
            continue
        assert folder in folders, f"{package}.{folder} has no place in the row of {package}"
        for name in _imports(path):
            other = _folder_in(package, name)
            if other is not None:
                assert folders.index(other) <= folders.index(folder), f"{module} imports {name}"


def test_every_package_with_sub_folders_has_a_row() -> None:
    """
    The row has the order in which the sub-folders build on each other.
    """
    homes = {path.parent for _, path in _modules()}
    nested = {home.parent for home in homes if home.parent != ROOT and home.parent != ROOT / "kgateway"}
    assert {".".join(home.relative_to(ROOT).parts) for home in nested} == set(FOLDERS)


def _folder_in(package: str, module: str) -> str | None:
    """
    The sub-folder of the package that contains the module, if any.
    """
    if not module.startswith(f"{package}."):
        return None
    folder = module.removeprefix(f"{package}.").partition(".")[0]
    return folder if (ROOT / package.replace(".", "/") / folder).is_dir() else None
