"""
Card numbers in topics `payments*` are masked before they are stored: of the field `card` the last four characters stay.
"""

import json
from fnmatch import fnmatchcase
from typing import Any

from kgateway.api import Context, Record, around, change_records
from kgateway.interfaces import Proceed
from kgateway.messages.produce import ProduceRequest
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.schema import Message

TOPICS = "payments*"
FIELD = "card"
SHOWN = 4


@around(ProduceRequest, topics=[TOPICS])
async def mask_cards(request: ProduceRequest, context: Context, proceed: Proceed) -> Message | None:
    for data in request.topic_data:  # the request may have other topics too
        topic = context.broker.view().topics_by_id.get(data.topic_id)  # newer clients send ids
        if fnmatchcase(topic.name if topic else data.name, TOPICS):
            for partition in data.partition_data:
                partition.records = await change_records(partition.records, masked, context)
    return await proceed(request)


def masked(record: Record) -> Record:
    if record.value is None:  # a tombstone
        return record
    try:
        fields: Any = json.loads(record.value)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"a value is not JSON, so {FIELD} cannot be masked") from None
    if not isinstance(fields, dict) or FIELD not in fields:
        return record
    card = str(fields[FIELD])
    shown = card[-SHOWN:] if len(card) > SHOWN else ""
    fields[FIELD] = shown.rjust(len(card), "*")
    return record._replace(value=json.dumps(fields).encode())
