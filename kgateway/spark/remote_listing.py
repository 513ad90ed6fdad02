"""
A page of a folder, as a filer of SeaweedFS tells it in JSON:

    {"Path": "/logs", "Entries": [{"FullPath": "/logs/a", "Mode": 432, "FileSize": 100, "chunks": [...]}],
     "LastFileName": "a", "ShouldDisplayLoadMore": true}
"""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

_FOLDER = 1 << 31  # in a mode, as Go has it


class Listed(NamedTuple):
    """
    A file or folder.
    """

    name: str
    is_folder: bool
    size: int
    changed_s: int
    first_chunk: str  # by which a file is told from another of its name; empty where it has none
    last_chunk: int  # where that begins


@dataclass(frozen=True, slots=True)
class Page:
    """
    Some of a folder, in the order of their names.
    """

    entries: list[Listed]
    is_last: bool


def read_page(data: bytes) -> Page:
    """
    The page; ValueError where it is none.
    """
    try:
        told = json.loads(data)
        entries = [_listed(entry) for entry in told["Entries"] or ()]
        return Page(entries, not (entries and told["ShouldDisplayLoadMore"]))
    except (TypeError, LookupError, AttributeError, RecursionError) as error:
        raise ValueError(f"it is no page of a folder: {type(error).__name__} {error}") from None


def _listed(told: dict[str, Any]) -> Listed:
    chunks = told.get("chunks") or ()
    return Listed(
        name=told["FullPath"].rpartition("/")[2],
        is_folder=bool(int(told["Mode"]) & _FOLDER),
        size=int(told["FileSize"]),
        changed_s=int(datetime.fromisoformat(told["Mtime"]).timestamp()),
        first_chunk=str(chunks[0]["file_id"]) if chunks else "",
        last_chunk=int(chunks[-1].get("offset", 0)) if chunks else 0,
    )
