from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FilerError(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OK: _ClassVar[FilerError]
    ENTRY_NAME_TOO_LONG: _ClassVar[FilerError]
    PARENT_IS_FILE: _ClassVar[FilerError]
    EXISTING_IS_DIRECTORY: _ClassVar[FilerError]
    EXISTING_IS_FILE: _ClassVar[FilerError]
    ENTRY_ALREADY_EXISTS: _ClassVar[FilerError]
    PRECONDITION_FAILED: _ClassVar[FilerError]
OK: FilerError
ENTRY_NAME_TOO_LONG: FilerError
PARENT_IS_FILE: FilerError
EXISTING_IS_DIRECTORY: FilerError
EXISTING_IS_FILE: FilerError
ENTRY_ALREADY_EXISTS: FilerError
PRECONDITION_FAILED: FilerError

class FileId(_message.Message):
    __slots__ = ("volume_id", "file_key", "cookie")
    VOLUME_ID_FIELD_NUMBER: _ClassVar[int]
    FILE_KEY_FIELD_NUMBER: _ClassVar[int]
    COOKIE_FIELD_NUMBER: _ClassVar[int]
    volume_id: int
    file_key: int
    cookie: int
    def __init__(self, volume_id: _Optional[int] = ..., file_key: _Optional[int] = ..., cookie: _Optional[int] = ...) -> None: ...

class FileChunk(_message.Message):
    __slots__ = ("file_id", "offset", "size", "modified_ts_ns", "e_tag", "fid", "cipher_key", "is_compressed", "is_chunk_manifest")
    FILE_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    MODIFIED_TS_NS_FIELD_NUMBER: _ClassVar[int]
    E_TAG_FIELD_NUMBER: _ClassVar[int]
    FID_FIELD_NUMBER: _ClassVar[int]
    CIPHER_KEY_FIELD_NUMBER: _ClassVar[int]
    IS_COMPRESSED_FIELD_NUMBER: _ClassVar[int]
    IS_CHUNK_MANIFEST_FIELD_NUMBER: _ClassVar[int]
    file_id: str
    offset: int
    size: int
    modified_ts_ns: int
    e_tag: str
    fid: FileId
    cipher_key: bytes
    is_compressed: bool
    is_chunk_manifest: bool
    def __init__(self, file_id: _Optional[str] = ..., offset: _Optional[int] = ..., size: _Optional[int] = ..., modified_ts_ns: _Optional[int] = ..., e_tag: _Optional[str] = ..., fid: _Optional[_Union[FileId, _Mapping]] = ..., cipher_key: _Optional[bytes] = ..., is_compressed: bool = ..., is_chunk_manifest: bool = ...) -> None: ...

class FuseAttributes(_message.Message):
    __slots__ = ("file_size", "mtime", "file_mode", "uid", "gid", "crtime", "mime", "ttl_sec", "md5", "mtime_ns", "crtime_ns")
    FILE_SIZE_FIELD_NUMBER: _ClassVar[int]
    MTIME_FIELD_NUMBER: _ClassVar[int]
    FILE_MODE_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    GID_FIELD_NUMBER: _ClassVar[int]
    CRTIME_FIELD_NUMBER: _ClassVar[int]
    MIME_FIELD_NUMBER: _ClassVar[int]
    TTL_SEC_FIELD_NUMBER: _ClassVar[int]
    MD5_FIELD_NUMBER: _ClassVar[int]
    MTIME_NS_FIELD_NUMBER: _ClassVar[int]
    CRTIME_NS_FIELD_NUMBER: _ClassVar[int]
    file_size: int
    mtime: int
    file_mode: int
    uid: int
    gid: int
    crtime: int
    mime: str
    ttl_sec: int
    md5: bytes
    mtime_ns: int
    crtime_ns: int
    def __init__(self, file_size: _Optional[int] = ..., mtime: _Optional[int] = ..., file_mode: _Optional[int] = ..., uid: _Optional[int] = ..., gid: _Optional[int] = ..., crtime: _Optional[int] = ..., mime: _Optional[str] = ..., ttl_sec: _Optional[int] = ..., md5: _Optional[bytes] = ..., mtime_ns: _Optional[int] = ..., crtime_ns: _Optional[int] = ...) -> None: ...

class Entry(_message.Message):
    __slots__ = ("name", "is_directory", "chunks", "attributes", "extended", "content")
    class ExtendedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    IS_DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    EXTENDED_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    name: str
    is_directory: bool
    chunks: _containers.RepeatedCompositeFieldContainer[FileChunk]
    attributes: FuseAttributes
    extended: _containers.ScalarMap[str, bytes]
    content: bytes
    def __init__(self, name: _Optional[str] = ..., is_directory: bool = ..., chunks: _Optional[_Iterable[_Union[FileChunk, _Mapping]]] = ..., attributes: _Optional[_Union[FuseAttributes, _Mapping]] = ..., extended: _Optional[_Mapping[str, bytes]] = ..., content: _Optional[bytes] = ...) -> None: ...

class WriteCondition(_message.Message):
    __slots__ = ("clauses",)
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NONE: _ClassVar[WriteCondition.Kind]
        IF_NOT_EXISTS: _ClassVar[WriteCondition.Kind]
        IF_EXISTS: _ClassVar[WriteCondition.Kind]
        IF_ETAG_MATCH: _ClassVar[WriteCondition.Kind]
    NONE: WriteCondition.Kind
    IF_NOT_EXISTS: WriteCondition.Kind
    IF_EXISTS: WriteCondition.Kind
    IF_ETAG_MATCH: WriteCondition.Kind
    class Clause(_message.Message):
        __slots__ = ("kind", "etags")
        KIND_FIELD_NUMBER: _ClassVar[int]
        ETAGS_FIELD_NUMBER: _ClassVar[int]
        kind: WriteCondition.Kind
        etags: _containers.RepeatedScalarFieldContainer[str]
        def __init__(self, kind: _Optional[_Union[WriteCondition.Kind, str]] = ..., etags: _Optional[_Iterable[str]] = ...) -> None: ...
    CLAUSES_FIELD_NUMBER: _ClassVar[int]
    clauses: _containers.RepeatedCompositeFieldContainer[WriteCondition.Clause]
    def __init__(self, clauses: _Optional[_Iterable[_Union[WriteCondition.Clause, _Mapping]]] = ...) -> None: ...

class LookupDirectoryEntryRequest(_message.Message):
    __slots__ = ("directory", "name")
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    directory: str
    name: str
    def __init__(self, directory: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class LookupDirectoryEntryResponse(_message.Message):
    __slots__ = ("entry", "log_ts_ns", "log_signature")
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    LOG_TS_NS_FIELD_NUMBER: _ClassVar[int]
    LOG_SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    entry: Entry
    log_ts_ns: int
    log_signature: int
    def __init__(self, entry: _Optional[_Union[Entry, _Mapping]] = ..., log_ts_ns: _Optional[int] = ..., log_signature: _Optional[int] = ...) -> None: ...

class ListEntriesRequest(_message.Message):
    __slots__ = ("directory", "prefix", "start_from_file_name", "inclusive_start_from", "limit", "snapshot_ts_ns", "omit_chunks")
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    START_FROM_FILE_NAME_FIELD_NUMBER: _ClassVar[int]
    INCLUSIVE_START_FROM_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_TS_NS_FIELD_NUMBER: _ClassVar[int]
    OMIT_CHUNKS_FIELD_NUMBER: _ClassVar[int]
    directory: str
    prefix: str
    start_from_file_name: str
    inclusive_start_from: bool
    limit: int
    snapshot_ts_ns: int
    omit_chunks: bool
    def __init__(self, directory: _Optional[str] = ..., prefix: _Optional[str] = ..., start_from_file_name: _Optional[str] = ..., inclusive_start_from: bool = ..., limit: _Optional[int] = ..., snapshot_ts_ns: _Optional[int] = ..., omit_chunks: bool = ...) -> None: ...

class ListEntriesResponse(_message.Message):
    __slots__ = ("entry", "snapshot_ts_ns")
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_TS_NS_FIELD_NUMBER: _ClassVar[int]
    entry: Entry
    snapshot_ts_ns: int
    def __init__(self, entry: _Optional[_Union[Entry, _Mapping]] = ..., snapshot_ts_ns: _Optional[int] = ...) -> None: ...

class CreateEntryRequest(_message.Message):
    __slots__ = ("directory", "entry", "o_excl", "skip_check_parent_directory", "condition")
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    O_EXCL_FIELD_NUMBER: _ClassVar[int]
    SKIP_CHECK_PARENT_DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    directory: str
    entry: Entry
    o_excl: bool
    skip_check_parent_directory: bool
    condition: WriteCondition
    def __init__(self, directory: _Optional[str] = ..., entry: _Optional[_Union[Entry, _Mapping]] = ..., o_excl: bool = ..., skip_check_parent_directory: bool = ..., condition: _Optional[_Union[WriteCondition, _Mapping]] = ...) -> None: ...

class CreateEntryResponse(_message.Message):
    __slots__ = ("error", "error_code")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    error: str
    error_code: FilerError
    def __init__(self, error: _Optional[str] = ..., error_code: _Optional[_Union[FilerError, str]] = ...) -> None: ...

class UpdateEntryRequest(_message.Message):
    __slots__ = ("directory", "entry")
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    directory: str
    entry: Entry
    def __init__(self, directory: _Optional[str] = ..., entry: _Optional[_Union[Entry, _Mapping]] = ...) -> None: ...

class UpdateEntryResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ObjectMutation(_message.Message):
    __slots__ = ("type", "directory", "entry")
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PUT: _ClassVar[ObjectMutation.Type]
    PUT: ObjectMutation.Type
    TYPE_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    type: ObjectMutation.Type
    directory: str
    entry: Entry
    def __init__(self, type: _Optional[_Union[ObjectMutation.Type, str]] = ..., directory: _Optional[str] = ..., entry: _Optional[_Union[Entry, _Mapping]] = ...) -> None: ...

class ObjectTransactionRequest(_message.Message):
    __slots__ = ("lock_key", "condition", "mutations")
    LOCK_KEY_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    MUTATIONS_FIELD_NUMBER: _ClassVar[int]
    lock_key: str
    condition: WriteCondition
    mutations: _containers.RepeatedCompositeFieldContainer[ObjectMutation]
    def __init__(self, lock_key: _Optional[str] = ..., condition: _Optional[_Union[WriteCondition, _Mapping]] = ..., mutations: _Optional[_Iterable[_Union[ObjectMutation, _Mapping]]] = ...) -> None: ...

class ObjectTransactionResponse(_message.Message):
    __slots__ = ("error", "error_code")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    error: str
    error_code: FilerError
    def __init__(self, error: _Optional[str] = ..., error_code: _Optional[_Union[FilerError, str]] = ...) -> None: ...

class DeleteEntryRequest(_message.Message):
    __slots__ = ("directory", "name", "is_delete_data", "is_recursive", "ignore_recursive_error")
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    IS_DELETE_DATA_FIELD_NUMBER: _ClassVar[int]
    IS_RECURSIVE_FIELD_NUMBER: _ClassVar[int]
    IGNORE_RECURSIVE_ERROR_FIELD_NUMBER: _ClassVar[int]
    directory: str
    name: str
    is_delete_data: bool
    is_recursive: bool
    ignore_recursive_error: bool
    def __init__(self, directory: _Optional[str] = ..., name: _Optional[str] = ..., is_delete_data: bool = ..., is_recursive: bool = ..., ignore_recursive_error: bool = ...) -> None: ...

class DeleteEntryResponse(_message.Message):
    __slots__ = ("error",)
    ERROR_FIELD_NUMBER: _ClassVar[int]
    error: str
    def __init__(self, error: _Optional[str] = ...) -> None: ...

class AtomicRenameEntryRequest(_message.Message):
    __slots__ = ("old_directory", "old_name", "new_directory", "new_name")
    OLD_DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    OLD_NAME_FIELD_NUMBER: _ClassVar[int]
    NEW_DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    NEW_NAME_FIELD_NUMBER: _ClassVar[int]
    old_directory: str
    old_name: str
    new_directory: str
    new_name: str
    def __init__(self, old_directory: _Optional[str] = ..., old_name: _Optional[str] = ..., new_directory: _Optional[str] = ..., new_name: _Optional[str] = ...) -> None: ...

class AtomicRenameEntryResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Location(_message.Message):
    __slots__ = ("url", "public_url", "grpc_port")
    URL_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_URL_FIELD_NUMBER: _ClassVar[int]
    GRPC_PORT_FIELD_NUMBER: _ClassVar[int]
    url: str
    public_url: str
    grpc_port: int
    def __init__(self, url: _Optional[str] = ..., public_url: _Optional[str] = ..., grpc_port: _Optional[int] = ...) -> None: ...

class AssignVolumeRequest(_message.Message):
    __slots__ = ("count", "collection", "replication", "ttl_sec", "data_center", "path")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    REPLICATION_FIELD_NUMBER: _ClassVar[int]
    TTL_SEC_FIELD_NUMBER: _ClassVar[int]
    DATA_CENTER_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    count: int
    collection: str
    replication: str
    ttl_sec: int
    data_center: str
    path: str
    def __init__(self, count: _Optional[int] = ..., collection: _Optional[str] = ..., replication: _Optional[str] = ..., ttl_sec: _Optional[int] = ..., data_center: _Optional[str] = ..., path: _Optional[str] = ...) -> None: ...

class AssignVolumeResponse(_message.Message):
    __slots__ = ("file_id", "count", "auth", "error", "location")
    FILE_ID_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    AUTH_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    file_id: str
    count: int
    auth: str
    error: str
    location: Location
    def __init__(self, file_id: _Optional[str] = ..., count: _Optional[int] = ..., auth: _Optional[str] = ..., error: _Optional[str] = ..., location: _Optional[_Union[Location, _Mapping]] = ...) -> None: ...

class EventNotification(_message.Message):
    __slots__ = ("old_entry", "new_entry", "delete_chunks", "new_parent_path")
    OLD_ENTRY_FIELD_NUMBER: _ClassVar[int]
    NEW_ENTRY_FIELD_NUMBER: _ClassVar[int]
    DELETE_CHUNKS_FIELD_NUMBER: _ClassVar[int]
    NEW_PARENT_PATH_FIELD_NUMBER: _ClassVar[int]
    old_entry: Entry
    new_entry: Entry
    delete_chunks: bool
    new_parent_path: str
    def __init__(self, old_entry: _Optional[_Union[Entry, _Mapping]] = ..., new_entry: _Optional[_Union[Entry, _Mapping]] = ..., delete_chunks: bool = ..., new_parent_path: _Optional[str] = ...) -> None: ...

class SubscribeMetadataRequest(_message.Message):
    __slots__ = ("client_name", "path_prefix", "since_ns", "signature", "path_prefixes", "client_id", "until_ns", "client_epoch", "directories")
    CLIENT_NAME_FIELD_NUMBER: _ClassVar[int]
    PATH_PREFIX_FIELD_NUMBER: _ClassVar[int]
    SINCE_NS_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    PATH_PREFIXES_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    UNTIL_NS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_EPOCH_FIELD_NUMBER: _ClassVar[int]
    DIRECTORIES_FIELD_NUMBER: _ClassVar[int]
    client_name: str
    path_prefix: str
    since_ns: int
    signature: int
    path_prefixes: _containers.RepeatedScalarFieldContainer[str]
    client_id: int
    until_ns: int
    client_epoch: int
    directories: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, client_name: _Optional[str] = ..., path_prefix: _Optional[str] = ..., since_ns: _Optional[int] = ..., signature: _Optional[int] = ..., path_prefixes: _Optional[_Iterable[str]] = ..., client_id: _Optional[int] = ..., until_ns: _Optional[int] = ..., client_epoch: _Optional[int] = ..., directories: _Optional[_Iterable[str]] = ...) -> None: ...

class SubscribeMetadataResponse(_message.Message):
    __slots__ = ("directory", "event_notification", "ts_ns")
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    EVENT_NOTIFICATION_FIELD_NUMBER: _ClassVar[int]
    TS_NS_FIELD_NUMBER: _ClassVar[int]
    directory: str
    event_notification: EventNotification
    ts_ns: int
    def __init__(self, directory: _Optional[str] = ..., event_notification: _Optional[_Union[EventNotification, _Mapping]] = ..., ts_ns: _Optional[int] = ...) -> None: ...

class GetFilerConfigurationRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetFilerConfigurationResponse(_message.Message):
    __slots__ = ("masters", "signature", "version", "filer_group")
    MASTERS_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    FILER_GROUP_FIELD_NUMBER: _ClassVar[int]
    masters: _containers.RepeatedScalarFieldContainer[str]
    signature: int
    version: str
    filer_group: str
    def __init__(self, masters: _Optional[_Iterable[str]] = ..., signature: _Optional[int] = ..., version: _Optional[str] = ..., filer_group: _Optional[str] = ...) -> None: ...

class LogEntry(_message.Message):
    __slots__ = ("ts_ns", "partition_key_hash", "data", "key", "offset")
    TS_NS_FIELD_NUMBER: _ClassVar[int]
    PARTITION_KEY_HASH_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    ts_ns: int
    partition_key_hash: int
    data: bytes
    key: bytes
    offset: int
    def __init__(self, ts_ns: _Optional[int] = ..., partition_key_hash: _Optional[int] = ..., data: _Optional[bytes] = ..., key: _Optional[bytes] = ..., offset: _Optional[int] = ...) -> None: ...
