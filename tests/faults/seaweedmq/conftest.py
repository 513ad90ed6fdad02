"""
The cluster in front of which gateways are killed.
"""

from tests.broker.seaweed.cluster import cluster as cluster
from tests.broker.seaweed.cluster import mended as mended

# These take long, and run when they are named, as `tox -e seaweedmq` does.
collect_ignore = [
    "test_each_process.py",
    "test_hanging.py",
    "test_intruder.py",
    "test_partition_counts.py",
    "test_resumed_gateway.py",
    "test_running_clients.py",
    "test_several_filers.py",
    "test_take_over.py",
    "test_two_gateways.py",
    "test_unsaved_ledger.py",
]
