"""
The operations and resources with which handlers declare the permissions that they need. The numbers are those of
Kafka's ACLs, on the wire and in sets of bits.
"""

from enum import IntEnum
from typing import NamedTuple


class Resource(IntEnum):
    """
    The types of resources that permissions are for.
    """

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Operation(IntEnum):
    """
    What clients can do to a resource.
    """

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15

    def on(self, resource: Resource) -> "Need":
        """
        Return the permission for this operation, as handlers declare it: `Operation.READ.on(Resource.TOPIC)`.
        """
        return Need(self, resource)


class Need(NamedTuple):
    """
    A permission that a handler asks for.
    """

    operation: Operation
    resource: Resource

    def __str__(self) -> str:
        return f"{self.operation.name} on {self.resource.name}"


class Free(NamedTuple):
    """
    Declares that a handler needs no permission, and why.
    """

    reason: str

    def __str__(self) -> str:
        return f"nothing: {self.reason}"


CLUSTER = "kafka-cluster"  # the name of the only resource of its type

# The operations on each type of resource, for answers that list what the client may do.
OPERATIONS = {
    Resource.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    Resource.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    Resource.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}
