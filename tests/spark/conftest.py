"""
One Spark for all tests of this folder. Without the extra `spark` each module is skipped with a reason.
"""

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from kgateway.testing.kafka import Kafka

_NEEDED = ("numpy", "pyarrow", "pyspark", "fastavro")
_MISSING = [name for name in _NEEDED if find_spec(name) is None]


class Skipped(pytest.Module):
    """
    A module that cannot be imported.
    """

    def collect(self) -> Any:
        pytest.skip(f"the extra `spark` is not installed: there is no {', '.join(_MISSING)}")


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """
    Skip modules of this folder that cannot be imported without the extra.
    """
    return Skipped.from_parent(parent, path=module_path) if _MISSING else None


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """
    Spark in this process with a Java of its own, two threads and little memory.
    """
    from pyspark.sql import SparkSession

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    settings = {
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


@pytest.fixture(scope="session")
def topics(spark: Any, shared_kafka: Kafka) -> Any:
    """
    Topics of a running gateway, for this Spark to read.
    """
    from tests.spark.gateway import Topics

    return Topics(shared_kafka, spark)
