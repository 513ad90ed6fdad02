from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListClusterNodesRequest(_message.Message):
    __slots__ = ("client_type", "filer_group", "limit")
    CLIENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    FILER_GROUP_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    client_type: str
    filer_group: str
    limit: int
    def __init__(self, client_type: _Optional[str] = ..., filer_group: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ListClusterNodesResponse(_message.Message):
    __slots__ = ("cluster_nodes",)
    class ClusterNode(_message.Message):
        __slots__ = ("address", "version", "created_at_ns", "data_center", "rack")
        ADDRESS_FIELD_NUMBER: _ClassVar[int]
        VERSION_FIELD_NUMBER: _ClassVar[int]
        CREATED_AT_NS_FIELD_NUMBER: _ClassVar[int]
        DATA_CENTER_FIELD_NUMBER: _ClassVar[int]
        RACK_FIELD_NUMBER: _ClassVar[int]
        address: str
        version: str
        created_at_ns: int
        data_center: str
        rack: str
        def __init__(self, address: _Optional[str] = ..., version: _Optional[str] = ..., created_at_ns: _Optional[int] = ..., data_center: _Optional[str] = ..., rack: _Optional[str] = ...) -> None: ...
    CLUSTER_NODES_FIELD_NUMBER: _ClassVar[int]
    cluster_nodes: _containers.RepeatedCompositeFieldContainer[ListClusterNodesResponse.ClusterNode]
    def __init__(self, cluster_nodes: _Optional[_Iterable[_Union[ListClusterNodesResponse.ClusterNode, _Mapping]]] = ...) -> None: ...

class GetMasterConfigurationRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetMasterConfigurationResponse(_message.Message):
    __slots__ = ("leader",)
    LEADER_FIELD_NUMBER: _ClassVar[int]
    leader: str
    def __init__(self, leader: _Optional[str] = ...) -> None: ...
