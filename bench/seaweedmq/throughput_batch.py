"""
Large batches in the format `batch`: as `bench.seaweedmq.throughput` says.
"""

from bench.seaweedmq.throughput import workload

WORKLOAD = workload("batch")
