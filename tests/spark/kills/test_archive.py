"""
An archive made on a real Spark cluster while its driver, its executors and the server are killed: it has each record
once, `kgateway spark verify` agrees, and finds damage done to it afterwards.
"""

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import monotonic, sleep

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from kgateway.spark.archive.folder import Folder
from kgateway.testing.kafka import Kafka
from tests.spark.kills.driver import CLUSTER, Application
from tests.spark.kills.killer import KILLS, PATIENCE_S, SOURCE, Killer, fill

RECORDS_A_KILL = 4_000
SMALL = ("--conf", "spark.driver.memory=600m", "--conf", "spark.executor.memory=600m")


@pytest.fixture
def job(kafka: Kafka, tmp_path: Path) -> Iterator[Application]:
    """
    A job that archives continuously.
    """
    often = ("--every", "1", "--task-records", "500")
    where = ("--into", str(tmp_path / "archive"), "--bootstrap", kafka.bootstrap, "--master", CLUSTER)
    job = Application(tmp_path, "-m", "kgateway", "spark", "archive", SOURCE, *where, *often, *SMALL)
    yield job
    job.stop()


def test_each_record_once(kafka: Kafka, job: Application, tmp_path: Path) -> None:
    """
    Nothing is lost or doubled, whatever is killed; damage done to the archive afterwards is found.
    """
    written, killer, archive = 0, Killer(kafka, job), tmp_path / "archive"
    while killer.count < KILLS:
        fill(kafka.bootstrap, SOURCE, written, RECORDS_A_KILL)
        written += RECORDS_A_KILL
        wait_for(job, partial(newest, archive), newest(archive) + 2)
        killer.strike()
    wait_for(job, partial(archived, archive), written)
    job.stop()
    last = run("archive", "--once", "--into", str(archive), "--bootstrap", kafka.bootstrap, "--master", "local[2]")
    assert last.returncode == 0, last.stderr
    found = Counter(int(value.as_py()) for value in ds.dataset(archive / SOURCE, format="parquet").to_table()["value"])
    print(f"{written} records, {job.starts} drivers, {newest(archive)} manifests; {killer}")
    assert found == Counter(range(written))
    assert verified(kafka, archive) == (0, written)
    for number, damage in enumerate((removed, doubled, flipped)):
        damaged = tmp_path / f"damaged-{number}"
        shutil.copytree(archive, damaged)
        damage(max((damaged / SOURCE).glob("*.parquet"), key=lambda path: path.stat().st_size))
        faults, _ = verified(kafka, damaged)
        assert faults, damage.__name__


def removed(path: Path) -> None:
    path.unlink()


def doubled(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(pa.concat_tables([table, table.slice(table.num_rows - 1)]), path)


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)


def newest(archive: Path) -> int:
    manifest = Folder(archive / SOURCE).manifests.newest()
    return manifest.number if manifest else 0


def archived(archive: Path) -> int:
    """
    The number of records in the manifest.
    """
    manifest = Folder(archive / SOURCE).manifests.newest()
    return sum(file.count for file in manifest.files) if manifest else 0


def wait_for(job: Application, look: Callable[[], int], least: int) -> None:
    deadline = monotonic() + PATIENCE_S
    while look() < least:
        job.ensure()
        assert monotonic() < deadline, f"the job archives nothing\n{job.output()}"
        sleep(0.1)


def run(job: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kgateway", "spark", job, SOURCE, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def verified(kafka: Kafka, archive: Path) -> tuple[int, int]:
    """
    The number of faults, and of records that were compared with the log.
    """
    where = ("--in", str(archive), "--bootstrap", kafka.bootstrap, "--master", "local[2]")
    done = run("verify", *where, "--json")
    assert done.returncode in (0, 1), done.stderr
    [told] = json.loads(done.stdout)["archives"]
    faults = sum(finding["is_fault"] for finding in told["findings"])
    assert bool(faults) == bool(done.returncode)
    return faults, told["compared"]
