"""
Large batches in the format `record`: as `bench.seaweedmq.throughput` says.
"""

from bench.seaweedmq.throughput import workload

WORKLOAD = workload("record")
