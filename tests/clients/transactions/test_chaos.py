"""
Copies of a topic in transactions, by processes of each client, while they and the server are killed again and again,
copiers are replaced by others with the same transactional id, and some abort: each record of the input is in the output
once, in order, to who reads what is committed.

KILLS is how often the server is killed for each client, TRANSACTION_SEED what follows from chance.
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
    And nothing that was aborted, however often all of them die.
    """
    run(kind, KILLS, SEED, tmp_path)


@pytest.mark.parametrize("kind", ["go", "java"])
def test_each_record_once_where_a_commit_does_not_wait_for_its_markers(kind: str, tmp_path: Path) -> None:
    """
    These clients leave it to the server to add partitions, and begin the next transaction while the last one is being
    told to the disk.
    """
    run(kind, KILLS, SEED, tmp_path, "--acks-fsync", "yes")
