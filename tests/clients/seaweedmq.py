"""
Gateways for the tests of clients: on the embedded log, or in front of a SeaweedMQ cluster if `CLIENTS_SEAWEEDMQ` names
the format of its topics.

    CLIENTS_SEAWEEDMQ=batch python -m pytest tests/clients/test_confluent.py

With `CLIENTS_BESIDE=1` the clients know the address of a standby gateway while another one leads, whose address they
learn.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kgateway.testing.kafka import Kafka

FORM = os.environ.get("CLIENTS_SEAWEEDMQ")
_BESIDE = os.environ.get("CLIENTS_BESIDE")
_owners: dict[str, str] = {}  # the leader of a standby, by the addresses that clients have
_PATIENT = ("--retention-ms", str((1 << 63) - 1), "--compaction-backoff-ms", "200")
ALWAYS_SET = () if FORM is None else (f"seaweedmq.format={FORM}",)  # default configs of topics


@contextmanager
def gateway(*options: str) -> Iterator[Kafka]:
    """
    A gateway that serves in a `with` block, and keeps records from long ago. Only one gateway leads the topics of a
    cluster, so each has a cluster of its own.
    """
    with broker(FORM) as where, Kafka(*where, *_PATIENT, *options) as kafka:
        if not _BESIDE:
            yield kafka
            return
        with Kafka(*where, *_PATIENT, *options, "--node-id", "2") as waiting:
            _owners[waiting.bootstrap] = kafka.bootstrap
            yield waiting


def owner(bootstrap: str) -> str:
    """
    The address of the gateway that leads, for clients that know this one.
    """
    return _owners.get(bootstrap, bootstrap)


@contextmanager
def broker(form: str | None) -> Iterator[tuple[str, ...]]:
    """
    The options of gateways for their broker, which exists in a `with` block.
    """
    if form is None:
        yield ()
        return
    from kgateway.broker.seaweed.dev.dev_cluster import DevCluster  # an option of this broker only

    with tempfile.TemporaryDirectory(prefix="weed-") as folder:
        cluster = DevCluster(Path(folder))
        try:
            masters = ",".join(cluster.start().masters)
            yield "--broker", f"seaweedmq:{masters}", "--seaweedmq-format", form
        finally:
            cluster.kill()  # the cluster is not needed any more, and an orderly end takes seconds
