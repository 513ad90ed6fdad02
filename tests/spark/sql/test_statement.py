"""
Statements and options are checked before Spark is asked.
"""

from argparse import Namespace
from pathlib import Path

import pytest

from kgateway.cli.common.errors import CommandError
from kgateway.cli.spark.sql import values_of
from kgateway.spark.archive.folder import Folder
from kgateway.spark.archive.manifest import Identity, Manifest
from kgateway.spark.errors import Unreadable, WrongOption
from kgateway.spark.http.client import Access
from kgateway.spark.sql.results import RecordForm, form_of
from kgateway.spark.sql.statement import check, topic_of
from kgateway.spark.sql.tables import archives_of


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1",
        " \n-- why\n/* and\nhow */ with a as (select 1) select * from a",
        "(SELECT 1)",
        "from orders",
        "TABLE t",
    ],
)
def test_queries(statement: str) -> None:
    """
    Queries may begin with comments.
    """
    check(statement)


@pytest.mark.parametrize(
    "statement", ["DROP TABLE orders", "", "-- SELECT 1", "INSERT INTO orders VALUES (1)", "SET a = 1"]
)
def test_statements_that_change_something_are_refused(statement: str) -> None:
    with pytest.raises(WrongOption, match="this is not a query: a statement begins with SELECT, WITH"):
        check(statement)


def test_names_of_topics() -> None:
    """
    Names ignore case, as in SQL, unless topics differ in case only.
    """
    there = ["Orders", "clicks", "Clicks", "a.b"]
    assert topic_of(["orders"], there, is_case_sensitive=False) == "Orders"
    assert topic_of(["orders"], there, is_case_sensitive=True) == "orders"
    assert topic_of(["clicks"], there, is_case_sensitive=True) == "clicks"
    assert topic_of(["a.b"], there, is_case_sensitive=False) == "a.b"
    assert topic_of(["nothing"], there, is_case_sensitive=False) == "nothing"
    with pytest.raises(Unreadable, match="topics Clicks and clicks are the same to SQL"):
        topic_of(["CLICKS"], there, is_case_sensitive=False)
    with pytest.raises(Unreadable, match=r"there is no table a\.b: write `a\.b`"):
        topic_of(["a", "b"], there, is_case_sensitive=False)
    with pytest.raises(Unreadable, match=r"there is no table a\.c$"):
        topic_of(["a", "c"], there, is_case_sensitive=False)


def made(path: Path, topic: str) -> Folder:
    folder = Folder(path)
    folder.manifests.commit(Manifest(identity=Identity(topic=topic)))
    return folder


def test_archives_are_named_in_three_ways(tmp_path: Path) -> None:
    """
    An archive is named by its folder, by the folder around several, or by its topic.
    """
    orders, clicks = made(tmp_path / "all" / "o=1", "orders"), made(tmp_path / "all" / "clicks", "clicks")
    other = made(tmp_path / "other", "views")
    assert archives_of([str(tmp_path / "all"), str(other.path)], Access()) == {
        "orders": orders,
        "clicks": clicks,
        "views": other,
    }
    assert archives_of([f"old={other.path}", str(orders.path)], Access()) == {"old": other, "orders": orders}
    assert archives_of([str(orders.path), str(tmp_path / "all")], Access()) == {"orders": orders, "clicks": clicks}


def test_missing_archives(tmp_path: Path) -> None:
    """
    Missing archives, and two of one topic, are errors.
    """
    one, other = made(tmp_path / "one", "orders"), made(tmp_path / "other", "orders")
    with pytest.raises(WrongOption, match="there are two archives of topic orders, "):
        archives_of([str(one.path), str(other.path)], Access())
    for text in (str(tmp_path / "nowhere"), f"orders={tmp_path}"):
        with pytest.raises(WrongOption, match="there is no archive in /"):
            archives_of([text], Access())


def test_rows_that_are_records() -> None:
    """
    Columns have roles by their names, virtual ones too; those of a record's position are ignored.
    """
    assert form_of(["value"]) == RecordForm({"value": "value"}, ())
    virtual = ["_partition", "_offset", "_ts_ns", "_key", "_value", "_headers", "_source"]
    assert form_of(virtual) == RecordForm({"key": "_key", "value": "_value", "headers": "_headers"}, ())
    assert form_of(["partition", "key", "_value"]).roles == {"key": "key", "value": "_value", "partition": "partition"}
    assert str(form_of(["key", "_value"])) == "value _value, key key"
    with pytest.raises(WrongOption, match="a record cannot have who besides value"):
        form_of(["who", "value", "_value"])


def test_rows_that_become_objects() -> None:
    """
    All columns except key and headers are in the object.
    """
    assert form_of(["_partition", "n"]) == RecordForm({}, ["_partition", "n"])
    assert form_of(["key", "n", "partition", "_headers"]) == RecordForm(
        {"key": "key", "headers": "_headers"}, ["n", "partition"]
    )
    assert str(form_of(["key", "n", "m"])) == "value JSON of n, m, key key"
    with pytest.raises(WrongOption, match="there is no column for the value"):
        form_of(["key", "_headers"])


def test_formats_of_values() -> None:
    """
    Formats are given by topic, or for all topics that have none of their own.
    """

    def formats(schemas: list[str], forms: list[str]) -> dict[str, tuple[str, str]]:
        return values_of(Namespace(value_schema=schemas, value_format=forms))

    assert formats([], []) == {}
    assert formats(["id long"], []) == {"": ("json", "id long")}
    assert formats(["a-b=id long", "x int"], ["a-b=avro"]) == {"a-b": ("avro", "id long"), "": ("json", "x int")}
    assert formats(['{"a": "b=c"}'], ["avro", "t=json"]) == {
        "": ("avro", '{"a": "b=c"}'),
        "t": ("json", '{"a": "b=c"}'),
    }
    with pytest.raises(CommandError, match="--value-format is given without --value-schema"):
        formats([], ["avro"])
    with pytest.raises(CommandError, match="--value-format xml is not one of json, avro"):
        formats(["id long"], ["xml"])
