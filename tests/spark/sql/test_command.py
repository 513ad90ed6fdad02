"""
The command `kgateway spark sql`: its output in each format, and its errors.
"""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from pyspark.sql.functions import col
from pyspark.sql.types import StringType, StructField, StructType

from kgateway.spark.sql.columns import LOG, as_table, schema
from tests.spark.archive.archives import Archives
from tests.spark.gateway import Topics, numbered
from tests.spark.jobs import Ended, Run

EVERYTHING = (
    "SELECT timestamp_micros(1700000000123456) AS t, date'2020-01-02' AS d, 1.5d AS x, null AS n, "
    "CAST(1.10 AS DECIMAL(10, 2)) AS price, map('a', X'FF') AS m, array(struct(X'61' AS b, null AS c)) AS arr, "
    "struct(CAST('é' AS BINARY) AS s) AS st, CAST(null AS STRUCT<b: BINARY>) AS ns, true AS yes, '' AS e, "
    "'a,\"b\"\nc' AS q"
)


def rows_of(lines: list[str]) -> list[dict[str, Any]]:
    """
    The rows in lines of JSON.
    """
    return [json.loads(line) for line in lines]


def test_archive_and_log_are_one_table(topics: Topics, archives: Archives, sql: Run) -> None:
    """
    Rows have all parts of records, and their source.
    """
    first = {"value": b"v", "key": b"k", "headers": [("a", b"1"), ("b", None)], "timestamp": 1_700_000_000_123}
    topic = topics.make(first | {"partition": 1}, *numbered(10))
    archives.archive(topic)
    topics.fill(
        topic, [{"value": b"\xff\x00", "key": None, "partition": 1, "timestamp": 2}, {"value": None, "partition": 0}]
    )
    found = rows_of(
        sql(f"SELECT * FROM `{topic}` ORDER BY _partition, _offset", "--archive", archives.path, "--format", "json")
    )
    assert list(found[0]) == ["_partition", "_offset", "_ts_ns", "_key", "_value", "_headers", "_source"]
    assert [(row["_partition"], row["_offset"]) for row in found] == [(0, n) for n in range(6)] + [
        (1, n) for n in range(7)
    ]
    assert found[6] == {
        "_partition": 1,
        "_offset": 0,
        "_ts_ns": 1_700_000_000_123_000_000,
        "_key": "k",
        "_value": "v",
        "_headers": [{"key": "a", "value": "1"}, {"key": "b", "value": None}],
        "_source": "parquet_archive",
    }
    assert (found[5]["_value"], found[5]["_source"]) == (None, "live_log")
    last = {"_key": None, "_value": "FF00", "_ts_ns": 2_000_000, "_headers": None, "_source": "live_log"}
    assert found[12] == {"_partition": 1, "_offset": 6} | last


def test_without_an_archive(topics: Topics, sql: Run) -> None:
    """
    A table has numbers on the right, and texts and nulls on the left.
    """
    topic = topics.make(*numbered(12), {"value": "é\n".encode(), "key": None, "partition": 0, "timestamp": 5})
    got = sql(f"SELECT _offset, _key, _value, _source FROM `{topic}` WHERE _partition = 0 ORDER BY 1 DESC LIMIT 3")
    assert got == [
        "_offset  _key  _value  _source",
        "-------  ----  ------  --------",
        "      6  NULL  é\\n     live_log",
        "      5  k10   10      live_log",
        "      4  k8    8       live_log",
        "3 rows",
    ]


def test_typed_columns(topics: Topics, archives: Archives, sql: Run) -> None:
    """
    With a schema, values of the archive and of the log become columns.
    """
    rows = [{"value": b'{"id": %d, "who": "a,%d"}' % (number, number), "partition": number % 2} for number in range(6)]
    topic = topics.make(*rows[:4])
    archives.archive(topic)
    topics.fill(topic, rows[4:])
    asked = (f"SELECT who, id, _source FROM `{topic}` ORDER BY id", "--archive", archives.path, "--format", "csv")
    got = sql(*asked, "--value-schema", "id long, who string")
    sources = ["parquet_archive"] * 4 + ["live_log"] * 2
    assert got == ["who,id,_source", *[f'"a,{n}",{n},{source}' for n, source in enumerate(sources)]]


