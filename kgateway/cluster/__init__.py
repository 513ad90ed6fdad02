"""
A cluster as values: nodes, topics and their configs, and what partitions return.
"""
