"""
Partitions of SeaweedMQ topics.
"""
