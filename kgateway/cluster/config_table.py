"""
Every config of a topic in Kafka 4.3, as one table.

A row has the allowed values, the default, the config of the broker that gives the default, and whether it has an effect
here today. Configs without an effect are accepted, so that the tools of Kafka's users work; only a value that would be
a false promise is refused.
"""

from kgateway.cluster.config_rows import (
    LONG_MAX,
    ConfigRow,
    boolean,
    integer,
    long,
    ratio,
    replicas,
    word,
    words,
)

_NO_COPIES = "gateways do not copy records from one another"
_AS_WRITTEN = "files grow as they are written"
_NO_TIERS = "there is no tiered storage"


_ROWS = (
    ConfigRow(
        "cleanup.policy",
        words("compact", "delete"),
        "delete",
        "What happens to old records: delete removes them by age and size; compact keeps the last record of each key.",
        "log.cleanup.policy",
    ),
    ConfigRow(
        "compression.gzip.level",
        integer(1, 9, also=-1),
        "-1",
        "The compression level if compression.type is gzip; -1 is gzip's own default.",
        "compression.gzip.level",
    ),
    ConfigRow(
        "compression.lz4.level",
        integer(1, 17),
        "9",
        "The compression level if compression.type is lz4.",
        "compression.lz4.level",
    ),
    ConfigRow(
        "compression.type",
        word("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        "producer",
        "How records are compressed in the log; producer keeps the producer's compression.",
        "compression.type",
    ),
    ConfigRow(
        "compression.zstd.level",
        integer(-131_072, 22),
        "3",
        "The compression level if compression.type is zstd.",
        "compression.zstd.level",
    ),
    ConfigRow(
        "delete.retention.ms",
        long(0),
        "86400000",
        "How long compaction keeps tombstones, so that consumers that read from the beginning still see them.",
        "log.cleaner.delete.retention.ms",
    ),
    ConfigRow(
        "file.delete.delay.ms",
        long(0),
        "60000",
        "How long the files of a deleted segment remain on disk.",
        "log.segment.delete.delay.ms",
    ),
    ConfigRow(
        "flush.messages",
        long(1),
        str(LONG_MAX),
        "The number of records after which the log is synced.",
        "log.flush.interval.messages",
    ),
    ConfigRow(
        "flush.ms",
        long(0),
        str(LONG_MAX),
        "The time after which the log is synced.",
        "log.flush.interval.ms",
    ),
    ConfigRow(
        "follower.replication.throttled.replicas",
        replicas("follower.replication.throttled.replicas"),
        "",
        "The replicas to throttle on followers: PARTITION:BROKER pairs, or * for all.",
        without_effect=_NO_COPIES,
    ),
    ConfigRow(
        "index.interval.bytes",
        integer(0),
        "4096",
        "The number of bytes of records between two entries of a segment's index.",
        "log.index.interval.bytes",
    ),
    ConfigRow(
        "kgateway.acks.fsync",
        boolean(),
        "false",
        "Whether acks=all waits for an fsync; if so, consumers do not see records until they are synced.",
        "kgateway.acks.fsync",
    ),
    ConfigRow(
        "leader.replication.throttled.replicas",
        replicas("leader.replication.throttled.replicas"),
        "",
        "The replicas to throttle on leaders: PARTITION:BROKER pairs, or * for all.",
        without_effect=_NO_COPIES,
    ),
    ConfigRow(
        "local.retention.bytes",
        long(-2),
        "-2",
        "How much of a partition remains on the local disk once remote storage has it; -2 means retention.bytes.",
        "log.local.retention.bytes",
        _NO_TIERS,
    ),
    ConfigRow(
        "local.retention.ms",
        long(-2),
        "-2",
        "How long segments remain on the local disk once remote storage has them; -2 means retention.ms.",
        "log.local.retention.ms",
        _NO_TIERS,
    ),
    ConfigRow(
        "max.compaction.lag.ms",
        long(1),
        str(LONG_MAX),
        "The age by which a record must be compacted.",
        "log.cleaner.max.compaction.lag.ms",
    ),
    ConfigRow(
        "max.message.bytes",
        integer(0),
        "1048588",
        "The largest record batch that is accepted, after compression if it is compressed.",
        "message.max.bytes",
    ),
    ConfigRow(
        "message.timestamp.after.max.ms",
        long(0),
        "3600000",
        "How far a producer's timestamp may be ahead of the broker's clock.",
        "log.message.timestamp.after.max.ms",
    ),
    ConfigRow(
        "message.timestamp.before.max.ms",
        long(0),
        str(LONG_MAX),
        "How far a producer's timestamp may be behind the broker's clock.",
        "log.message.timestamp.before.max.ms",
    ),
    ConfigRow(
        "message.timestamp.type",
        word("CreateTime", "LogAppendTime"),
        "CreateTime",
        "Who sets timestamps: the producer (CreateTime) or the broker (LogAppendTime).",
        "log.message.timestamp.type",
    ),
    ConfigRow(
        "min.cleanable.dirty.ratio",
        ratio(),
        "0.5",
        "The fraction of a log that must be uncompacted before the log is compacted.",
        "log.cleaner.min.cleanable.ratio",
    ),
    ConfigRow(
        "min.compaction.lag.ms",
        long(0),
        "0",
        "The age before which a record is not compacted.",
        "log.cleaner.min.compaction.lag.ms",
    ),
    ConfigRow(
        "min.insync.replicas",
        integer(1),
        "1",
        "The number of replicas that must be in sync for a write with acks=all; never more than there are replicas.",
        "min.insync.replicas",
        _NO_COPIES,
    ),
    ConfigRow(
        "preallocate",
        boolean(),
        "false",
        "Whether a new segment file is allocated at its full size.",
        "log.preallocate",
        _AS_WRITTEN,
    ),
    ConfigRow(
        "remote.log.copy.disable",
        boolean(),
        "false",
        "Whether copying to remote storage is stopped.",
        without_effect=_NO_TIERS,
    ),
    ConfigRow(
        "remote.log.delete.on.disable",
        boolean(),
        "false",
        "Whether data in remote storage is deleted when remote storage is disabled for the topic.",
        without_effect=_NO_TIERS,
    ),
    ConfigRow(
        "remote.storage.enable",
        boolean(),
        "false",
        "Whether old segments move to remote storage.",
        without_effect=_NO_TIERS,
        only="false",
    ),
    ConfigRow(
        "retention.bytes",
        long(),
        "-1",
        "The size of a partition above which its oldest records are deleted; -1 means no limit.",
        "log.retention.bytes",
    ),
    ConfigRow(
        "retention.ms",
        long(-1),
        "604800000",
        "The age above which records are deleted; -1 means no limit.",
        "log.retention.ms",
    ),
    ConfigRow(
        "seaweedmq.acks",
        word("held", "flushed", "received"),
        "held",
        "How long acks=all waits on SeaweedMQ: with held or received, until a broker has the records in memory; with "
        "flushed, until they are in a file. The gateway keeps records that are not yet in a file, and publishes them "
        "again after a broker has crashed.",
        "seaweedmq.acks",
    ),
    ConfigRow(
        "seaweedmq.format",
        word("record", "plain", "batch"),
        "record",
        "How records are stored as SeaweedMQ messages: record stores each record as columns, plain stores its bare key "
        "and value, and batch stores whole batches. The format is set when the topic is "
        "created, and cannot be changed.",
        "seaweedmq.format",
        is_fixed=True,
    ),
    ConfigRow(
        "segment.bytes",
        integer(1 << 20),
        "1073741824",
        "The size at which a log begins a new segment.",
        "log.segment.bytes",
    ),
    ConfigRow(
        "segment.index.bytes",
        integer(4),
        "10485760",
        "The largest size of a segment's index.",
        "log.index.size.max.bytes",
    ),
    ConfigRow(
        "segment.jitter.ms",
        long(0),
        "0",
        "The maximum random time by which segment.ms is shortened, so that logs do not all begin a segment at once.",
        "log.roll.jitter.ms",
    ),
    ConfigRow(
        "segment.ms",
        long(1),
        "604800000",
        "The age of a segment at which the log begins a new one, even if the segment is not full.",
        "log.roll.ms",
    ),
    ConfigRow(
        "unclean.leader.election.enable",
        boolean(),
        "false",
        "Whether a replica that is not in sync may become leader, although this may lose records.",
        "unclean.leader.election.enable",
        _NO_COPIES,
    ),
)

TOPIC_CONFIGS = {row.name: row for row in _ROWS}
FIXED_CONFIGS = frozenset(row.name for row in _ROWS if row.is_fixed)
