"""
What the partitions of all brokers share.
"""
