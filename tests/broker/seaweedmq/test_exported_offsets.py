"""
Offsets in the files of the Go gateway.
"""

import json

import pytest

from kgateway.broker.seaweed.filer import Filer
from kgateway.groups.coding import decoded, encoded
from kgateway.groups.rows import Row
from kgateway.messages.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from kgateway.security.permissions import Resource
from tests.broker.behaviour import noted, result
from tests.broker.seaweed.running import until, wait
from tests.broker.seaweedmq.starting import Start, running


def test_commits_are_written_for_the_go_gateway(start: Start, filer: Filer, namespace: str) -> None:
    """
    Each commit is in its file soon; when the offset goes, so does the file.
    """
    path = f"/topics/{namespace}/.meta/consumer_offsets/team/billing/orders/3/offset"
    key = OffsetCommitKey(group="team/billing", topic="orders", partition=3)
    with running(start) as broker:
        log = broker.coordinator(Resource.GROUP, "team/billing")
        noted(log, [encoded(Row(key, OffsetCommitValue(offset=41, metadata="m", commit_timestamp=5)))])
        noted(log, [encoded(Row(key, OffsetCommitValue(offset=42, metadata="m", commit_timestamp=5)))])
        entry = until(lambda: wait(filer.entry(path)))
        assert json.loads(entry.content) == {"type": "offset", "value": 42, "committed_at": 5, "metadata": "m"}
        noted(log, [encoded(Row(key, None))])
        until(lambda: wait(filer.entry(path)) is None)


@pytest.mark.parametrize("is_restored", [False, True])
def test_offsets_of_the_go_gateway_are_taken_over_once(
    is_restored: bool, start: Start, filer: Filer, namespace: str
) -> None:
    """
    A cluster without groups of ours begins with what the Go gateway has kept, also where that was restored by HTTP;
    from then on our own decide.
    """
    path = f"/topics/{namespace}/.meta/consumer_offsets/team/billing/orders/3/offset"
    told = {"type": "offset", "value": 42, "committed_at": 7, "metadata": "x"}
    wait((filer.files.put if is_restored else filer.write)(path, json.dumps(told).encode()))
    wait(filer.write(f"/topics/{namespace}/.meta/consumer_offsets/g/orders/none/offset", b"{}"))
    key = OffsetCommitKey(group="team/billing", topic="orders", partition=3)
    for _ in range(2):
        with running(start) as broker:
            pieces = result(broker.coordinator(Resource.GROUP, "team/billing").replay())
            rows = [decoded(*pair) for piece in pieces for pair in piece]
            assert rows == [Row(key, OffsetCommitValue(offset=42, metadata="x", commit_timestamp=7))]
        wait(filer.write(path, json.dumps({**told, "value": 43}).encode()))
