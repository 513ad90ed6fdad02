"""
A Kafka-protocol server in Python on Twisted.
"""

import os

__version__ = "0.1.0"

# Here, because every way into the program imports this package first.
if "KGATEWAY_PURE" in os.environ:
    from kgateway.compilation import choose_form

    choose_form(os.environ["KGATEWAY_PURE"])
