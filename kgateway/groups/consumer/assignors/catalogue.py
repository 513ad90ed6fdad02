"""
The assignors by the names that members and settings know them by.
"""

from kgateway.groups.consumer.assignors.range import assign_ranges
from kgateway.groups.consumer.assignors.subscriber import Assignor
from kgateway.groups.consumer.assignors.uniform import assign_uniformly

ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniformly, "range": assign_ranges}
