"""
A Kafka client that blocks, for commands and for Spark: it uses no reactor, and its errors are words for people.
"""
