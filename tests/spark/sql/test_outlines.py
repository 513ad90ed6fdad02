"""
Which columns a statement needs, and that leaving out the others changes no row.
"""

import json
from collections.abc import Collection
from pathlib import Path

import pytest

from kgateway.spark.errors import Unreadable
from kgateway.spark.sql.columns import columns_read
from kgateway.spark.sql.statement import analyzed, columns_needed, run_statement
from kgateway.spark.sql.tables import Tables
from tests.spark.archive.archives import Archives
from tests.spark.gateway import Topics, numbered
from tests.spark.jobs import Run

PLAN = """== Physical Plan ==
* Project (2)
+- * Scan parquet  (1)

(1) Scan parquet
Output [2]: [key#1, offset#5L]
Batched: true
Location: InMemoryFileIndex [file:/tmp/outlines/0]
ReadSchema: struct<key:binary,offset:bigint>

(2) Project
Output [1]: [value#9]

===== Subqueries =====

(5) Scan parquet
Output [1]: [partition#7]
Location: InMemoryFileIndex [file:/tmp/outlines/0]

(6) Scan parquet
Output: []
Location: InMemoryFileIndex [file:/tmp/outlines/1]

(7) Scan parquet
Output [3]: [key#1, offset#5L, ... 1 more fields]
Location: InMemoryFileIndex [file:/tmp/outlines/2]

"""
EVERYTHING = {"key", "value", "partition", "offset", "timestamp", "headers"}
STATEMENTS: list[tuple[str, Collection[str] | None]] = [  # with the needed columns, where the plan shows them
    ("SELECT count(*) FROM {0}", ()),
    ("SELECT _source, count(*) FROM {0} GROUP BY _source", ()),
    ("SELECT count(_key) FROM {0}", {"key"}),
    ("SELECT sum(length(_value)), max(_offset) FROM {0}", {"value", "offset"}),
    ("SELECT * FROM {0}", EVERYTHING),
    ("SELECT to_json(struct(*)) FROM {0} ", EVERYTHING),
    ("SELECT _offset FROM {0} WHERE CAST(_key AS STRING) < 'k5' ORDER BY _ts_ns", {"offset", "key", "timestamp"}),
    ("SELECT a._offset FROM {0} a JOIN {0} b ON a._key = b._key AND a._partition = b._partition", None),
    ("SELECT _offset FROM {0} WHERE _partition = (SELECT max(_partition) FROM {0} WHERE _value IS NOT NULL)", None),
    ("SELECT _offset FROM {0} a WHERE EXISTS (SELECT 1 FROM {0} b WHERE b._key = a._key)", {"offset", "key"}),
    ("WITH t AS (SELECT *, _offset + 1 AS n FROM {0}) SELECT n FROM t UNION ALL SELECT _partition FROM t", None),
    ("SELECT _offset, row_number() OVER (PARTITION BY _partition ORDER BY _key) FROM {0}", None),
    ("SELECT DISTINCT h.key FROM {0} LATERAL VIEW explode(_headers) AS h", {"headers"}),
    ("SELECT _offset FROM (SELECT * FROM {0} ORDER BY _offset, _partition LIMIT 3)", {"offset", "partition"}),
    ("SELECT _value FROM {0} EXCEPT SELECT _key FROM {0}", {"key", "value"}),
]


def test_a_plan_is_understood() -> None:
    """
    All reads of a folder are found in a plan; the result is None where the plan does not name them all.
    """
    assert columns_read(PLAN, Path("/tmp/outlines/0")) == {"key", "offset", "partition"}
    assert columns_read(PLAN, Path("/tmp/outlines/1")) == set()
    assert columns_read(PLAN, Path("/tmp/outlines/2")) is None
    assert columns_read(PLAN, Path("/tmp/outlines/3")) is None


@pytest.fixture
def topic(topics: Topics, archives: Archives) -> str:
    """
    A topic half of which is archived.
    """
    name = topics.make({"value": b"v", "key": b"k", "headers": [("a", b"1")], "partition": 1}, *numbered(10))
    archives.archive(name)
    topics.fill(name, [*numbered(10), {"value": None, "key": None, "partition": 0}])
    return name


def test_only_needed_columns_are_read(topic: str, topics: Topics, archives: Archives) -> None:
    """
    The rows equal those of a read of all columns.
    """
    folder = archives.folder(topic)
    for statement, columns in STATEMENTS:
        text = statement.format(f"`{topic}`")
        with Tables(topics.spark, archives.options, {topic: folder}, print) as tables:
            needed = columns_needed(topics.spark, text, tables, _nothing)[topic]
            assert columns is None or set(needed) == set(columns), statement
            with run_statement(topics.spark, text, tables, _nothing) as result:
                narrow = sorted(map(repr, result.collect()))
            with analyzed(topics.spark, text, lambda name: tables.table(name, {}), tables.topics) as result:
                assert narrow == sorted(map(repr, result.collect())), statement


def test_an_unread_column_is_not_null(topic: str, topics: Topics, archives: Archives) -> None:
    """
    A query that uses an unread column after all fails instead of returning wrong rows.
    """
    with Tables(topics.spark, archives.options, {}, print) as tables:
        rows = tables.table(topic, {}, ["offset"])
        assert rows.select("_offset").count() == 22
        with pytest.raises(Exception, match="the column key was not read"):
            rows.select("_key").collect()


def test_unneeded_values_are_not_decoded(topics: Topics, archives: Archives, sql: Run) -> None:
    """
    A query fails because of values that are not Avro only if it uses them.
    """
    name = topics.make(*numbered(4))
    archives.archive(name)
    topics.fill(name, numbered(2))
    fields = [{"name": "id", "type": "long"}, {"name": "text", "type": "string"}]
    avro = json.dumps({"type": "record", "name": "order", "fields": fields})
    schema = ("--archive", archives.path, "--value-format", "avro", "--value-schema", avro, "--format", "csv")
    assert sql(f"SELECT count(*) AS n, max(_offset) AS last FROM `{name}`", *schema) == ["n,last", "6,2"]
    with pytest.raises(SystemExit):
        sql(f"SELECT id FROM `{name}`", *schema)


def test_a_missing_topic(topics: Topics, archives: Archives) -> None:
    """
    It is reported before its columns.
    """
    with Tables(topics.spark, archives.options, {}, print) as tables, pytest.raises(Unreadable, match="nowhere"):
        run_statement(topics.spark, "SELECT none FROM nowhere", tables, _nothing)


def _nothing(topic: str) -> dict[str, str]:
    return {}
