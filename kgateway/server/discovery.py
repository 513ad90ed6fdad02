"""
Finds plugins: the built-in handlers, the modules that other distributions drop into `twisted/plugins`, and packages
named by `--handlers`.

Twisted's own `getPlugins` logs a module that cannot be imported and goes on. A gateway that silently lacks a handler
its operator installed is worse than one that does not start, so the modules are imported here, and any that mentions
`kgateway.api` has to work.
"""

from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.metadata import distributions, packages_distributions, version
from pathlib import Path
from pkgutil import iter_modules, walk_packages
from types import ModuleType

from kgateway.interfaces import IApiFilter, IApiHandler
from kgateway.server.registry import Plugin, PluginError

BUILT_IN = "handlers"
_DROPPED = "twisted.plugins"
_MARK = b"kgateway.api"
_KINDS = (IApiHandler, IApiFilter)


def discover(packages: Iterable[str]) -> list[Plugin]:
    """
    All plugins, each once.
    """
    found = _plugins_of(_package(BUILT_IN))
    for module in _dropped_in():
        found |= _found(module.__name__, [module])
    for name in packages:
        found |= _found(name, _package(name))
    return list(found.values())


def _found(name: str, modules: Iterable[ModuleType]) -> dict[int, Plugin]:
    plugins = _plugins_of(modules)
    if not plugins:
        raise PluginError(f"{name} has no plugin: one is made by `api` or `around` of kgateway.api")
    return plugins


def _plugins_of(modules: Iterable[ModuleType]) -> dict[int, Plugin]:
    """
    By identity, for a plugin may be imported into several modules.
    """
    return {id(plugin.value): plugin for module in modules for plugin in _plugins_in(module)}


def _package(name: str) -> Iterator[ModuleType]:
    """
    The package, and the modules in it.
    """
    package = _imported(name)
    yield package
    for module in walk_packages(getattr(package, "__path__", ()), f"{name}.", onerror=_refuse):
        yield _imported(module.name)


def _dropped_in() -> Iterator[ModuleType]:
    for module in iter_modules(import_module(_DROPPED).__path__):
        source = Path(getattr(module.module_finder, "path", ""), f"{module.name}.py")
        if source.is_file() and _MARK in source.read_bytes():
            yield _imported(f"{_DROPPED}.{module.name}")


def _imported(name: str) -> ModuleType:
    try:
        return import_module(name)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name == name:
            raise PluginError(f"there is no package {name}: is it installed, and in this environment?") from None
        raise PluginError(f"the plugin module {name} cannot be imported: {type(error).__name__}: {error}") from error


def _refuse(name: str) -> None:
    _imported(name)


def _plugins_in(module: ModuleType) -> list[Plugin]:
    """
    The plugins among the names of the module. A class is none: whoever wrote it forgot to make the instance.
    """
    plugins = []
    for value in vars(module).values():
        if isinstance(value, type):
            if value.__module__ == module.__name__ and any(kind.implementedBy(value) for kind in _KINDS):
                raise PluginError(f"{module.__name__}.{value.__name__} is a class: a plugin is an instance of it")
        elif any(kind.providedBy(value) for kind in _KINDS):
            plugins.append(Plugin(value, module.__name__))
    return plugins


def provider(module: str) -> str:
    """
    The distribution a module is from, with its version; the module itself where it is from none. Slow: it looks
    through all that are installed.
    """
    top, dropped = module.partition(".")[0], f"{module.replace('.', '/')}.py"
    names = packages_distributions().get(top, [])
    if module.startswith(f"{_DROPPED}."):
        names = [found.name for found in distributions() if any(str(file) == dropped for file in found.files or ())]
    return f"{names[0]} {version(names[0])}" if names else module
