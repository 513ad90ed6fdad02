"""
How fast topics are archived, and how much memory that takes: `python -m bench.spark_archive`.

`kgateway spark archive` makes Parquet of a topic of values of 1,000 bytes in two partitions, on `local[2]`, from the
server and from the files of its log. The topic is larger than all memory that Java gets, so what grows with the topic
would end the job. Memory is the most that a process ever had: Java's, and that of the largest of Python's workers.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import sleep

from bench.recording import add_results, recorded
from bench.spark import produce
from kgateway.testing.kafka import Kafka

VALUE_BYTES = 1_000
GB, HEAP_MB = 2.0, 512
_TOPIC = "large"
_EVERY_S = 0.2
_TOLD = re.compile(r"([\d,]+) records? \(.+\) archived in ([\d.]+) s")
_PEAK = re.compile(r"VmHWM:\s+(\d+) kB")


def archive(kafka: Kafka, into: str, heap_mb: int, *more: str) -> tuple[float, dict[str, float]]:
    """
    Run the job; returns the seconds that it reports, and the peak MiB of Java and of one Python worker.
    """
    command = [sys.executable, "-m", "kgateway", "spark", "archive", _TOPIC, "--once", "--into", into]
    command += ["--bootstrap", kafka.bootstrap, "--master", "local[2]", "--conf", f"spark.driver.memory={heap_mb}m"]
    job = subprocess.Popen([*command, *more], stdout=subprocess.PIPE, text=True, start_new_session=True)
    peaks: dict[str, float] = {"java": 0, "python": 0}
    while job.poll() is None:
        for kind, mebibytes in _peaks(job.pid):
            peaks[kind] = max(peaks[kind], mebibytes)
        sleep(_EVERY_S)
    assert job.stdout
    told = _TOLD.search(job.stdout.read())
    assert told, f"the job ended with {job.returncode}"
    return float(told[2]), peaks


def _peaks(session: int) -> Iterator[tuple[str, float]]:
    """
    The peak memory of each process of this session except the job's own.
    """
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ProcessLookupError):
            name, _, fields = (folder / "stat").read_text().partition("(")[2].rpartition(")")
            peak = _PEAK.search((folder / "status").read_text())
            if int(fields.split()[3]) == session and int(folder.name) != session and peak:
                yield "java" if name == "java" else "python", int(peak[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gb", type=float, default=GB, help="how large the topic is; %(default)s")
    parser.add_argument("--heap-mb", type=int, default=HEAP_MB, help="how much memory Java gets; %(default)s")
    add_results(parser)
    options = parser.parse_args()
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with recorded(options.results, "pyspark", "numpy", "pyarrow") as recording, recording.of("spark_archive"):
        measure(options)


def measure(options: argparse.Namespace) -> None:
    print("| way | GB of values | s | MB/s | Java, MiB | its heap | a Python worker, MiB |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    count = int(options.gb * 1e9 / VALUE_BYTES)
    with Kafka() as kafka:
        produce(kafka.bootstrap, _TOPIC, VALUE_BYTES, count)
        ways = {"protocol": (), "files": ("--option", f"kgateway.log.folder={kafka.folder / 'kgateway-data'}")}
        for way, more in ways.items():
            with tempfile.TemporaryDirectory() as into:
                seconds, peaks = archive(kafka, into, options.heap_mb, *more)
            rate = count * VALUE_BYTES / 1e6 / seconds
            memory = f"{peaks['java']:,.0f} | {options.heap_mb} | {peaks['python']:,.0f}"
            print(f"| {way} | {options.gb:g} | {seconds:.1f} | {rate:,.0f} | {memory} |", flush=True)


if __name__ == "__main__":
    main()
