"""
Requests of a client that may have to be repeated, because a partition is not open yet.
"""

from time import monotonic, sleep
from typing import cast

from kgateway.messages.fetch import FetchResponse
from kgateway.records.batch import batches
from kgateway.records.record import records
from kgateway.wire.errors import ErrorCode
from kgateway.wire.types import Buffer
from tests.faults.client import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    Client,
    batch_of,
    fetch_request,
    produce_request,
    produced,
)
from tests.faults.ledger import PartitionName
from tests.faults.seaweedmq.gateway import Gateway

PATIENCE_S = 30.0
NOT_YET = ErrorCode.NOT_LEADER_OR_FOLLOWER
_PAUSE_S = 0.05


def produce(client: Client, place: PartitionName, *values: bytes) -> int:
    """
    The error code of the answer to records, sent once.
    """
    topic, index = place
    answer = produced(client.ask(produce_request(topic, batch_of(*values), partition=index), PRODUCE_VERSION))
    return int(answer.error_code)


def produce_until_taken(client: Client, place: PartitionName, *values: bytes) -> None:
    """
    Produce records, again and again as clients do, until they are taken.
    """
    deadline = monotonic() + PATIENCE_S
    while (code := produce(client, place, *values)) == NOT_YET and monotonic() < deadline:
        sleep(_PAUSE_S)
    assert code == ErrorCode.NONE, ErrorCode(code).name


def values_of(answer: FetchResponse.Response.Partition) -> list[bytes]:
    """
    The values of the records in the answer to a fetch.
    """
    data = cast("Buffer", answer.records or b"")
    return [bytes(record.value or b"") for batch in batches(data) for record in records(batch)]


def end_of(gateway: Gateway, place: PartitionName) -> int:
    """
    The offset that the next record gets; -1 if it is unknown at the moment.
    """
    topic, index = place
    with Client(gateway.port) as client:
        request = fetch_request(topic, partition=index, offset=0, max_wait_ms=0)
        [told] = client.ask(request, FETCH_VERSION).responses[0].partitions
    return int(told.high_watermark)


def all_values(gateway: Gateway, place: PartitionName) -> list[bytes]:
    """
    All records of a partition.
    """
    topic, index = place
    found: list[bytes] = []
    deadline = monotonic() + PATIENCE_S
    with Client(gateway.port) as client:
        while monotonic() < deadline:
            request = fetch_request(topic, partition=index, offset=len(found), max_wait_ms=100)
            [told] = client.ask(request, FETCH_VERSION).responses[0].partitions
            if told.error_code == NOT_YET:
                sleep(_PAUSE_S)
                continue
            assert told.error_code == ErrorCode.NONE, ErrorCode(told.error_code).name
            if told.high_watermark == len(found):
                return found
            found += values_of(told)
    raise TimeoutError(f"{len(found)} records of {place} were read within {PATIENCE_S:g} s")
