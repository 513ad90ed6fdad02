"""
The table of `kgateway plugins`.
"""

from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from typing import Any

from kgateway.server.discovery import provider
from kgateway.server.registry import FilterRow, Registry, Row


def plugin_rows(registry: Registry) -> Callable[[], list[dict[str, Any]]]:
    """
    What is active and who provides it. The providers are looked up when first asked for: that takes a while.
    """

    @cache
    def known(module: str) -> str:
        return provider(module)

    def told(row: Row | FilterRow) -> dict[str, Any]:
        return asdict(row) | {"from": known(row.module)}

    def rows() -> list[dict[str, Any]]:
        return [told(row) | {"filters": [told(one) for one in row.filters]} for row in registry.rows()]

    return rows
