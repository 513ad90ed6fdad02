"""
`kgateway spark sql`: a query of topics. Each topic is a table.
"""

import re
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from kgateway.cli.common.errors import UsageError
from kgateway.cli.common.values import positive
from kgateway.cli.spark.locations import IN_A_FILER, access
from kgateway.cli.spark.session import add_topics, session, source_options, spark_job, stages
from kgateway.cli.spark.sql_output import FORMATS, JSON, TABLE, check_output, into_file, lines, table
from kgateway.observe.printable import printable
from kgateway.plurals import counted

_EXAMPLE = (
    'kgateway spark sql "SELECT _partition, count(*) AS records FROM orders GROUP BY _partition" --archive archive'
)
_SERVERS = "kafka.bootstrap.servers"
_VALUES = ("json", "avro")
_OF_TOPIC = re.compile(r"(?:(?P<topic>[A-Za-z0-9._-]+)=)?(?P<text>.*)", re.DOTALL)


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "statement", metavar="STATEMENT", help="such as 'SELECT * FROM orders'; put names such as a-b in backticks"
    )
    parser.add_argument(
        "--archive",
        metavar="[TOPIC=]FOLDER|URL",
        action="append",
        default=[],
        help=f"the archive of a topic, or a folder that has archives, {IN_A_FILER}; may be repeated",
    )
    parser.add_argument(
        "--value-schema",
        metavar="[TOPIC=]SCHEMA",
        action="append",
        default=[],
        help="the schema of values, which become columns: 'id long, who string', the schema's JSON, or @FILE",
    )
    parser.add_argument(
        "--value-format",
        metavar="[TOPIC=]FORMAT",
        action="append",
        default=[],
        help=f"the format of values: {' or '.join(_VALUES)} (default {_VALUES[0]})",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--format",
        choices=FORMATS,
        help="the format of the result (default: from the ending of --output, or else a table)",
    )
    form.add_argument("--json", action="store_const", const=JSON, dest="format", help="the same as --format json")
    parser.add_argument(
        "-o", "--output", metavar="PATH", type=Path, help="the file or folder to write, which must not exist yet"
    )
    parser.add_argument(
        "--to-topic", metavar="TOPIC", help="write each row as a record of this topic, which must exist"
    )
    parser.add_argument("--limit", metavar="N", type=positive, help="at most N rows")
    add_topics(parser)


def _run(options: Namespace) -> Iterator[str]:
    form = _checked(options)
    from kgateway.spark.sql.statement import check, run_statement
    from kgateway.spark.sql.tables import Tables, archives_of

    check(options.statement)
    source, archives, of_values = (
        source_options(options),
        archives_of(options.archive, access(options)),
        values_of(options),
    )
    if options.to_topic:
        _check_target(source, options.to_topic)
    alone = partial(_value_options, of_values)
    with (
        session(options) as spark,
        Tables(spark, source, archives, _note) as tables,
        run_statement(spark, options.statement, tables, alone) as result,
    ):
        wanted = result.limit(options.limit) if options.limit else result
        yield from _output(options, form, spark, wanted, source)


def _if_interrupted(options: Namespace) -> str:
    return f"{options.to_topic} may have some of the rows" if options.to_topic else "the result is not complete"


SQL = spark_job(_add_arguments, _run, _EXAMPLE, if_interrupted=_if_interrupted, has_json=False)


def _output(options: Namespace, form: str, spark: Any, result: Any, source: dict[str, str]) -> Iterator[str]:
    began = time.monotonic()
    if options.to_topic:
        records = _write(spark, result, source, options.to_topic)
        yield f"{counted(records, 'record')} written to {options.to_topic} in {time.monotonic() - began:.1f} s"
    elif options.output:
        with stages(spark, "reading"):
            into_file(result, form, options.output, options.limit)
        yield f"{options.output}: written in {time.monotonic() - began:.1f} s"
    elif form == TABLE:
        with stages(spark, "reading"):
            shown = [*table(result, options.limit)]
        yield from shown
    else:
        yield from lines(result, form)


def _checked(options: Namespace) -> str:
    """
    The form of the result; CommandError where it has nowhere to go.
    """
    if options.to_topic and (options.output or options.format):
        raise UsageError("--to-topic writes records; leave --output and --format out")
    ending = options.output.suffix.removeprefix(".") if options.output else ""
    form: str = options.format or (ending if ending in FORMATS else TABLE)
    check_output(options.output, form)
    return form


def _note(words: str) -> None:
    print(printable(words), file=sys.stderr, flush=True)


def _value_options(of_values: dict[str, tuple[str, str]], topic: str) -> dict[str, str]:
    """
    The options of the data source that say what the values of a topic are.
    """
    form, schema = of_values.get(topic) or of_values.get("") or ("", "")
    if not form:
        return {}
    if schema.startswith("@"):
        schema = Path(schema[1:]).read_text()
    return {"value.format": form, "value.schema": schema}


def values_of(options: Namespace) -> dict[str, tuple[str, str]]:
    """
    The format of values and their schema, by topic; those of an empty topic are for all others.
    """
    forms, schemas = dict(map(_of_topic, options.value_format)), dict(map(_of_topic, options.value_schema))
    for topic, form in forms.items():
        if form not in _VALUES:
            raise UsageError(f"--value-format {form} is not one of {', '.join(_VALUES)}")
        if topic not in schemas and "" not in schemas:
            raise UsageError("--value-format is given without --value-schema")
    found = {topic: (forms.get(topic) or forms.get("") or _VALUES[0], schema) for topic, schema in schemas.items()}
    return found | {topic: (form, schemas.get(topic) or schemas[""]) for topic, form in forms.items()}


def _of_topic(text: str) -> tuple[str, str]:
    match = _OF_TOPIC.fullmatch(text)
    assert match, "it fits anything"
    return match["topic"] or "", match["text"]


def _check_target(source: dict[str, str], topic: str) -> None:
    from contextlib import closing

    from kgateway.spark.options import READ, Options
    from kgateway.spark.query import location_of
    from kgateway.spark.readers.topic_selection import TopicSelection

    if _SERVERS not in source:
        raise UsageError("--to-topic needs a server to write to: name it with --bootstrap")
    location = location_of(Options(source, READ))
    location.check_servers()
    with closing(location.open(planning=True)) as logs:
        TopicSelection(names=(topic,)).partitions(logs)


def _write(spark: Any, result: Any, source: dict[str, str], topic: str) -> int:
    """
    Write the rows as records; returns their number.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    from kgateway.spark.sql.results import as_records

    rows, form = as_records(result)
    _note(f"{topic}: each row becomes a record with {form}")
    seen = Observation()
    counting = rows.observe(seen, f.count(f.lit(1)).alias("rows"))
    with stages(spark, "reading"):
        to = {_SERVERS: source[_SERVERS], "topic": topic}
        counting.write.format("kgateway").options(**to).mode("append").save()
    return int(seen.get["rows"])
