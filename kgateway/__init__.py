"""
A Kafka-protocol server in Python on Twisted.
"""

__version__ = "0.1.0"
