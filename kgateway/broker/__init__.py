"""
Brokers: where topics, partitions and their records are.
"""
