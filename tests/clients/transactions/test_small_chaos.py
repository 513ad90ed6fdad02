"""
A few minutes' chaos in a few seconds, with librdkafka.
"""

from pathlib import Path

from tests.clients.transactions.chaos import run


def test_each_record_once(tmp_path: Path) -> None:
    """
    Nothing that was aborted is read, though the server is killed twice.
    """
    run("librdkafka", kills=2, seed=1, folder=tmp_path)
