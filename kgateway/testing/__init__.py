"""
A Kafka server for tests. Its pytest fixtures need no import.
"""

from kgateway.testing.kafka import Kafka as Kafka
from kgateway.testing.kafka import NotStarted as NotStarted