def test_json_has_all_types(topics: Topics, sql: Run) -> None:
    """
    JSON has times to the microsecond, text in place of bytes at any depth, and null.
    """
    written = sql(EVERYTHING, "--json")
    assert written == sql(EVERYTHING, "--format", "json")
    [row] = rows_of(written)
    assert row == {
        "t": "2023-11-14T22:13:20.123456Z",
        "d": "2020-01-02",
        "x": 1.5,
        "n": None,
        "price": 1.1,
        "m": {"a": "FF"},
        "arr": [{"b": "a", "c": None}],
        "st": {"s": "é"},
        "ns": None,
        "yes": True,
        "e": "",
        "q": 'a,"b"\nc',
    }


def test_csv_can_be_read_back(topics: Topics, sql: Run, tmp_path: Path) -> None:
    """
    Quotes and line ends are quoted, and an empty text is not null.
    """
    assert sql(EVERYTHING, "--output", "all.csv")[0].startswith("all.csv: written in ")
    text = (tmp_path / "all.csv").read_text()
    assert text.splitlines()[0] == "t,d,x,n,price,m,arr,st,ns,yes,e,q"
    [row] = csv.DictReader(text.splitlines(keepends=True))
    assert (row["t"], row["price"], row["m"]) == ("2023-11-14 22:13:20.123456", "1.10", "{a -> FF}")
    assert (row["arr"], row["st"], row["q"]) == ("[{a, null}]", "{é}", 'a,"b"\nc')
    assert text.endswith(',,true,"","a,""b""\nc"\n')


def test_parquet_has_the_types_of_spark(topics: Topics, sql: Run, tmp_path: Path) -> None:
    """
    Bytes remain bytes.
    """
    topic = topics.make(*numbered(10))
    sql(f"SELECT _offset, _value FROM `{topic}` WHERE _partition = 1", "--output", "odd.parquet")
    rows = ds.dataset(tmp_path / "odd.parquet", format="parquet").to_table().to_pylist()
    assert sorted(row["_value"] for row in rows) == [b"1", b"3", b"5", b"7", b"9"]
    assert [path.name for path in tmp_path.iterdir() if "part-" in path.name] == []


def test_a_failed_query_leaves_nothing(topics: Topics, sql: Run, tmp_path: Path, capsys: Any) -> None:
    """
    A file is written completely or not at all, and the error is that of the task.
    """
    topic = topics.make(*numbered(10), {"value": b"x", "partition": 1})
    asked = f"SELECT CAST(CAST(_value AS STRING) AS INT) AS number FROM `{topic}`"
    for name in ("numbers.json", "numbers.parquet", "numbers.txt"):
        with pytest.raises(SystemExit):
            sql(asked, "--output", name)
        assert (
            '[CAST_INVALID_INPUT] The value \'x\' of the type "STRING" cannot be cast to "INT"'
            in capsys.readouterr().err
        )
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(("numbers", "."))]


def test_tables_are_cut(topics: Topics, sql: Run) -> None:
    """
    Long results and long texts are cut.
    """
    got = sql("SELECT id, repeat('x', 100) AS text FROM range(1001)")
    assert got[2] == f"{'0':>3}  {'x' * 59}…"
    assert (len(got), got[-1]) == (1_003, "1000 rows, and there are more: --limit N shows N, --output FILE has all")
    assert sql("SELECT id FROM range(1001)", "--limit", 1_001)[-1] == "1001 rows"
    assert sql("SELECT id FROM range(1001)", "--limit", 1)[-2:] == [" 0", "1 row"]
    assert len(sql("SELECT id FROM range(1001)", "--limit", 3, "--format", "json")) == 3


def test_times_beyond_nanoseconds(spark: Any) -> None:
    """
    Such times are null, and the query succeeds.
    """
    times = ["9999-12-31T00:00:00Z", "1677-01-01T00:00:00Z", "1969-12-31T23:59:59.999Z", None]
    rows = [(None, None, "t", 0, offset, time, 0, None) for offset, time in enumerate(times)]
    kinds = schema({})
    texts = StructType([StructField(one.name, StringType()) if one.name == "timestamp" else one for one in kinds])
    made = spark.createDataFrame(rows, texts).withColumn("timestamp", col("timestamp").cast("timestamp"))
    found = as_table(made, LOG, {}).orderBy("_offset").collect()
    assert [row["_ts_ns"] for row in found] == [None, None, -1_000_000, None]


