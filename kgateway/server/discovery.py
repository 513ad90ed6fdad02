"""
Finds plugins: the built-in handlers, the modules that other distributions put into `twisted/plugins`, and packages
named by `--handlers`. It also finds out which distribution a plugin is from.

Twisted's own `getPlugins` logs a module that cannot be imported, and continues. A gateway that silently lacks a handler
its operator installed is worse than one that does not start. So the modules are imported here, and every one must work,
whatever its text. Only one of a distribution that nowhere mentions kgateway, such as another program on Twisted, may
fail: then the log says so.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import cache
from importlib import import_module
from importlib.metadata import files, packages_distributions, version
from pathlib import Path
from pkgutil import walk_packages
from traceback import StackSummary, TracebackException
from types import ModuleType
from typing import Any

from twisted.logger import Logger
from twisted.plugin import IPlugin

from kgateway.interfaces import IApiFilter, IApiHandler
from kgateway.log_messages import NOT_SEARCHED
from kgateway.server.process.twisted_plugins import modules_dropped_in
from kgateway.server.registry import FilterRow, HandlerRow, NoSuchPackage, Plugin, PluginError, Registry

_log = Logger()

BUILT_IN = "kgateway.handlers"
_MARK = b"kgateway"
_KINDS = (IApiHandler, IApiFilter)
_IMPORTING = (__file__, import_module.__code__.co_filename, "<frozen importlib")  # frames that explain nothing


def discover(packages: Iterable[str]) -> list[Plugin]:
    """
    All plugins, each once, with the first module that it was found in.
    """
    found = _plugins_in(_package(BUILT_IN))
    for name in modules_dropped_in():
        found += _plugins_dropped(name)
    for name in packages:
        found += _plugins_in(_package(name)) or _refuse_empty(name)
    firsts: dict[int, Plugin] = {}
    for plugin in found:
        firsts.setdefault(id(plugin.value), plugin)
    return list(firsts.values())


def _package(name: str) -> Iterator[ModuleType]:
    package = _imported(name)
    yield package
    path = getattr(package, "__path__", ())
    for module in walk_packages(path, f"{name}."):
        if not module.name.endswith(".__main__"):
            yield _imported(module.name)
    for folder in _folders_that_are_no_packages(path):
        _log.warn(NOT_SEARCHED, what=folder, why="it has no __init__.py")


def _folders_that_are_no_packages(path: Iterable[str]) -> Iterator[Path]:
    """
    The folders of modules that `walk_packages` leaves out.
    """
    for place in path:
        for file in sorted(Path(place).rglob("*/*.py")):
            folder = file.parent
            if folder != Path(place) and not (folder / "__init__.py").exists() and file == min(folder.glob("*.py")):
                yield folder


def _plugins_dropped(name: str) -> list[Plugin]:
    """
    The plugins of a module in `twisted/plugins`. It may be there for another reason, such as a command of twistd.
    """
    try:
        module = _imported(name)
    except PluginError as error:
        if not _is_of_another_program(name):
            raise
        _log.warn(NOT_SEARCHED, what=name, why=str(error).partition("\n")[0])
        return []
    found = _plugins_in([module])
    if found or any(IPlugin.providedBy(value) for value in vars(module).values()) or _is_of_another_program(name):
        return found
    return _refuse_empty(name)


def _is_of_another_program(module: str) -> bool:
    """
    Whether the module was installed by a distribution that does not mention kgateway, in its modules or requirements.
    """
    owners = [name for name in _distributions().get(module.partition(".")[0], ()) if _has_file(name, module)]
    return bool(owners) and not any(_mentions_kgateway(owner) for owner in owners)


def _mentions_kgateway(distribution: str) -> bool:
    texts = [file for file in files(distribution) or () if file.name.endswith((".py", "METADATA"))]
    return any(_MARK in Path(str(file.locate())).read_bytes() for file in texts)


def _plugins_in(modules: Iterable[ModuleType]) -> list[Plugin]:
    """
    The plugins among the names of the modules. A class is no plugin: if there is no instance of it, its author forgot
    to make one.
    """
    plugins, classes = [], []
    for module in modules:
        for value in list(vars(module).values()):
            if isinstance(value, type):
                if value.__module__ == module.__name__ and any(kind.implementedBy(value) for kind in _KINDS):
                    classes.append(value)
            elif any(kind.providedBy(value) for kind in _KINDS):
                plugins.append(Plugin(value, module.__name__))
    for kind in classes:
        if not any(isinstance(plugin.value, kind) for plugin in plugins):
            raise PluginError(
                f"{kind.__module__}.{kind.__name__} is a class, but a plugin is an instance: put "
                f"`{kind.__name__.lower()} = {kind.__name__}()` below it"
            )
    return plugins


def _refuse_empty(name: str) -> list[Plugin]:
    raise PluginError(
        f"{name} has no plugin: write a function and put `@api(...)` or `@around(...)` of kgateway.api on it, or start "
        f"without {name}"
    )


def _imported(name: str) -> ModuleType:
    try:
        return import_module(name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
            raise NoSuchPackage(
                f"there is no package {name}: install it where kgateway is installed, or put its folder on PYTHONPATH"
            ) from None
        what = f"{type(error).__name__}: {error}"
        raise PluginError(
            f"the plugin module {name} cannot be imported: {what}; fix it, or start without it\n{_traceback(error)}"
        ) from error


def _traceback(error: BaseException) -> str:
    """
    The traceback of a failed import, without the frames of the import machinery.
    """
    traceback = TracebackException.from_exception(error)
    traceback.stack = StackSummary.from_list(
        [frame for frame in traceback.stack if not frame.filename.startswith(_IMPORTING)]
    )
    return "".join(traceback.format()).rstrip()


def provider(module: str) -> str:
    """
    The distribution that a module is from, with its version, or the module itself if that is not known. The first call
    takes a moment, because it reads the metadata of all installed distributions.
    """
    names = set(_distributions().get(module.partition(".")[0], ()))
    if len(names) > 1:  # a namespace that they share, such as twisted.plugins
        names = {name for name in names if _has_file(name, module)}
    return " ".join([*names, *map(version, names)]) if len(names) == 1 else module


def _has_file(distribution: str, module: str) -> bool:
    places = {f"{module.replace('.', '/')}{end}" for end in (".py", "/__init__.py")}
    return any(str(file) in places for file in files(distribution) or ())


@cache
def _distributions() -> Mapping[str, list[str]]:
    return packages_distributions()


def plugin_rows(registry: Registry) -> Callable[[], list[dict[str, Any]]]:
    """
    The rows of `kgateway plugins`. The distributions are looked up when somebody first asks, because that takes a
    while.
    """
    known_provider = cache(provider)

    def with_provider(row: HandlerRow | FilterRow) -> dict[str, Any]:
        return asdict(row) | {"from": known_provider(row.module)}

    def rows() -> list[dict[str, Any]]:
        return [
            with_provider(row) | {"filters": [with_provider(filter_row) for filter_row in row.filters]}
            for row in registry.rows()
        ]

    return rows
