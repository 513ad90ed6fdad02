"""
The handler of each API in each version, worked out from what the plugins declare.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from zope.interface.exceptions import Invalid
from zope.interface.verify import verifyObject

from kgateway.interfaces import IApiFilter, IApiHandler
from kgateway.wire.schema import Message, show_versions


class PluginError(Exception):
    """
    The plugins cannot be served as they are. The message says which one, and what to do.
    """


class NoSuchPackage(PluginError):
    """
    A package of plugins that is named is not installed.
    """


@dataclass(frozen=True, slots=True)
class Plugin:
    value: Any
    module: str


@dataclass(frozen=True, slots=True)
class FilterRow:
    filter: str
    module: str
    priority: int
    topics: tuple[str, ...]
    listeners: tuple[str, ...]
    principals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HandlerRow:
    key: int
    api: str
    versions: str
    handler: str
    module: str
    priority: int
    filters: list[FilterRow]  # the outermost first


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

    @property
    def services(self) -> list[type]:
        found = (
            kind for _, plugin in sorted(self.active.items(), key=lambda item: item[0]) for kind in plugin.value.starts
        )
        return list(dict.fromkeys(found))

    def filters(self, request: type[Message]) -> list[IApiFilter]:
        """
        The filters around the handlers of an API, the outermost first. They are found by key, so a handler that reads
        the request by a table of its own does not bypass them.
        """
        return [plugin.value for plugin in self._around(request)]

    def _around(self, request: type[Message]) -> list[Plugin]:
        key = request.__spec__.key
        fitting = [plugin for plugin in self._filters if key in _keys(plugin.value.requests)]
        return sorted(fitting, key=lambda plugin: -plugin.value.priority)

    def rows(self) -> list[HandlerRow]:
        served: dict[int, tuple[Plugin, list[int]]] = {}
        for key, version in sorted(self.active):
            plugin = self.active[key, version]
            served.setdefault(id(plugin), (plugin, []))[1].append(version)
        return [self._row(plugin, versions) for plugin, versions in served.values()]

    def _row(self, plugin: Plugin, versions: list[int]) -> HandlerRow:
        handler = plugin.value
        return HandlerRow(
            key=handler.request.__spec__.key,
            api=api_name(handler.request),
            versions=_shown(versions),
            handler=handler.name,
            module=plugin.module,
            priority=handler.priority,
            filters=[_filter_row(plugin) for plugin in self._around(handler.request)],
        )

    def _claim(self, plugin: Plugin) -> None:
        """
        Give the handler its versions, except those that a handler of higher priority has.
        """
        handler = plugin.value
        for version in handler.versions:
            taken = self.active.setdefault((handler.request.__spec__.key, version), plugin)
            if taken is not plugin and not (taken.value.replaces and taken.value.priority > handler.priority):
                raise PluginError(
                    f"{_title(taken)} and {_title(plugin)} both serve {api_name(handler.request)} v{version}: the one "
                    f"that should serve it needs replaces=True and a priority above {handler.priority}, the priority "
                    "of the other"
                )

    def _advertised(self) -> Iterator[tuple[int, tuple[range, str]]]:
        """
        The range of versions that ApiVersions advertises for each key.
        """
        keys = {key for key, _ in self.active}
        for key in keys:
            plugins = {id(plugin): plugin for (other, _), plugin in self.active.items() if other == key}
            versions = {version for plugin in plugins.values() for version in plugin.value.advertised}
            name = api_name(next(iter(plugins.values())).value.request)
            if versions != set(range(min(versions), max(versions) + 1)):
                whose = ", ".join(_title(plugin) for plugin in plugins.values())
                raise PluginError(
                    f"the versions of {name} have a gap, but clients expect a range: also serve those that are "
                    f"missing from {_shown(versions)}, which {whose} serves"
                )
            yield key, (range(min(versions), max(versions) + 1), name)

    def _check_filters(self) -> None:
        for plugin in self._filters:
            for request in plugin.value.requests:
                if request.__spec__.key not in self.advertised:
                    raise PluginError(
                        f"{_title(plugin)} wraps {api_name(request)}, which no handler serves: install a handler for "
                        "it, or remove it from the filter"
                    )


def api_name(request: type) -> str:
    return request.__name__.removesuffix("Request")


def _checked(plugin: Plugin) -> Plugin:
    value = plugin.value
    interface = IApiFilter if IApiFilter.providedBy(value) else IApiHandler
    try:
        verifyObject(interface, value)
    except Invalid as wrong:
        raise PluginError(f"{plugin.module} has an incomplete plugin; `api` makes complete ones: {wrong}") from None
    if interface is IApiHandler:
        _check_handler(plugin)
    elif not value.requests:
        raise PluginError(f"{_title(plugin)} wraps nothing: name requests, as in @around(ProduceRequest)")
    return plugin


def _check_handler(plugin: Plugin) -> None:
    handler = plugin.value
    request, response = handler.request.__spec__, handler.response.__spec__
    if not handler.needs:
        raise PluginError(
            f"{_title(plugin)} does not declare which permissions clients need: give needs=Operation.READ.on(...) or "
            "similar, or needs=Free(...) with the reason why everybody may call it"
        )
    if request.key is None or request.key != response.key:
        raise PluginError(
            f"{_title(plugin)} takes {request.name}, key {request.key}, but returns {response.name}, key "
            f"{response.key}: use a request and a response of the same API"
        )
    known = set(request.versions) & set(response.versions)
    if not handler.versions or not set(handler.versions) <= known:
        raise PluginError(
            f"{_title(plugin)} serves the versions {show_versions(handler.versions)}: name versions that its tables "
            f"have, {_shown(known)}"
        )


def _title(plugin: Plugin) -> str:
    return f"{plugin.value.name} ({plugin.module})"


def _filter_row(plugin: Plugin) -> FilterRow:
    value = plugin.value
    return FilterRow(value.name, plugin.module, value.priority, value.topics, value.listeners, value.principals)


def _keys(requests: Iterable[type[Message]]) -> set[int | None]:
    return {request.__spec__.key for request in requests}


def _shown(versions: Iterable[int]) -> str:
    """
    The versions with their gaps: `0-3, 5`.
    """
    ranges: list[range] = []
    for version in sorted(versions):
        if ranges and ranges[-1].stop == version:
            ranges[-1] = range(ranges[-1].start, version + 1)
        else:
            ranges.append(range(version, version + 1))
    return ", ".join(map(show_versions, ranges)) or "none"
