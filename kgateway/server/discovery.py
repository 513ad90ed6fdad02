"""
Finds plugins: the built-in handlers, the modules that other distributions drop into `twisted/plugins`, and packages
named by `--handlers`.

Twisted's own `getPlugins` logs a module that cannot be imported and goes on. A gateway that silently lacks a handler
its operator installed is worse than one that does not start, so the modules are imported here, and any that mentions
kgateway has to work. Others are not touched.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import files, packages_distributions, version
from pathlib import Path
from pkgutil import iter_modules, walk_packages
from traceback import StackSummary, TracebackException
from types import ModuleType

from twisted.plugin import IPlugin

import kgateway
from kgateway.interfaces import IApiFilter, IApiHandler
from kgateway.server.registry import Plugin, PluginError

BUILT_IN = "handlers"
_DROPPED = "twisted.plugins"
_MARK = b"kgateway"
_KINDS = (IApiHandler, IApiFilter)
_IMPORTING = (__file__, import_module.__code__.co_filename, "<frozen importlib")  # frames that explain nothing


def discover(packages: Iterable[str]) -> list[Plugin]:
    """
    All plugins, each once, by the module that it was found in first.
    """
    found = _plugins_in(_built_in())
    for module in _dropped_in():
        found += _plugins_dropped(module)
    for name in packages:
        found += _plugins_in(_package(name)) or _refuse_empty(name)
    firsts: dict[int, Plugin] = {}
    for plugin in found:
        firsts.setdefault(id(plugin.value), plugin)
    return list(firsts.values())


def _built_in() -> Iterator[ModuleType]:
    """
    The handlers that are beside kgateway, and no others of that name.
    """
    beside, first = Path(kgateway.__file__).parents[1] / BUILT_IN, Path(*_imported(BUILT_IN).__path__[:1])
    if not first.samefile(beside):
        raise PluginError(
            f"{first} hides the built-in handlers, which are in {beside}: start in another folder, or rename it"
        )
    return _package(BUILT_IN)


def _package(name: str) -> Iterator[ModuleType]:
    """
    The package, and the modules in it that are not programs.
    """
    package = _imported(name)
    yield package
    for module in walk_packages(getattr(package, "__path__", ()), f"{name}."):
        if not module.name.endswith(".__main__"):
            yield _imported(module.name)


def _dropped_in() -> Iterator[ModuleType]:
    for module in iter_modules(import_module(_DROPPED).__path__):
        source = Path(getattr(module.module_finder, "path", ""), f"{module.name}.py")
        if source.is_file() and _MARK in source.read_bytes():
            yield _imported(f"{_DROPPED}.{module.name}")


def _plugins_dropped(module: ModuleType) -> list[Plugin]:
    """
    The plugins of a dropped-in module, which may be there for something else too: a command of twistd, say.
    """
    others = any(IPlugin.providedBy(value) for value in vars(module).values())
    return _plugins_in([module]) or ([] if others else _refuse_empty(module.__name__))


def _plugins_in(modules: Iterable[ModuleType]) -> list[Plugin]:
    """
    The plugins among the names of the modules. A class is none; where there is nothing but the class, whoever wrote it
    forgot to make the instance.
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
                f"{kind.__module__}.{kind.__name__} is a class, and a plugin is an instance: put "
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
            raise PluginError(
                f"there is no package {name}: install it where kgateway is installed, or put its folder on PYTHONPATH"
            ) from None
        what = f"{type(error).__name__}: {error}"
        raise PluginError(
            f"the plugin module {name} cannot be imported: {what}; mend it, or start without it\n{_traceback(error)}"
        ) from error


def _traceback(error: BaseException) -> str:
    """
    How the import came to the error, less what every import goes through.
    """
    told = TracebackException.from_exception(error)
    told.stack = StackSummary.from_list([frame for frame in told.stack if not frame.filename.startswith(_IMPORTING)])
    return "".join(told.format()).rstrip()


def provider(module: str) -> str:
    """
    The distribution a module is from, with its version; the module itself where that is not known. The first look takes
    a moment: it goes through all that are installed.
    """
    names = set(_distributions().get(module.partition(".")[0], ()))
    if len(names) > 1:  # a namespace that they share, such as twisted.plugins
        places = {f"{module.replace('.', '/')}{end}" for end in (".py", "/__init__.py")}
        names = {name for name in names if any(str(file) in places for file in files(name) or ())}
    return " ".join([*names, *map(version, names)]) if len(names) == 1 else module


@cache
def _distributions() -> Mapping[str, list[str]]:
    return packages_distributions()
