"""
AlterClientQuotas: sets and removes quotas of users, client ids and addresses (KIP-546).

 - v1: flexible
"""

from kgateway.wire.schema import Message, Struct
from kgateway.wire.types import f64, i16, i32


class AlterClientQuotasRequest(Message, key=49, versions="0-1", flexible="1+"):
    """
    The quotas to set or remove, entity by entity.
    """

    class Entry(Struct):
        class Entity(Struct):
            entity_type: str  # user, client-id or ip
            entity_name: str | None  # null: the default entity

        class Op(Struct):
            key: str  # such as producer_byte_rate
            value: f64  # unused when remove is set
            remove: bool

        entity: list[Entity]
        ops: list[Op]

    entries: list[Entry]
    validate_only: bool


class AlterClientQuotasResponse(Message, key=49, versions="0-1", flexible="1+"):
    """
    The outcome for each entity.
    """

    class Entry(Struct):
        class Entity(Struct):
            entity_type: str
            entity_name: str | None  # null: the default entity

        error_code: i16
        error_message: str | None
        entity: list[Entity]

    throttle_time_ms: i32
    entries: list[Entry]
