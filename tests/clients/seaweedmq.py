"""
Gateways for the tests of clients: on the embedded log, or before a SeaweedMQ cluster where `CLIENTS_SEAWEEDMQ` names
the form of its topics.

    CLIENTS_SEAWEEDMQ=batch python -m pytest tests/clients/test_confluent.py

With `CLIENTS_BESIDE=1` the clients know a gateway that waits while another one owns the topics, and learn of that.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kgateway.testing.kafka import Kafka

FORM = os.environ.get("CLIENTS_SEAWEEDMQ")
_BESIDE = os.environ.get("CLIENTS_BESIDE")
_owners: dict[str, str] = {}  # of the topics, by the addresses that clients have
_PATIENT = ("--retention-ms", str((1 << 63) - 1), "--compaction-backoff-ms", "200")
ALWAYS_SET = () if FORM is None else (f"seaweedmq.format={FORM}",)  # of topics' configs, unasked


@contextmanager
def gateway(*options: str) -> Iterator[Kafka]:
    """
    One that serves while it is entered, and keeps records from long ago. One at a time owns the topics of a cluster, so
    each has a cluster of its own.
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
    The address of the gateway that has the topics, for who knows this one.
    """
    return _owners.get(bootstrap, bootstrap)


@contextmanager
def broker(form: str | None) -> Iterator[tuple[str, ...]]:
    """
    What gateways must be told of their broker, which is there while it is entered.
    """
    if form is None:
        yield ()
        return
    from kgateway.broker.seaweed.dev_cluster import DevCluster  # needs what only this broker needs

    with tempfile.TemporaryDirectory(prefix="weed-") as folder:
        cluster = DevCluster(Path(folder))
        try:
            masters = ",".join(cluster.start().masters)
            yield "--broker", f"seaweedmq:{masters}", "--seaweedmq-format", form
        finally:
            cluster.kill()  # nothing of it is needed, and its end takes seconds
