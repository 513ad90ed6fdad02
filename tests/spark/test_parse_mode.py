"""
Malformed values: what the option `mode` makes of them, compared with Spark's own `from_json`.
"""

import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.spark.decoders.columns import decoders_of
from kgateway.spark.errors import WrongOption
from kgateway.spark.options import READ, Options
from tests.spark.gateway import Topics, refused

SCHEMA = "id bigint, who string, at timestamp, inside struct<n: int>, _corrupt_record string"
GOOD = b'{"id": 1, "who": "me", "inside": {"n": 2}}'
VALUES = [
    GOOD,
    None,
    b'{"id": "one", "who": "a field of another type"}',
    b"no JSON",
    b"",
    b"null",
    b'{"who": 7}',
    b'{"who": {"a": [1, true]}}',
    b' {"id": 4}',
    b"3",
    b'{"id": 1.5}',
    b'{"id": null}',
    b'{"id": 5, "at": "2026-11-22T12:00:00Z"}',
]
AVRO = json.dumps({"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]})


def decoded(values: list[bytes | None], **options: str) -> tuple[list[int], list[Any]]:
    """
    The numbers of the rows that are left, and their values.
    """
    given = {"value.format": "json", "value.schema": SCHEMA} | options
    columns = {"offset": pa.array(range(len(values))), "value": pa.array(values, pa.binary())}
    found = decoders_of(Options(given, READ))["value"].decode(columns, "value")
    return found["offset"].to_pylist(), found["value"].to_pylist()


def test_rows_are_those_of_spark(spark: Any) -> None:
    """
    By default a malformed value has nulls where it does not match the schema, and its text beside them.
    """
    from pyspark.sql import functions as f

    rows = spark.createDataFrame([(value,) for value in VALUES], "value binary")
    own = rows.select(f.from_json(f.expr("cast(value as string)"), SCHEMA).alias("value")).collect()
    expected = [None if row.value is None else row.value.asDict(recursive=True) for row in own]
    _, found = decoded(VALUES)
    for value, ours, theirs in zip(VALUES, found, expected, strict=True):
        if ours and ours["at"]:
            ours["at"] = ours["at"].replace(tzinfo=None)
        assert ours == theirs, value


_BAD = st.sampled_from([b"{", b"[1]", b'{"id": "x"}', b'{"id": 1}{"id": 2}', b"\xff", b'{"inside": 3}'])


@given(st.lists(st.one_of(st.none(), st.just(GOOD), _BAD), max_size=40))
def test_malformed_values_leave_the_others_alone(values: list[bytes | None]) -> None:
    """
    Wherever malformed values are, all others are decoded; the modes differ in what becomes of the malformed ones.
    """
    good = [number for number, value in enumerate(values) if value in {None, GOOD}]
    assert decoded(values, mode="dropMalformed")[0] == good
    rows, found = decoded(values)
    assert rows == [*range(len(values))]
    assert [row for row in rows if not (found[row] and found[row]["_corrupt_record"] is not None)] == good
    if len(good) == len(values):
        assert decoded(values, mode="FAILFAST") == (rows, found)
    else:
        with pytest.raises(ValueError, match="does not match the schema"):
            decoded(values, mode="FAILFAST")


def test_the_column_of_malformed_values_has_a_name() -> None:
    """
    Its name is an option. Without the column in the schema there is none.
    """
    named = {"value.schema": "id long, wrong string", "columnNameOfCorruptRecord": "wrong"}
    assert decoded([b"x"], **named)[1] == [{"id": None, "wrong": "x"}]
    assert decoded([b"x"], **{"value.schema": "id long"})[1] == [{"id": None}]
    with pytest.raises(WrongOption, match="the column _corrupt_record must be a string"):
        decoded([b"x"], **{"value.schema": "id long, _corrupt_record long"})


def test_avro_fails_fast() -> None:
    """
    As in Spark, malformed Avro fails a query unless `mode` says otherwise, and is null in PERMISSIVE.
    """
    import io

    written = io.BytesIO()
    fastavro.schemaless_writer(written, json.loads(AVRO), {"id": 7})
    avro = {"value.format": "avro", "value.schema": AVRO}
    values = [written.getvalue(), b"\xff", None]
    with pytest.raises(ValueError, match="does not match the schema"):
        decoded(values, **avro)
    assert decoded(values, **avro, mode="PERMISSIVE")[1] == [{"id": 7}, None, None]
    assert decoded(values, **avro, mode="DROPMALFORMED") == ([0, 2], [{"id": 7}, None])


def test_queries_have_the_modes(topics: Topics) -> None:
    """
    A query, and one that does not read the values, agree in which rows there are.
    """
    topic = topics.make({"value": GOOD}, {"value": b"x"}, partitions=1)
    typed = {"value.format": "json", "value.schema": "id long"}
    assert [row.id for row in topics.read(topic, **typed).select("value.id").collect()] == [1, None]
    dropping = typed | {"mode": "DROPMALFORMED"}
    assert topics.read(topic, **dropping).select("value.id").collect() == [(1,)]
    assert topics.read(topic, "offset long", **dropping).collect() == [(0,)]
    with refused("does not match the schema"):
        topics.read(topic, **typed, mode="FAILFAST").collect()
    with refused("mode is given without key.format or value.format"):
        topics.read(topic, mode="FAILFAST").collect()
