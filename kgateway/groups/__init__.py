"""
Consumer groups: which member reads which partitions, and which offsets each group has committed.
"""
