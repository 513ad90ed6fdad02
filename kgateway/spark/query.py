"""
What a query reads, as its options say: where, which topics, which columns, and how it is cut into tasks.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from urllib.parse import urlsplit

from kgateway.client.offsets import Extent, Partition
from kgateway.spark.columns import kafka_columns
from kgateway.spark.failures import DataLost, WrongOption
from kgateway.spark.formats import decoders_of
from kgateway.spark.options import Options
from kgateway.spark.patience import Servers
from kgateway.spark.place import Place
from kgateway.spark.planning import split, within
from kgateway.spark.ranges import OffsetRange
from kgateway.spark.reading import Wanted
from kgateway.spark.remote_access import Access
from kgateway.spark.remote_paths import UrlPath, is_url, url_path
from kgateway.spark.topics import Topics, topics_of

_log = logging.getLogger(__name__)

_FILES = {"log": False, "parquet": True}
_ISOLATION = {"read_uncommitted": False, "read_committed": True}


@dataclass(frozen=True, slots=True)
class Query:
    """
    All of it but where it begins and ends.
    """

    place: Place
    topics: Topics
    wanted: Wanted
    min_partitions: int
    max_records: int  # of a task; 0: as many as there are

    def ranges(
        self, starts: Mapping[Partition, int], ends: Mapping[Partition, int], extents: Mapping[Partition, Extent]
    ) -> list[OffsetRange]:
        """
        What tasks are to read. DataLost where not all of it is there, unless the query goes on then.
        """
        found = []
        for partition in sorted(ends):
            there, lost = within(OffsetRange(partition, starts[partition], ends[partition]), extents[partition])
            if lost:
                self.tell(lost)
            found.append(there)
        return split(found, self.min_partitions, self.max_records)

    def tell(self, lost: str) -> None:
        """
        Something is not there that was to be read.
        """
        if self.wanted.fail_on_data_loss:
            raise DataLost(lost)
        _log.warning("%s", lost)


def query_of(options: Options, columns: Iterable[str] | None = None) -> Query:
    """
    What the options say, of these columns.
    """
    return Query(
        place=place_of(options),
        topics=topics_of(options),
        wanted=wanted_of(options, columns),
        min_partitions=options.number("minPartitions", 0),
        max_records=options.number("maxRecordsPerPartition", 0),
    )


def wanted_of(options: Options, columns: Iterable[str] | None = None) -> Wanted:
    """
    The columns of a query; all, unless some are named.
    """
    names = kafka_columns(with_headers=options.flag("includeHeaders", False))
    return Wanted(
        names=tuple(names if columns is None else columns),
        fail_on_data_loss=options.flag("failOnDataLoss", True),
        decoders=decoders_of(options),
    )


def place_of(options: Options) -> Place:
    """
    Where the logs are.
    """
    has_servers, has_folder = options.has("kafka.bootstrap.servers"), options.has("kgateway.log.folder")
    if options.has("kgateway.filer"):
        if has_servers or has_folder:
            raise WrongOption("kgateway.filer is read past all servers: name neither these nor a folder with it")
        from_parquet = options.choice("kgateway.filer.files", _FILES, "log")
        return Place(filer=filer_of(options), from_parquet=from_parquet, access=access_of(options))
    if not (has_servers or has_folder):
        raise WrongOption(
            "say where the topics are: kafka.bootstrap.servers names servers, "
            "kgateway.log.folder the data folder of one on this machine or behind HTTP, "
            "kgateway.filer a filer that has those of SeaweedMQ"
        )
    servers = servers_of(options) if has_servers else None
    return Place(servers, folder_of(options) if has_folder else None, access=access_of(options))


def filer_of(options: Options) -> UrlPath:
    """
    The filer that is named.
    """

    def parse(text: str) -> UrlPath:
        path = url_path(text if is_url(text) else f"http://{text}")
        if path.target != "/" or urlsplit(path.origin).port is None:
            raise ValueError(text)
        return path

    return options.parsed("kgateway.filer", parse, "HOST:PORT of a filer's HTTP, or http://HOST:PORT")


def folder_of(options: Options) -> PurePath:
    """
    The folder that is named, of this machine or behind HTTP.
    """

    def parse(text: str) -> PurePath:
        if is_url(text):
            return url_path(text)
        if "://" in text:
            raise ValueError(text)
        return Path(text)

    return options.parsed("kgateway.log.folder", parse, "a folder of this machine, or http://HOST:PORT/PATH")


def access_of(options: Options) -> Access:
    """
    How servers behind HTTP are asked.
    """
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
    """
    The servers that are named, and how they are asked.
    """
    default = Servers(options.addresses())
    return Servers(
        bootstrap=default.bootstrap,
        committed_only=options.choice("kafka.isolation.level", _ISOLATION, "read_uncommitted"),
        answer_s=options.number("kafka.request.timeout.ms", int(default.answer_s * 1_000)) / 1_000,
        patience_s=options.number("kafkaConsumer.pollTimeoutMs", int(default.patience_s * 1_000)) / 1_000,
        fetch_bytes=options.number("kafka.fetch.max.bytes", default.fetch_bytes),
    )
