"""
Gateways before the cluster of the tests. What needs more than that cluster, or long, runs when it is named, as
`tox -e seaweedmq` does.
"""

from uuid import uuid4

import pytest

from kgateway.broker.seaweed.dev_cluster import DevCluster
from tests.broker import behaviour
from tests.broker.seaweed.running import wait
from tests.broker.seaweedmq.starting import Start, gateway

collect_ignore = ["test_interop.py", "test_interop_record.py", "test_restored.py"]


@pytest.fixture
def namespace() -> str:
    """
    One in which nothing is yet.
    """
    return f"test-{uuid4().hex}"


@pytest.fixture
def start(cluster: DevCluster, namespace: str, monkeypatch: pytest.MonkeyPatch) -> Start:
    """
    Makes gateways that serve the same topics.
    """
    monkeypatch.setattr(behaviour, "patience", wait)
    return lambda: gateway(cluster, namespace)
