"""
Reading for consumers: their fetch sessions, one pass over many partitions, and the wait for more.
"""
