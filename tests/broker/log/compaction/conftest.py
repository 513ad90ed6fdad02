"""
Worlds and logs of the compaction tests, closed afterwards.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.log.compaction.jobs import Jobs
from tests.broker.log.compaction.readers import in_small_columns, one_by_one
from tests.broker.log.compaction.worlds import Compacted
from tests.broker.log.recording_disk import RecordingDisk


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Compacted]:
    found = Compacted(tmp_path, offsets_partitions=1)
    yield found
    for file in list(found.disk.opened):
        file.close()


@pytest.fixture(params=[one_by_one, in_small_columns])
def jobs(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Jobs]:
    found = Jobs(tmp_path / "t-0", RecordingDisk(), request.param)
    yield found
    found.files.close_all()
