"""
Large batches in the format `plain`: as `bench.seaweedmq.throughput` says.
"""

from bench.seaweedmq.throughput import workload

WORKLOAD = workload("plain")
