"""
Gateways in front of the cluster of the tests. Tests that need another cluster, or take long, only run when they are
named, as `tox -e seaweedmq` does.
"""

from uuid import uuid4

import pytest

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from tests.broker import behaviour
from tests.broker.seaweed.real_reactor import wait
from tests.broker.seaweedmq.gateways import Start, gateway

collect_ignore = ["test_interop.py", "test_interop_record.py", "test_restored_topics.py"]


@pytest.fixture
def namespace() -> str:
    """
    A new, empty namespace.
    """
    return f"test-{uuid4().hex}"


@pytest.fixture
def start(cluster: DevCluster, namespace: str, monkeypatch: pytest.MonkeyPatch) -> Start:
    """
    A function that creates gateways which serve the same topics.
    """
    monkeypatch.setattr(behaviour, "patience", wait)
    return lambda: gateway(cluster, namespace)
