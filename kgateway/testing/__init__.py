"""
A real Kafka endpoint for tests: `Kafka` starts one, and pytest finds the fixtures of `pytest_plugin` by itself.
"""

from kgateway.testing.kafka import Kafka as Kafka
from kgateway.testing.kafka import NotStarted as NotStarted
