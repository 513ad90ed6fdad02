"""
What a cluster is made of, as values: nodes, topics and their configs, and what partitions say of their logs.
"""
