"""
Jobs on a standalone Spark cluster: a master and two workers, each a process, whose executors have only what the job
ships of kgateway.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from tests.spark.gateway import Topics, numbered
from tests.spark.jobs import ROOT, Ended

PATIENCE_S = 90
AT_A_FREE_PORT = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
SMALL = ("--conf", "spark.driver.memory=600m", "--conf", "spark.executor.memory=600m")
WHERE = """
import sys
from argparse import Namespace

from kgateway.cli.spark.session import session


def place(_):
    import kgateway
    import pyspark_kgateway

    return kgateway.__file__, pyspark_kgateway.__file__


options = Namespace(master=sys.argv[1], kind="test", conf=[("spark.executor.memory", "600m")])
with session(options) as spark:
    for places in set(spark.sparkContext.parallelize(range(4), 4).map(place).collect()):
        print(*places)
"""
SUBMITTED = """
import sys

from pyspark.sql import SparkSession

from pyspark_kgateway import DefaultSource


def place(_):
    import kgateway

    return kgateway.__file__


spark = SparkSession.builder.getOrCreate()
spark.dataSource.register(DefaultSource)
_, server, topic, copy = sys.argv
to = {"kafka.bootstrap.servers": server}
rows = spark.read.format("kgateway").options(subscribe=topic, **to).load()
rows.selectExpr("value").write.format("kgateway").options(topic=copy, **to).mode("append").save()
print(spark.read.format("kgateway").options(subscribe=copy, **to).load().count())
print(*set(spark.sparkContext.parallelize(range(4), 4).map(place).collect()))
"""


class Cluster:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self.url = self._started("master", r"Starting Spark master at (spark://\S+)")
        for number in range(2):
            self._started(f"worker-{number}", "Successfully registered with master", "-c", "1", "-m", "700m", self.url)

    def _started(self, name: str, ready: str, *arguments: str) -> str:
        """
        Start a process and return the match of its ready line.
        """
        import pyspark

        kind = name.partition("-")[0]
        program = Path(pyspark.__file__).parent / "bin" / "spark-class"
        command = [str(program), f"org.apache.spark.deploy.{kind}.{kind.capitalize()}", *AT_A_FREE_PORT, *arguments]
        log, ours = self._folder / name, {"PYTHONPATH", "SPARK_HOME"}
        environment = {key: value for key, value in os.environ.items() if key not in ours}
        environment |= {"SPARK_WORKER_DIR": str(self._folder / "work"), "SPARK_LOCAL_IP": "127.0.0.1"}
        with log.open("wb") as out:
            self._processes.append(subprocess.Popen(command, env=environment, stdout=out, stderr=out))
        deadline = monotonic() + PATIENCE_S
        while not (found := re.search(ready, log.read_text())):
            assert monotonic() < deadline, log.read_text()
            sleep(0.1)
        return found[found.lastindex or 0]

    def stop(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.stop()


def test_executors_import_what_is_shipped(cluster: Cluster, tmp_path: Path) -> None:
    """
    They do not import what is installed.
    """
    (tmp_path / "where.py").write_text(WHERE)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, str(tmp_path / "where.py"), cluster.url]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    places = done.stdout.split()
    assert len(places) >= 2, done
    assert all(".zip/" in place and str(ROOT) not in place for place in places), places


def test_a_job_with_the_wheel(topics: Topics, cluster: Cluster, tmp_path: Path) -> None:
    """
    Executors have what the wheel has, under a name that Spark accepts.
    """
    shutil.copytree(ROOT, tmp_path / "source", ignore=shutil.ignore_patterns(".*", "build", "*.egg-info"))
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "./source"]
    subprocess.run(build, check=True, timeout=PATIENCE_S, cwd=tmp_path)
    [wheel] = tmp_path.glob("*.whl")
    wheel = wheel.rename(tmp_path / "kgateway.zip")
    (tmp_path / "job.py").write_text(SUBMITTED)
    topic, copy = topics.make(*numbered(1_000)), topics.make()
    done = _submitted(cluster, wheel, str(tmp_path / "job.py"), topics.kafka.bootstrap, topic, copy)
    count, *places = done.split()
    assert count == "1000"
    assert all("/kgateway.zip/" in place and str(ROOT) not in place for place in places), places


def _submitted(cluster: Cluster, shipped: Path, *job: str) -> str:
    """
    The output of a job.
    """
    import pyspark

    program = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [program, "--master", cluster.url, *SMALL, "--py-files", str(shipped), *job]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class OnIt:
    def __init__(self, topics: Topics, cluster: Cluster) -> None:
        self._topics = topics
        self._on = ("--master", cluster.url, *SMALL)

    def out(self, *arguments: str, beside: str = "") -> str:
        """
        The output of a successful job whose stderr has nothing but this.
        """
        done = Ended(self._topics, *arguments, *self._on)
        assert (done.code, done.err) == (0, beside)
        return done.out


def test_jobs(topics: Topics, cluster: Cluster, tmp_path: Path) -> None:
    """
    Archive, verify, SQL and compact work as on one machine.
    """
    topic, into, there = topics.make(*numbered(1_000)), str(tmp_path / "archives"), OnIt(topics, cluster)
    assert "1,000 records (" in there.out("archive", topic, "--into", into, "--once", "--task-records", "100")
    assert "1,000 compared with the log" in there.out("verify", topic, "--in", into)
    topics.fill(topic, numbered(10))
    asked = f"SELECT _source, count(*) FROM `{topic}` GROUP BY 1 ORDER BY 2"
    seam = f"{topic}: 1,000 records in the archive, then 10 offsets in the log\n"
    found = there.out("sql", asked, "--archive", into, "--format", "csv", beside=seam).splitlines()
    assert found[1:] == ["live_log,10", "parquet_archive,1000"]
    table = there.out("compact", topic, "--output", str(tmp_path / "latest"))
    assert "snapshot 1: 1,000 of 1,010 records kept in " in table
    assert "0 records removed" in there.out("compact", topic, "--in", into, "--in-place", "key")
