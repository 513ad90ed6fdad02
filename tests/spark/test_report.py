"""
Reports: counts, compared with what was written, and the page.
"""

import json
import re
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # its stubs do not pass it on

from kgateway.client.cluster import Cluster
from kgateway.client.connection import Address
from kgateway.client.group_offsets import commit_offsets
from kgateway.client.offsets import Extent
from kgateway.spark.report.facts import Bin, Frequent, Part, TopicFacts
from kgateway.spark.report.page import page
from kgateway.spark.report.plots import at, byte_step, in_bytes, in_time, number_step, time_step
from kgateway.spark.report.queries import SentTime, TopicQueries
from kgateway.topic_partition import TopicPartition
from tests.spark.gateway import Row, Topics
from tests.spark.jobs import Run, runner

START_MS, HOUR_MS = 1_763_683_200_000, 3_600_000  # midnight


@pytest.fixture
def report(topics: Topics, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """
    The command, in a folder of its own.
    """
    monkeypatch.chdir(tmp_path)
    return runner(topics, monkeypatch, "report")


def measured(topics: Topics, topic: str, *ends: int, sent: SentTime | None = None) -> TopicFacts:
    """
    The counts of partitions that end at these offsets.
    """
    extents = {index: Extent(0, end) for index, end in enumerate(ends)}
    return TopicQueries(topics.spark, topics.kafka.bootstrap, topic, extents, lambda step: None).facts(sent)


def some_rows() -> list[Row]:
    """
    A record a minute for ten hours, of many sizes, of rare and frequent keys; some lack key or value.
    """
    return [
        {
            "key": None if number % 10 == 0 else b"k%d" % (number % 7 * (number % 3)),
            "value": None if number % 25 == 0 else b"x" * (number % 100),
            "partition": number % 2,
            "timestamp": START_MS + number * 60_000,
        }
        for number in range(600)
    ]


def test_everything_is_counted(topics: Topics) -> None:
    """
    Volume, sizes and keys are those of the records that were written.
    """
    rows = some_rows()
    facts = measured(topics, topics.make(*rows), 300, 300)
    sizes = [len(row["key"] or b"") + len(row["value"] or b"") for row in rows]
    even, odd = sum(sizes[::2]), sum(sizes[1::2])
    assert facts.parts == [Part(0, 0, 300, 300, even), Part(1, 0, 300, 300, odd)]
    assert (facts.records, facts.bytes) == (600, even + odd)
    assert facts.times
    assert (facts.times.first_ms, facts.times.last_ms) == (START_MS, START_MS + 599 * 60_000)
    assert (facts.times.slot_ms, facts.times.outside, facts.times.of_server) == (600_000, 0, 0)
    assert [slot.start_ms for slot in facts.times.slots] == [START_MS + 600_000 * number for number in range(60)]
    assert {slot.records for slot in facts.times.slots} == {10}
    assert [slot.bytes for slot in facts.times.slots] == [sum(sizes[first : first + 10]) for first in range(0, 600, 10)]
    assert facts.sizes
    values = [len(row["value"]) for row in rows if row["value"] is not None]
    bounds = [0, *(1 << power for power in range(8))]
    between = [Bin(up, sum(low < size <= up for size in values)) for low, up in pairwise(bounds)]
    between[0] = Bin(1, between[0].records + values.count(0))
    assert facts.sizes.bins == between
    assert (facts.sizes.largest, facts.sizes.nulls) == (99, 24)
    keys = Counter(row["key"] for row in rows if row["key"] is not None)
    assert facts.keys
    assert (facts.keys.distinct, facts.keys.without) == (len(keys), 60)
    most = sorted(keys.items(), key=lambda one: (-one[1], one[0]))[:10]
    assert facts.keys.most == [Frequent(*one) for one in most]
    assert facts.latency is None


def test_offsets_are_those_that_were_named(topics: Topics) -> None:
    """
    Later records are not counted.
    """
    facts = measured(topics, topics.make(*some_rows()), 100, 50)
    assert [part.records for part in facts.parts] == [100, 50]
    assert facts.keys
    assert sum(one.records for one in facts.keys.most) + facts.keys.without <= 150


def test_a_time_far_outside(topics: Topics) -> None:
    """
    A single record with the time 0 does not squeeze all others into one column.
    """
    rows = [{"value": b"x", "partition": 0, "timestamp": START_MS + number * 1_000} for number in range(3_000)]
    rows[7]["timestamp"] = 1
    facts = measured(topics, topics.make(*rows), 3_000, 0)
    assert facts.times
    outside = facts.times.outside
    assert 1 <= outside < 300
    assert START_MS <= facts.times.first_ms < START_MS + 10_000
    assert sum(slot.records for slot in facts.times.slots) == 3_000 - outside
    assert len(facts.times.slots) > 40


def test_percentiles_of_sizes(topics: Topics) -> None:
    """
    The median and the 99th percentile of sizes are shown.
    """
    rows: list[Row] = [{"value": b"x" * size, "partition": 0} for size in [5] * 60 + [30] * 39 + [700]]
    sizes = measured(topics, topics.make(*rows), 100, 0).sizes
    assert sizes
    assert [sizes.share_up_to(share) for share in (0.5, 0.6, 0.61, 0.99, 1)] == [8, 8, 32, 32, 700]


SENT = [SentTime(header="sent"), SentTime(field="sent")]


@pytest.mark.parametrize("sent", SENT, ids=str)
def test_known_latency(topics: Topics, sent: SentTime) -> None:
    """
    Latency counts from the time in a record to its append time; records without one are left out.
    """
    name = f"appended-{str(sent).replace(' ', '-')}"
    made = NewTopic(name, 2, 1, config={"message.timestamp.type": "LogAppendTime"})
    topics.admin.create_topics([made])[name].result()
    times = [START_MS + number * 1_000 for number in range(99)]
    rows: list[Row] = [
        {"value": json.dumps({"sent": ms}).encode(), "headers": [("sent", str(ms).encode())], "partition": ms % 2}
        for ms in times
    ]
    iso: Row = {"value": b'{"sent": "2025-11-21T00:00:00Z"}', "headers": [("sent", b"2025-11-21T00:00:00Z")]}
    topics.fill(name, [*rows, {**iso, "partition": 0}, {"value": b"none", "partition": 1}])
    appended = [round(row.timestamp.timestamp() * 1_000) for row in topics.read(name).collect()]
    facts = measured(topics, name, 100, 1, sent=sent)
    assert facts.times
    assert facts.times.of_server == 101
    latency = facts.latency
    assert latency
    assert latency.records == 100
    assert min(appended) - START_MS - 51_000 <= latency.median_ms <= max(appended) - START_MS - 48_000
    assert min(appended) - START_MS - 1_000 <= latency.late_ms <= max(appended) - START_MS
    assert {one.start_ms for one in latency.slots} <= {slot.start_ms for slot in facts.times.slots}


def test_unknown_latency(topics: Topics) -> None:
    """
    Records with the producer's timestamp have no append time.
    """
    topic = topics.make({"value": b'{"sent": 1}', "timestamp": START_MS, "partition": 0})
    facts = measured(topics, topic, 1, 0, sent=SentTime(field="sent"))
    assert facts.latency is None
    assert "nothing shows when its records were appended" in " ".join(page("here", 0, [facts]).split())


class Page(HTMLParser):
    """
    The texts and plots of a page, and what it would load from elsewhere.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: Counter[str] = Counter()
        self.elsewhere: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.elsewhere += [value or "" for name, value in attrs if name in {"src", "href"} and (value or "")[:1] != "#"]

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())

    def row(self, first: str) -> list[str]:
        texts = [text for text in self.texts if text]
        return texts[texts.index(first) :]


def test_the_page(topics: Topics, report: Run) -> None:
    """
    The page has all topics, plots and groups, loads nothing, and escapes what clients wrote.
    """
    hostile = b"<script>alert(1)</script>"
    topic, empty = topics.make(*some_rows(), *[{"key": hostile, "value": b"1"}] * 300), topics.make()
    with Cluster([Address.parse(topics.kafka.bootstrap)], 10) as cluster:
        commit_offsets(cluster, "<b>readers", {TopicPartition(topic, 0): 100, TopicPartition(topic, 1): 250})
    found = json.loads("\n".join(report(topic, empty, "--json")))
    assert found["page"] == "report.html"
    text = Path("report.html").read_text()
    shown = Page(text)
    assert not shown.elsewhere
    assert "@import" not in text
    assert "url(" not in text
    assert (shown.tags["script"], shown.tags["b"], shown.tags["svg"], shown.tags["section"]) == (0, 0, 3, 2)
    for plot in re.findall("<svg.*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(plot)
    assert hostile.decode() in shown.texts
    told = found["topics"]
    [ends] = [[part["end"] for part in one["parts"]] for one in told if one["name"] == topic]
    lag = sum(ends) - 350
    assert f"{lag:,}" in shown.row("<b>readers")[2]
    assert [(one["name"], sum(part["records"] for part in one["parts"])) for one in told] == [(topic, 900), (empty, 0)]
    assert "This topic has no records." in shown.row(empty)


def test_records_from_a_time_on(topics: Topics, report: Run) -> None:
    """
    Earlier records are not read.
    """
    topic = topics.make(*some_rows())
    [said] = report(topic, "--since", "2025-11-21T08:00:00Z")
    assert said == "1 topic, 120 records: report.html"
    [said] = report(topic, "--since", "2035-11-21T08:00:00Z", "--overwrite")
    assert said == "1 topic, 0 records: report.html"


def test_records_that_were_deleted(topics: Topics, report: Run) -> None:
    """
    A partition begins where its log does, and a topic without remaining records is empty.
    """
    topic = topics.make(*some_rows())
    topics.delete_records(topic, 0, 300)
    topics.delete_records(topic, 1, 299)
    [said] = report(topic)
    assert said == "1 topic, 1 record: report.html"
    topics.delete_records(topic, 1, 300)
    [said] = report(topic, "--overwrite")
    assert said == "1 topic, 0 records: report.html"


MISTAKES = [
    (["reported-tpoic"], "there is no topic reported-tpoic; did you mean reported-topic?"),
    (["nothing-like-*"], "no topic matches nothing-like-*"),
    (["reported-topic", "-o", "nowhere/x.html"], "there is no folder nowhere for x.html"),
    (["reported-topic", "-o", __file__], f"{__file__} already exists; --overwrite replaces it"),
]


@pytest.mark.parametrize(("given", "said"), MISTAKES, ids=[said for _, said in MISTAKES])
def test_mistakes(topics: Topics, report: Run, capsys: pytest.CaptureFixture[str], given: list[str], said: str) -> None:
    """
    Each mistake is one line, and no page is written.
    """
    if not topics.admin.list_topics("reported-topic").topics["reported-topic"].partitions:
        topics.make(name="reported-topic")
    with pytest.raises(SystemExit) as end:
        report(*given)
    assert end.value.code == 1
    assert capsys.readouterr().err == f"kgateway spark report: {said}\n"
    assert not list(Path().iterdir())


def test_an_unreachable_server_is_one_line(report: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        report("--bootstrap", "127.0.0.1:1")
    assert "127.0.0.1:1" in capsys.readouterr().err


STEPS: list[tuple[Any, Any]] = [
    (number_step(9, 4), 5),
    (number_step(100, 4), 50),
    (number_step(0.3, 4), 1),
    (byte_step(1_000, 4), 256),
    (byte_step(1, 4), 1),
    (time_step(60_000, 60), 1_000),
    (time_step(90 * 86_400_000, 72), 2 * 86_400_000),
    (time_step(0, 72), 1),
    (time_step(40 * 365 * 86_400_000, 10), 5 * 364 * 86_400_000),
    (in_bytes(0), "0 bytes"),
    (in_bytes(1), "1 byte"),
    (in_bytes(1_536), "1.5 KiB"),
    (in_bytes(1 << 20), "1 MiB"),
    (in_time(90_000), "1.5 min"),
    (in_time(12), "12 ms"),
    (at(START_MS, HOUR_MS), "Nov 21"),
    (at(START_MS + HOUR_MS, HOUR_MS), "01:00"),
    (at(START_MS, 86_400_000), "2025-11-21"),
    (at(START_MS + 7, 1), "00:00:00.007"),
]


@pytest.mark.parametrize(("found", "wanted"), STEPS, ids=[str(wanted) for _, wanted in STEPS])
def test_steps_of_scales_are_round_numbers(found: Any, wanted: Any) -> None:
    assert found == wanted
