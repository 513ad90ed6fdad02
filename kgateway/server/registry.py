"""
Which handler serves which API in which version, worked out from what the plugins declare.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from zope.interface.exceptions import Invalid
from zope.interface.verify import verifyObject

from kgateway.interfaces import IApiFilter, IApiHandler
from kgateway.wire.versions import show_versions


class PluginError(Exception):
    """
    The plugins cannot be served as they are; the message says which, and what to do.
    """


@dataclass(frozen=True, slots=True)
class Plugin:
    """
    A handler or filter, and the module it was found in.
    """

    value: Any
    module: str


@dataclass(frozen=True, slots=True)
class Row:
    """
    An active handler, as people see it.
    """

    key: int
    api: str
    versions: str
    handler: str
    module: str  # in which it was found
    priority: int
    filters: list[str]


class Registry:
    """
    The active handlers by key and version, and the filters around them.
    """

    def __init__(self, plugins: Iterable[Plugin]) -> None:
        self._handlers: list[Plugin] = []
        self._filters: list[Plugin] = []
        for plugin in plugins:
            (self._filters if IApiFilter.providedBy(plugin.value) else self._handlers).append(_checked(plugin))
        self.active: dict[tuple[int, int], Plugin] = {}
        for plugin in sorted(self._handlers, key=lambda plugin: -plugin.value.priority):
            self._claim(plugin)
        self.advertised = dict(sorted(self._advertised()))
        self._check_filters()

    def filters(self, request: type) -> list[IApiFilter]:
        """
        What stands around the handler of a request, the outermost first.
        """
        fitting = [plugin.value for plugin in self._filters if request in plugin.value.requests]
        return sorted(fitting, key=lambda value: -value.priority)

    def rows(self) -> list[Row]:
        """
        The active handlers, by key and version.
        """
        served: dict[tuple[int, str], list[int]] = {}
        plugins = {plugin.value.name: plugin for plugin in self._handlers}
        for (key, version), plugin in self.active.items():
            served.setdefault((key, plugin.value.name), []).append(version)
        return [self._row(key, plugins[name], sorted(versions)) for (key, name), versions in sorted(served.items())]

    def _row(self, key: int, plugin: Plugin, versions: list[int]) -> Row:
        handler = plugin.value
        return Row(
            key=key,
            api=api_name(handler.request),
            versions=show_versions(range(versions[0], versions[-1] + 1)),
            handler=handler.name,
            module=plugin.module,
            priority=handler.priority,
            filters=[value.name for value in self.filters(handler.request)],
        )

    def _claim(self, plugin: Plugin) -> None:
        """
        Give the handler its versions; those of higher priority have theirs.
        """
        handler = plugin.value
        for version in handler.versions:
            place = handler.request.__spec__.key, version
            taken = self.active.setdefault(place, plugin)
            if taken is not plugin and not (taken.value.replaces and taken.value.priority > handler.priority):
                raise PluginError(
                    f"{_title(taken)} and {_title(plugin)} both serve {api_name(handler.request)} v{version}: the one "
                    f"that is meant to needs replaces=True and a priority above the other's"
                )

    def _advertised(self) -> Iterator[tuple[int, tuple[range, str]]]:
        """
        What ApiVersions tells: the range of each key.
        """
        keys = {key for key, _ in self.active}
        for key in keys:
            plugins = {plugin.value.name: plugin for (other, _), plugin in self.active.items() if other == key}
            versions = {version for plugin in plugins.values() for version in plugin.value.advertised}
            name = api_name(next(iter(plugins.values())).value.request)
            if versions != set(range(min(versions), max(versions) + 1)):
                raise PluginError(
                    f"the versions of {name} have a gap: {sorted(versions)}; clients take them for a range"
                )
            yield key, (range(min(versions), max(versions) + 1), name)

    def _check_filters(self) -> None:
        served = {plugin.value.request for plugin in self.active.values()}
        for plugin in self._filters:
            for request in plugin.value.requests:
                if request not in served:
                    raise PluginError(f"{_title(plugin)} stands around {request.__name__}, which nothing here serves")


def api_name(request: type) -> str:
    """
    The name of an API, by its request.
    """
    return request.__name__.removesuffix("Request")


def _checked(plugin: Plugin) -> Plugin:
    value = plugin.value
    interface = IApiFilter if IApiFilter.providedBy(value) else IApiHandler
    try:
        verifyObject(interface, value)
    except Invalid as wrong:
        raise PluginError(f"{plugin.module} has a plugin that is not whole: {wrong}") from None
    if interface is IApiHandler:
        _check_handler(plugin)
    elif not value.requests:
        raise PluginError(f"{_title(plugin)} names no request to stand around")
    return plugin


def _check_handler(plugin: Plugin) -> None:
    handler = plugin.value
    request, response = handler.request.__spec__, handler.response.__spec__
    if not handler.needs:
        raise PluginError(f"{_title(plugin)} declares nothing it needs: give needs=, or Free with the reason why")
    if request.key is None or request.key != response.key:
        raise PluginError(f"{_title(plugin)}: {request.name} and {response.name} are not of one API key")
    if not handler.versions or not set(handler.versions) <= set(request.versions) & set(response.versions):
        raise PluginError(
            f"{_title(plugin)} serves versions {show_versions(handler.versions)}, and the tables have "
            f"{show_versions(request.versions)}"
        )


def _title(plugin: Plugin) -> str:
    return f"{plugin.value.name} ({plugin.module})"
