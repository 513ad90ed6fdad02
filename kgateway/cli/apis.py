"""
The table of APIs and versions, read from the message tables themselves.
"""

import sys
from dataclasses import astuple, dataclass

from kgateway.messages.catalogue import Api
from kgateway.messages.catalogue import apis as catalogue
from kgateway.wire.versions import show_versions

_PAGE = """# Kafka APIs and their versions

Written by `kgateway apis --markdown` from the message tables; a test keeps this page and the tables together. It lists
what the codec reads and writes. What a gateway serves is what it advertises in ApiVersions.

"""


@dataclass(frozen=True, slots=True)
class Row:
    """
    One API as people see it.
    """

    key: str
    api: str
    versions: str
    flexible: str
    purpose: str


_HEADINGS = Row("Key", "API", "Versions", "Flexible", "What it is for")


def rows() -> list[Row]:
    """
    The APIs by key.
    """
    return [_row(api) for api in catalogue().values()]


def _row(api: Api) -> Row:
    spec = api.request.__spec__
    page = sys.modules[api.request.__module__].__doc__ or ""
    title = page.strip().partition("\n")[0].partition(": ")[2]
    return Row(str(api.key), api.name, show_versions(spec.versions), show_versions(spec.flexible), title.rstrip("."))


def as_text() -> str:
    """
    The table for a terminal, without the purposes: it fits 80 columns.
    """
    return "\n".join(f"{r.key:>3}  {r.api:<28} {r.versions:<9} {r.flexible}" for r in [_HEADINGS, *rows()])


def as_markdown() -> str:
    """
    The page for the documentation.
    """
    lines = [_cells(_HEADINGS), "|---:|---|---|---|---|", *map(_cells, rows())]
    return _PAGE + "\n".join(lines)


def _cells(row: Row) -> str:
    return f"| {' | '.join(astuple(row))} |"
