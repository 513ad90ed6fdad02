"""
A Kafka server for tests. With pytest, its fixtures are there without an import.
"""

from kgateway.testing.kafka import Kafka as Kafka
from kgateway.testing.kafka import NotStarted as NotStarted