def test_rows_become_records(topics: Topics, sql: Run, capsys: Any) -> None:
    """
    A topic is copied as it is, then as JSON objects; a summary is printed.
    """
    headers = [("a", b"1")]
    topic = topics.make(
        {"value": b"\xff", "key": b"k", "headers": headers, "partition": 1}, {"value": None, "partition": 0}
    )
    to = topics.make(partitions=1)
    [said] = sql(f"SELECT * FROM `{topic}` ORDER BY _partition DESC", "--to-topic", to)
    assert said.startswith(f"2 records written to {to} in ")
    assert f"{to}: each row becomes a record with value _value, key _key, headers _headers\n" in capsys.readouterr().err
    asked = f"SELECT _partition, count(*) AS n, X'6162' AS b, 7 AS key FROM `{topic}` WHERE _partition = 1 GROUP BY 1"
    sql(asked, "--to-topic", to)
    rows = topics.read(to, includeHeaders="true").collect()
    found = {row["value"]: (row["key"], row["headers"] and [*map(tuple, row["headers"])]) for row in rows}
    made = b'{"_partition":1,"n":1,"b":"ab"}'
    assert found == {b"\xff": (b"k", headers), None: (None, None), made: (b"7", None)}


@pytest.mark.parametrize(
    ("statement", "options", "said"),
    [
        ("SELECT * FROM `oders-near`", [], "there is no topic or partition oders-near in the cluster at "),
        (
            "SELECT * FROM orders-near",
            [],
            "[INVALID_IDENTIFIER] The unquoted identifier orders-near is invalid and must be",
        ),
        ("SELECT * FROM orders.near", [], "there is no table orders.near: write `orders.near`"),
        ("SELECT * FROM a.b.c", [], "there is no table a.b.c"),
        ("SELECT who FROM `orders-near`", [], "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function"),
        (
            "SELECT nothing(",
            [],
            "[PARSE_SYNTAX_ERROR] Syntax error at or near end of input. SQLSTATE: 42601 (line 1, pos",
        ),
        ("DROP TABLE orders", [], "this is not a query: "),
        (
            "SELECT 1 AS a, 2 AS a",
            ["--format", "json"],
            "there are two columns a: rename one of them with AS",
        ),
        ("SELECT 1 AS a, 2 AS a", ["--output", "a.parquet"], "there are two columns a: "),
        ("SELECT 1", ["--format", "parquet"], "Parquet is written to a folder: name it with --output"),
        ("SELECT 1", ["--output", "."], ". already exists"),
        ("SELECT 1", ["--output", "nowhere/a.csv"], "there is no folder nowhere for a.csv"),
        ("SELECT 1", ["--to-topic", "orders.far"], "there is no topic or partition orders.far in the cluster at "),
        ("SELECT 1", ["--to-topic", "orders.near", "--format", "csv"], "--to-topic writes records; leave --output and"),
        ("SELECT 1 AS n, 2 AS value", ["--to-topic", "orders.near"], "a record cannot have n besides value"),
        ("SELECT 1", ["--archive", "nowhere"], "there is no archive in nowhere"),
        (
            "SELECT 1",
            ["--option", "startingOffsets=latest"],
            "startingOffsets is derived from the statement and the archives",
        ),
        (
            "SELECT 1",
            ["--option", "kafka.bootstraps=x"],
            "there is no option kafka.bootstraps: did you mean kafka.bootstrap",
        ),
        (
            "SELECT * FROM `orders-near`",
            ["--value-schema", "_key int"],
            "the schema has a field _key, and each topic has",
        ),
        (
            "SELECT * FROM `orders-near`",
            ["--value-schema", "id lung"],
            "'id lung' is not a schema: there is no type lung",
        ),
        (
            "SELECT * FROM `orders-near`",
            ["--value-schema", "@nowhere"],
            "nowhere: No such file or directory",
        ),
        (
            "SELECT * FROM `orders-near`",
            ["--value-schema", "id int", "--option", "mode=FAILFAST"],
            "the value of a record cannot be decoded (orders-near-",
        ),
    ],
)
def test_mistakes_are_reported_in_one_line(
    topics: Topics, sql: Run, capsys: Any, statement: str, options: list[str], said: str
) -> None:
    """
    Errors are in the user's words, with similar names.
    """
    if "orders-near" not in topics.admin.list_topics().topics:
        topics.make(*numbered(3), name="orders-near")
        topics.make(name="orders.near")
    with pytest.raises(SystemExit) as ended:
        sql(statement, *options)
    assert ended.value.code in {1, 2}
    *others, last = capsys.readouterr().err.splitlines()
    assert last.removeprefix("kgateway spark sql: ").removeprefix("error: ").startswith(said)
    assert others in ([], ["orders-near: 3 offsets in the log"])


