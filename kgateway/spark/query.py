"""
What a query reads, as its options say: where the logs are, which topics and columns, and how it is divided into tasks.
"""

import logging
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from urllib.parse import urlsplit

from kgateway.client.cluster import Cluster
from kgateway.client.offsets import Extent
from kgateway.spark.decoders.columns import decoders_of, kafka_columns
from kgateway.spark.errors import DataLost, WrongOption
from kgateway.spark.http.client import Access, UrlPath, is_url, url_path
from kgateway.spark.logs.broker_logs import ServerLogs, Servers
from kgateway.spark.logs.files import LocalFiles
from kgateway.spark.logs.folder import FolderLogs, RemoteFolderLogs
from kgateway.spark.logs.interface import Logs
from kgateway.spark.logs.offset_range import OffsetRange, split, within
from kgateway.spark.options import Options
from kgateway.spark.readers.range_reader import ReadSpec
from kgateway.spark.readers.topic_selection import TopicSelection, selection_of
from kgateway.topic_partition import TopicPartition

_log = logging.getLogger(__name__)
_FILES = {"log": False, "parquet": True}
_ISOLATION = {"read_uncommitted": False, "read_committed": True}


@dataclass(frozen=True, slots=True)
class LogLocation:
    """
    Where the logs of a query are: behind servers, in a folder, in a folder whose servers say how far it may be read, or
    in a filer with SeaweedMQ's topics. It is sent to tasks.
    """

    servers: Servers | None = None
    folder: PurePath | None = None
    filer: UrlPath | None = None
    from_parquet: bool = False  # of the filer
    access: Access = field(default_factory=Access)

    def open(self, *, planning: bool) -> Logs:
        """
        Open the logs; a task that reads files need not ask servers.
        """
        if self.filer is not None:
            from kgateway.spark.seaweed.logs import FilerLogs  # imports what only SeaweedMQ needs

            return FilerLogs(self.filer, self.access, from_parquet=self.from_parquet)
        if self.folder is None:
            assert self.servers, "either is named"
            return ServerLogs(self.servers)
        servers = ServerLogs(self.servers) if self.servers and planning else None
        committed_only = bool(self.servers and self.servers.committed_only)
        if isinstance(self.folder, UrlPath):
            return RemoteFolderLogs(self.folder, self.access, servers, committed_only=committed_only)
        return FolderLogs(self.folder, LocalFiles(), servers, committed_only=committed_only)

    def check_servers(self) -> None:
        """
        Raise Unanswered at once if no server responds, where a job begins; once it runs it retries.
        """
        if self.servers:
            with Cluster(self.servers.bootstrap, self.servers.patience_s, self.servers.answer_s) as cluster:
                cluster.any_server()

    def extents(self, topic: str) -> dict[TopicPartition, Extent]:
        """
        The current extents of the logs; Unreadable if there is no such topic.
        """
        with closing(self.open(planning=True)) as logs:
            return logs.extents(TopicSelection(names=(topic,)).partitions(logs))


@dataclass(frozen=True, slots=True)
class Query:
    """
    A query, without its start and end.
    """

    location: LogLocation
    topics: TopicSelection
    wanted: ReadSpec
    min_partitions: int
    max_records: int  # of a task; 0: no limit

    def ranges(
        self,
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        extents: Mapping[TopicPartition, Extent],
    ) -> list[OffsetRange]:
        """
        The ranges that tasks read. DataLost where some offsets do not exist any more, unless the query accepts that.
        """
        found = []
        for partition in sorted(ends):
            there, lost = within(OffsetRange(partition, starts[partition], ends[partition]), extents[partition])
            if lost:
                self.report_loss(lost)
            found.append(there)
        return split(found, self.min_partitions, self.max_records)

    def report_loss(self, lost: str) -> None:
        """
        Raise DataLost, or log it if the query accepts losses.
        """
        if self.wanted.fail_on_data_loss:
            raise DataLost(lost)
        _log.warning("%s", lost)


def query_of(options: Options, columns: Iterable[str] | None = None) -> Query:
    return Query(
        location=location_of(options),
        topics=selection_of(options),
        wanted=read_spec_of(options, columns),
        min_partitions=options.number("minPartitions", 0),
        max_records=options.number("maxRecordsPerPartition", 0),
    )


def read_spec_of(options: Options, columns: Iterable[str] | None = None) -> ReadSpec:
    names = kafka_columns(with_headers=options.flag("includeHeaders", False))
    return ReadSpec(
        names=tuple(names if columns is None else columns),
        fail_on_data_loss=options.flag("failOnDataLoss", True),
        decoders=decoders_of(options),
    )


def location_of(options: Options) -> LogLocation:
    has_servers, has_folder = options.has("kafka.bootstrap.servers"), options.has("kgateway.log.folder")
    if options.has("kgateway.filer"):
        if has_servers or has_folder:
            raise WrongOption(
                "kgateway.filer is read without any Kafka server: do not combine it with servers or a folder"
            )
        from_parquet = options.choice("kgateway.filer.files", _FILES, "log")
        return LogLocation(filer=filer_of(options), from_parquet=from_parquet, access=access_of(options))
    if not (has_servers or has_folder):
        raise WrongOption(
            "name where the topics are: kafka.bootstrap.servers for servers, kgateway.log.folder for the data folder "
            "of one on this machine or behind HTTP, kgateway.filer for a filer with those of SeaweedMQ"
        )
    servers = servers_of(options) if has_servers else None
    return LogLocation(servers, folder_of(options) if has_folder else None, access=access_of(options))


def filer_of(options: Options) -> UrlPath:
    def parse(text: str) -> UrlPath:
        path = url_path(text if is_url(text) else f"http://{text}")
        if path.target != "/" or urlsplit(path.origin).port is None:
            raise ValueError(text)
        return path

    return options.parsed("kgateway.filer", parse, "HOST:PORT of a filer's HTTP, or http://HOST:PORT")


def folder_of(options: Options) -> PurePath:
    def parse(text: str) -> PurePath:
        if is_url(text):
            return url_path(text)
        if "://" in text:
            raise ValueError(text)
        return Path(text)

    return options.parsed("kgateway.log.folder", parse, "a folder of this machine, or http://HOST:PORT/PATH")


def access_of(options: Options) -> Access:
    default = Access()
    access = Access(
        answer_s=options.number("kafka.request.timeout.ms", int(default.answer_s * 1_000)) / 1_000,
        patience_s=options.number("kafkaConsumer.pollTimeoutMs", int(default.patience_s * 1_000)) / 1_000,
        authorization=options.text("kgateway.http.authorization"),
        security_file=options.text("kgateway.seaweed.security"),
    )
    if access.security_file:
        access.check()
    return access


def servers_of(options: Options) -> Servers:
    default = Servers(options.addresses())
    return Servers(
        bootstrap=default.bootstrap,
        committed_only=options.choice("kafka.isolation.level", _ISOLATION, "read_uncommitted"),
        answer_s=options.number("kafka.request.timeout.ms", int(default.answer_s * 1_000)) / 1_000,
        patience_s=options.number("kafkaConsumer.pollTimeoutMs", int(default.patience_s * 1_000)) / 1_000,
        fetch_bytes=options.number("kafka.fetch.max.bytes", default.fetch_bytes),
    )
