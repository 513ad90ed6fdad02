"""
Streams into topics, each batch in a transaction of its own, so that each record is there once.
"""
