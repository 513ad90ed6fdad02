"""
Schemas as DDL, compared with Spark's own parser.
"""

from typing import Any

import pytest

from kgateway.spark.decoders.ddl import parse_ddl

SCHEMAS = [
    "id long",
    "id BIGINT, who string,price double",
    "a: int, b: struct<c: array<map<string, decimal(10,2)>>, `d e`: date>",
    "`order-id` integer NOT NULL COMMENT 'of the shop', `a``b` boolean",
    "t timestamp, n timestamp_ntz, l timestamp_ltz, d date",
    "y tinyint, s smallint, b byte, h short, r real, f float, x binary, m decimal, k dec(5), o numeric(5, 1)",
    "s struct<a int, b: struct<c: int>>",
    "  id\n long ",
    "int int, array array<array<int>>",
    "1st int",
]
WRONG = ["", "id", "id nothing", "id long,", "id long who", "a array<int", "a map<int>", "id long)", "a decimal(x)"]


@pytest.mark.parametrize("text", SCHEMAS)
def test_schemas_are_those_of_spark(spark: Any, text: str) -> None:
    """
    The schema equals the one that Spark makes of the text, or both refuse it.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        expected = StructType.fromDDL(text)
    except PySparkException:
        with pytest.raises(ValueError):  # noqa: PT011, each has its reason
            parse_ddl(text)
        return
    assert parse_ddl(text) == expected


@pytest.mark.parametrize("text", WRONG)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"there is no type|is unexpected|it ends too early|invalid"):
        parse_ddl(text)
