"""
Reading for consumers: what their sessions remember, one look at many partitions, and the wait for more.
"""
