"""
Fixtures of the broker tests.
"""

from tests.broker.seaweed.cluster import cluster as cluster
from tests.broker.seaweed.cluster import filer as filer
from tests.broker.seaweed.cluster import folder as folder
from tests.broker.seaweed.cluster import mended as mended
from tests.broker.seaweed.cluster import seaweed as seaweed
