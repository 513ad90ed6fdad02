"""
Which handler serves which version, with which filters, and which plugins conflict.
"""

from types import SimpleNamespace
from typing import Any

import pytest
from zope.interface import Interface, directlyProvides

from kgateway.api import Around, Context, Handler, Operation, Resource, api, around
from kgateway.interfaces import IApiFilter, IApiHandler, Proceed
from kgateway.records.batch import BatchHeader
from kgateway.security.permissions import Free
from kgateway.server.registry import FilterRow, HandlerRow, Plugin, PluginError, Registry
from kgateway.wire.schema import Message, v
from kgateway.wire.types import i16
from tests.server.dispatcher import CountRequest, CountResponse, PingRequest, PingResponse, plugins

EVERYBODY = Free("a test")
FILTERS = "tests.server.test_registry._pass_on"


class WiderCountRequest(Message, key=30_000, versions="0-9"):
    """
    A plugin's own table for Count.
    """


class WiderCountResponse(Message, key=30_000, versions="0-9"):
    error_code: i16 = v()


def _handle(request: Any, context: Context) -> None: ...


async def _pass_on(request: Any, context: Context, proceed: Proceed) -> Message | None:
    return await proceed(request)


def handler(versions: str = "0-3", **options: Any) -> Handler:
    return api(CountRequest, CountResponse, versions=versions, **{"needs": EVERYBODY} | options)(_handle)


def replacing(versions: str, **options: Any) -> Handler:
    """
    A handler that may replace versions of others.
    """
    return handler(versions, **{"replaces": True, "priority": 1} | options)


def standing(*requests: type[Message], **options: Any) -> Around:
    return around(*requests, **options)(_pass_on)


def ping() -> Handler:
    return api(PingRequest, PingResponse, versions="0", needs=EVERYBODY)(_handle)


def refusal(*found: Plugin) -> str:
    """
    Why these plugins cannot be served.
    """
    with pytest.raises(PluginError) as caught:
        Registry(found)
    return str(caught.value)


def refused(*values: Handler | Around) -> str:
    """
    Why these plugins, found in a module named tests, cannot be served.
    """
    return refusal(*plugins(*values))


def served(*values: Handler) -> list[Handler]:
    """
    The handler of each version of Count, from 0 on.
    """
    active = Registry(plugins(*values)).active
    return [active[30_000, version].value for version in range(len(active))]


def test_a_handler_serves_its_declared_versions() -> None:
    value = handler("1-2")
    registry = Registry(plugins(value))
    assert {place: plugin.value for place, plugin in registry.active.items()} == {
        (30_000, 1): value,
        (30_000, 2): value,
    }


def test_two_handlers_may_share_an_api() -> None:
    """
    Each has versions of its own.
    """
    old, new = handler("0-1"), handler("2-3")
    assert served(old, new) == [old, old, new, new]


@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
def test_a_replacement_takes_a_range_of_versions(first: bool) -> None:
    """
    The other handler serves the rest, whichever was found first.
    """
    built_in, better = handler("0-3"), replacing("1-2")
    assert served(*([better, built_in] if first else [built_in, better])) == [built_in, better, better, built_in]


@pytest.mark.parametrize(
    "options",
    [
        {"replaces": False, "priority": 1},
        {"replaces": True, "priority": 0},
        {"replaces": True, "priority": -1},
        {"replaces": False, "priority": 0},
    ],
    ids=str,
)
def test_two_handlers_of_a_version_are_refused(options: dict[str, Any]) -> None:
    """
    A replacement needs permission and a higher priority, as the message says, so it is never an accident.
    """
    text = refused(handler(), replacing("2", **options))
    assert text.count("tests.server.test_registry._handle (tests)") == 2
    assert "both serve Count v2" in text
    assert "replaces=True and a priority above" in text


def test_the_highest_priority_of_several_replacements_serves() -> None:
    """
    A replacement may be replaced.
    """
    low, high = replacing("0-3"), replacing("2-3", priority=2)
    assert served(handler(), low, high) == [low, low, high, high]
    assert "both serve Count v0" in refused(handler(), low, replacing("0"))


def test_advertised_versions_are_those_of_all_handlers() -> None:
    """
    They are listed by key, with the name of the API; a handler that is replaced entirely adds none.
    """
    registry = Registry(plugins(handler("0-1", advertised="0-1"), handler("2"), ping()))
    assert registry.advertised == {30_000: (range(3), "Count"), 30_001: (range(1), "Ping")}
    registry = Registry(plugins(handler("1-2", advertised="0-2"), replacing("1-2")))
    assert registry.advertised == {30_000: (range(1, 3), "Count")}


def test_more_versions_may_be_advertised_than_served() -> None:
    """
    Some clients need that.
    """
    registry = Registry(plugins(handler("2-3", advertised="0-3")))
    assert registry.advertised == {30_000: (range(4), "Count")}
    assert (30_000, 0) not in registry.active


def test_a_gap_in_the_versions_is_refused() -> None:
    """
    Clients use the range from the smallest to the largest; the message names the versions and their providers.
    """
    text = refused(handler("0"), handler("2-3"))
    assert "the versions of Count have a gap" in text
    assert "missing from 0, 2-3" in text
    assert text.count("tests.server.test_registry._handle (tests)") == 2


