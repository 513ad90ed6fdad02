"""
`kgateway apis`: the table of APIs and versions, read from the message tables themselves.
"""

from collections.abc import Iterable

from kgateway.cli.common.json_document import Json
from kgateway.cli.common.output import NAME_MAX, Column, table
from kgateway.cli.common.parser import page
from kgateway.messages.catalogue import Api, apis
from kgateway.wire.schema import show_versions

_PAGE = """# Kafka APIs and versions

`kgateway apis --markdown` generates this page from the message tables. It lists the messages that the codec reads and
writes. A gateway serves the APIs and versions that it advertises in ApiVersions; `kgateway plugins` lists them.

"""
_COLUMNS = (Column("KEY", 5, is_number=True), Column("API", NAME_MAX), Column("VERSIONS", 9), Column("FLEXIBLE", 9))
_HEADINGS = ("Key", "API", "Versions", "Flexible", "Purpose")


def _row(api: Api) -> tuple[str, ...]:
    spec = api.request.__spec__
    return str(api.key), api.name, show_versions(spec.versions), show_versions(spec.flexible), api.purpose


def _as_text() -> str:
    """
    The table without the purposes, which fits 80 columns.
    """
    return "\n".join(table(_COLUMNS, [row[: len(_COLUMNS)] for row in map(_row, apis().values())]))


def _as_markdown() -> str:
    headings, *lines = map(_cells, [_HEADINGS, *map(_row, apis().values())])
    return _PAGE + "\n".join([headings, "|---:|---|---|---|---|", *lines])


def _as_json() -> Json:
    return {"apis": [_fields(api) for api in apis().values()]}


def _fields(api: Api) -> Json:
    names = ("key", "api", "versions", "flexible", "purpose")
    return dict(zip(names, (api.key, *_row(api)[1:]), strict=True))


APIS = page(_as_text, _as_markdown, _as_json, "kgateway apis --json")


def _cells(row: Iterable[str]) -> str:
    return f"| {' | '.join(row)} |"
