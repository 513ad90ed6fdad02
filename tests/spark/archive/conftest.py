"""
Archives of the running gateway.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from tests.broker.seaweed.cluster import cluster as cluster
from tests.broker.seaweed.cluster import mended as mended


@pytest.fixture
def archives(topics: Any, tmp_path: Path) -> Any:
    from tests.spark.archive.archives import Archives

    options = {"kafka.bootstrap.servers": topics.kafka.bootstrap, "kafka.isolation.level": "read_committed"}
    return Archives(topics.spark, tmp_path / "archives", options)


@pytest.fixture
def url(cluster: DevCluster) -> str:
    """
    A folder of its own in a filer.
    """
    return f"http://{cluster.filer}/archives/{uuid4().hex}"


@pytest.fixture
def there(archives: Any, url: str) -> Any:
    from kgateway.spark.http.client import url_path

    return replace(archives, path=url_path(url))