def test_the_filter_of_highest_priority_is_the_outermost() -> None:
    """
    Those of equal priority have the order in which they were found.
    """
    low, high, other = standing(CountRequest), standing(CountRequest, priority=1), standing(PingRequest)
    also = standing(PingRequest, CountRequest)
    registry = Registry(plugins(handler(), ping(), low, high, other, also))
    assert registry.filters(CountRequest) == [high, low, also]
    assert registry.filters(PingRequest) == [other, also]


def test_another_table_does_not_bypass_a_filter() -> None:
    """
    A filter applies to an API, whichever table its handler uses.
    """
    wider = api(WiderCountRequest, WiderCountResponse, versions="4-9", needs=EVERYBODY)(_handle)
    guard = standing(CountRequest)
    registry = Registry(plugins(handler(), wider, guard))
    assert registry.filters(WiderCountRequest) == [guard]


def test_a_filter_of_an_unserved_api_is_refused() -> None:
    """
    What it should guard or change would go unguarded, unnoticed.
    """
    text = refused(handler(), standing(CountRequest, PingRequest))
    assert text.startswith(f"{FILTERS} (tests) wraps Ping, which no handler serves: install")


def test_a_filter_without_a_request_is_refused() -> None:
    """
    The message shows how to name one.
    """
    text = refused(handler(), standing())
    assert text == f"{FILTERS} (tests) wraps nothing: name requests, as in @around(ProduceRequest)"


def test_a_handler_must_declare_its_permissions() -> None:
    """
    Forgotten ones would open an API to everybody.
    """
    text = refused(handler(needs=()))
    assert text.startswith("tests.server.test_registry._handle (tests) does not declare which permissions")
    assert "needs=" in text
    assert "Free(" in text


@pytest.mark.parametrize(
    "needs",
    [
        EVERYBODY,
        Operation.READ.on(Resource.TOPIC),
        [Operation.READ.on(Resource.TOPIC), Operation.ALTER.on(Resource.GROUP)],
    ],
    ids=["nothing", "one", "several"],
)
def test_permissions_are_one_or_several_or_none_with_a_reason(needs: Any) -> None:
    assert Registry(plugins(handler(needs=needs))).active


def test_request_and_response_must_belong_to_one_api() -> None:
    """
    The message has both names and keys.
    """
    mixed = api(CountRequest, PingResponse, versions="0", needs=EVERYBODY)(_handle)
    assert "takes CountRequest, key 30000, but returns PingResponse, key 30001" in refused(mixed)


def test_a_message_without_a_key_is_no_request() -> None:
    keyless = api(BatchHeader, BatchHeader, versions="2", needs=EVERYBODY)(_handle)
    assert "BatchHeader, key None" in refused(keyless)


@pytest.mark.parametrize("versions", ["0-4", "none"])
def test_versions_must_be_in_the_tables(versions: str) -> None:
    """
    The message lists those that are.
    """
    text = refused(handler(versions, advertised="0"))
    assert text.endswith(f"serves the versions {versions}: name versions that its tables have, 0-3")


def test_both_tables_must_have_a_version() -> None:
    """
    A request that can be read but not answered is useless.
    """
    lopsided = api(WiderCountRequest, CountResponse, versions="0-4", needs=EVERYBODY)(_handle)
    assert refused(lopsided).endswith("name versions that its tables have, 0-3")


@pytest.mark.parametrize("interface", [IApiHandler, IApiFilter])
def test_an_incomplete_plugin_is_refused(interface: Interface) -> None:
    """
    A handwritten one must have everything that the interface names.
    """
    half = SimpleNamespace(name="half")
    directlyProvides(half, interface)
    text = refusal(Plugin(half, "acme.half"))
    assert text.startswith("acme.half has an incomplete plugin")
    assert "priority" in text


def test_a_row_describes_a_handler() -> None:
    """
    It has the versions, name, module, priority and filters, the outermost first.
    """
    low, high = standing(CountRequest, priority=1), standing(CountRequest, priority=2, topics=["orders"])
    found = [*plugins(handler(priority=7), module="acme.count"), *plugins(low, module="low"), *plugins(high)]
    assert Registry(found).rows() == [
        HandlerRow(
            key=30_000,
            api="Count",
            versions="0-3",
            handler="tests.server.test_registry._handle",
            module="acme.count",
            priority=7,
            filters=[
                FilterRow(FILTERS, "tests", 2, topics=("orders",), listeners=(), principals=()),
                FilterRow(FILTERS, "low", 1, topics=(), listeners=(), principals=()),
            ],
        )
    ]


def test_rows_are_sorted_by_key_and_version() -> None:
    """
    A handler whose middle was replaced has a row with the rest; one that is replaced entirely has none.
    """
    found = [
        *plugins(ping(), module="ping"),
        *plugins(handler(), module="built in"),
        *plugins(replacing("1"), module="better"),
        *plugins(handler("1", priority=-1), module="worse"),
    ]
    rows = [(row.api, row.versions, row.module) for row in Registry(found).rows()]
    assert rows == [("Count", "0, 2-3", "built in"), ("Count", "1", "better"), ("Ping", "0", "ping")]


def test_two_handlers_of_one_name_have_separate_rows() -> None:
    """
    Functions made by another function share a name.
    """
    rows = Registry([*plugins(handler("0-1"), module="one"), *plugins(handler("2-3"), module="two")]).rows()
    assert [(row.versions, row.module) for row in rows] == [("0-1", "one"), ("2-3", "two")]
