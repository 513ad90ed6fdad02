"""
DescribeClientQuotas: describes the quotas of users, client ids and addresses (KIP-546).

 - v1: flexible

AlterClientQuotas: sets and removes quotas of users, client ids and addresses (KIP-546).

 - v1: flexible
"""

from kgateway.wire.schema import Message, Struct
from kgateway.wire.types import f64, i8, i16, i32


class DescribeClientQuotasRequest(Message, key=48, versions="0-1", flexible="1+"):
    """
    A filter for quota entities: all components must match.
    """

    class Component(Struct):
        entity_type: str  # user, client-id or ip
        match_type: i8  # 0 this name, 1 the default entity, 2 any name
        match: str | None  # null unless match_type is 0

    components: list[Component]
    strict: bool  # no entities with types beyond those named


class DescribeClientQuotasResponse(Message, key=48, versions="0-1", flexible="1+"):
    class Entry(Struct):
        class Entity(Struct):
            entity_type: str
            entity_name: str | None  # null: the default entity

        class Value(Struct):
            key: str
            value: f64

        entity: list[Entity]
        values: list[Value]

    throttle_time_ms: i32
    error_code: i16
    error_message: str | None
    entries: list[Entry] | None  # null on error


class AlterClientQuotasRequest(Message, key=49, versions="0-1", flexible="1+"):
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
    class Entry(Struct):
        class Entity(Struct):
            entity_type: str
            entity_name: str | None  # null: the default entity

        error_code: i16
        error_message: str | None
        entity: list[Entity]

    throttle_time_ms: i32
    entries: list[Entry]
