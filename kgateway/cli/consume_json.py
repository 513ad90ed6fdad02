"""
Records as lines of JSON; `kgateway produce --json` reads them.
"""

import json
from typing import Any

from kgateway.cli.produce_json import with_text
from kgateway.records.record import Header, Record


def json_line(topic: str, partition: int, record: Record) -> bytes:
    """
    A record.
    """
    told: dict[str, Any] = {
        "topic": topic,
        "partition": partition,
        "offset": record.offset,
        "timestamp": record.timestamp if record.timestamp >= 0 else None,
    }
    with_text(told, key=record.key, value=record.value)
    told["headers"] = [_header(header) for header in record.headers]
    return json.dumps(told).encode() + b"\n"


def _header(header: Header) -> dict[str, Any]:
    return with_text({"key": header.key}, value=header.value)
