"""
Processes of each client copy a topic in transactions while they and the server are killed repeatedly, copiers are
replaced by others with the same transactional id, and some abort: readers of committed records find each record of the
input in the output once, in order.

KILLS is the number of kills of the server for each client, TRANSACTION_SEED the seed of all that is random.
"""

import os
from pathlib import Path

import pytest

from tests.clients.transactions.chaos import run
from tests.clients.transactions.kinds import KINDS

KILLS = int(os.environ.get("KILLS", "5"))
SEED = int(os.environ.get("TRANSACTION_SEED", "1"))


@pytest.mark.parametrize("kind", KINDS)
def test_each_record_once(kind: str, tmp_path: Path) -> None:
    """
    Nothing that was aborted is read, however often all processes die.
    """
    run(kind, KILLS, SEED, tmp_path)


@pytest.mark.parametrize("kind", ["go", "java"])
def test_each_record_once_where_a_commit_does_not_wait_for_its_markers(kind: str, tmp_path: Path) -> None:
    """
    These clients leave it to the server to add partitions, and begin the next transaction while the last one is still
    being written to disk.
    """
    run(kind, KILLS, SEED, tmp_path, "--acks-fsync", "yes")
