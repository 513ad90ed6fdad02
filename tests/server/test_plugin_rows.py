"""
The table of `kgateway plugins`.
"""

import json
from collections.abc import Callable

import pytest

from kgateway.api import Context, Handler, api, around
from kgateway.interfaces import Proceed
from kgateway.security.permissions import Free
from kgateway.server import discovery as module
from kgateway.server.discovery import plugin_rows
from kgateway.server.registry import Registry
from kgateway.wire.schema import Message
from tests.server.dispatcher import CountRequest, CountResponse, plugins

Provider = Callable[[str], str]


def _handle(request: CountRequest, context: Context) -> None: ...


@around(CountRequest, topics=["orders-*"], priority=4)
async def _watch(request: CountRequest, context: Context, proceed: Proceed) -> Message | None:
    return await proceed(request)


def handler(versions: str, **options: int) -> Handler:
    return api(CountRequest, CountResponse, versions=versions, needs=Free("a test"), **options)(_handle)  # type: ignore[arg-type]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """
    The modules whose provider was looked up.
    """
    modules: list[str] = []

    def provider(name: str) -> str:
        modules.append(name)
        return f"{name}-dist 1.0"

    monkeypatch.setattr(module, "provider", provider)
    return modules


def test_a_row_describes_a_handler(asked: list[str]) -> None:
    """
    It has the API, versions, handler, provider, priority and filters.
    """
    found = [*plugins(handler("0-2", priority=3), module="acme"), *plugins(_watch)]
    [row] = plugin_rows(Registry(found))()
    assert row["from"] == "acme-dist 1.0"
    assert (row["key"], row["api"], row["versions"], row["priority"]) == (30_000, "Count", "0-2", 3)
    assert row["handler"] == "tests.server.test_plugin_rows._handle"
    [around] = row["filters"]
    assert (around["filter"], around["from"]) == ("tests.server.test_plugin_rows._watch", "tests-dist 1.0")
    assert (around["priority"], around["topics"]) == (4, ("orders-*",))


def test_rows_are_json(asked: list[str]) -> None:
    """
    They are sent through the control socket.
    """
    rows = plugin_rows(Registry(plugins(handler("0-2"), _watch)))()
    [row] = json.loads(json.dumps(rows))
    assert row["filters"][0]["topics"] == ["orders-*"]


def test_providers_are_looked_up_on_demand(asked: list[str]) -> None:
    """
    They are looked up once for each module, and not when the gateway starts.
    """
    found = [*plugins(handler("0"), handler("1"), module="acme"), *plugins(handler("2"), module="other")]
    rows = plugin_rows(Registry(found))
    assert asked == []
    assert [row["from"] for row in rows()] == ["acme-dist 1.0", "acme-dist 1.0", "other-dist 1.0"]
    assert rows() == rows()
    assert asked == ["acme", "other"]
