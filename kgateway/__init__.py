"""
A Kafka-protocol server in Python on Twisted.
"""

import os

__version__ = "0.1.0"

# Here, because every way into the program imports this package first.
if os.environ.get("KGATEWAY_PURE") == "1":
    from kgateway.compilation import prefer_sources

    prefer_sources()
