"""
A Kafka client for command lines: it blocks, and tells in words what went wrong. No reactor here.
"""
