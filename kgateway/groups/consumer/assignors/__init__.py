"""
Who of a group is to read which partitions: pure functions.
"""