def test_archived_values_that_do_not_fit_the_schema(topics: Topics, archives: Archives, sql: Run, capsys: Any) -> None:
    """
    By default they are null. In the mode FAILFAST the error has the place and the value.
    """
    topic = topics.make(*[{"value": b'{"id": 1}', "partition": 1}] * 3, {"value": b"none", "partition": 1})
    archives.archive(topic)
    of = "--archive", archives.path, "--value-schema", "id int"
    asked = f"SELECT count(*) AS n, sum(id) AS sum FROM `{topic}`", *of
    with pytest.raises(SystemExit):
        sql(*asked, "--option", "mode=FAILFAST")
    said = f"the value of an archived record cannot be decoded ({topic}-1, offsets 0 to 3): b'none' does not match"
    assert said in capsys.readouterr().err
    assert rows_of(sql(*asked, "--format", "json")) == [{"n": 4, "sum": 3}]
    dropping = sql(f"SELECT count(*) AS n FROM `{topic}`", *of, "--option", "mode=DROPMALFORMED", "--format", "json")
    assert rows_of(dropping) == [{"n": 3}]


def test_avro_in_archive_and_log(topics: Topics, archives: Archives, sql: Run, tmp_path: Path) -> None:
    """
    A schema in a file is for one of two joined topics.
    """
    (tmp_path / "a.avsc").write_text('{"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}')
    values = [bytes([number * 2]) for number in range(4)]
    typed = topics.make(*[{"value": value, "partition": 0} for value in values[:2]], {"value": None, "partition": 0})
    archives.archive(typed)
    topics.fill(typed, [{"value": value, "partition": 0} for value in values[2:]])
    other = topics.make(*numbered(3))
    asked = (
        f"SELECT a.id, CAST(CAST(b._value AS STRING) AS INT) AS b FROM `{typed}` a "
        f"LEFT JOIN `{other}` b ON a.id = CAST(b._value AS STRING) ORDER BY 1"
    )
    given = ("--value-format", f"{typed}=avro", "--value-schema", f"{typed}=@a.avsc")
    got = rows_of(sql(asked, "--archive", archives.path, "--format", "json", *given))
    assert got == [{"id": None, "b": None}, *[{"id": n, "b": n if n < 3 else None} for n in range(4)]]


def test_a_folder_like_a_pattern(topics: Topics, archives: Archives, sql: Run) -> None:
    """
    Spark reads no pattern in the name.
    """
    topic = topics.make(*numbered(4))
    archives.archive(topic)
    path = archives.path.rename(archives.path.with_name("a[1]{b}*"))
    assert rows_of(sql(f"SELECT count(*) AS n FROM `{topic}`", "--archive", path, "--format", "json")) == [{"n": 4}]


def test_the_command_line(topics: Topics, archives: Archives, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """
    The result is on stdout and its sources on stderr; nothing else is printed or left in the folder.
    """
    monkeypatch.chdir(tmp_path)
    topic = topics.make(*numbered(100))
    archives.archive(topic)
    topics.fill(topic, numbered(10, first=100))
    asked = f"SELECT _source, count(*) AS n FROM `{topic}` GROUP BY _source ORDER BY n"
    done = Ended(topics, "sql", asked, "--archive", str(archives.path), "--master", "local[2]", "--format", "csv")
    assert (done.code, done.out) == (0, "_source,n\nlive_log,10\nparquet_archive,100\n")
    assert done.err == f"{topic}: 100 records in the archive, then 10 offsets in the log\n"
    done = Ended(topics, "sql", "SELECT * FROM `topic_0`", "--master", "local[2]")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert [path.name for path in tmp_path.iterdir()] == [archives.path.name]
