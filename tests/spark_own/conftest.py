"""
Spark's own Kafka source in a process of its own, ours in this one, and an Apache Kafka that both read.

The environment variables SPARKS_OWN_PYTHON and SPARKS_OWN_JARS name the Python that has that Spark, and the folder of
the jars of its source; `tox -e spark-own` sets them.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.kafka.servers import Apache
from tests.spark.conftest import spark
from tests.spark_own.kafka import Topics
from tests.spark_own.queries import Said, said

__all__ = ["spark"]

collect_ignore_glob = ["test_*.py"]
Ask = Callable[[Said], Said]


@pytest.fixture(scope="session")
def topics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topics]:
    server = Apache(tmp_path_factory.mktemp("kafka") / "node")
    server.start()
    try:
        yield Topics(server.bootstrap)
    finally:
        server.stop()


@pytest.fixture(scope="session")
def own() -> Iterator[Ask]:
    command = [
        os.environ["SPARKS_OWN_PYTHON"],
        str(Path(__file__).with_name("source_process.py")),
        os.environ["SPARKS_OWN_JARS"],
    ]
    environment = {key: value for key, value in os.environ.items() if key not in ("SPARK_HOME", "PYTHONPATH")}
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True, env=environment) as process:
        questions, answers = process.stdin, process.stdout
        assert questions
        assert answers

        def ask(asked: Said) -> Said:
            questions.write(json.dumps(asked) + "\n")
            questions.flush()
            line = answers.readline()
            assert line, "Spark's own source has ended"
            answer: Said = json.loads(line)
            return answer

        yield ask
        questions.close()


@pytest.fixture(scope="session")
def ours(spark: Any) -> Ask:
    """
    Asks our source; its answer passes through JSON as well.
    """
    return lambda asked: json.loads(json.dumps(said(spark, "kgateway", asked)))
