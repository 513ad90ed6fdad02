"""
Large batches in the form `record`: as `bench.seaweedmq.throughput` says.
"""

from bench.seaweedmq.throughput import workload

WORKLOAD = workload("record")
