"""
The columns of a topic, which are those of Spark's own Kafka source in its order and with its types, and the formats
that give keys and values other types.

A decoder takes a whole column, so that it may work by column. One that knows a record's type only by the id in front of
it, as with a schema registry, would group the rows by that first.
"""

from functools import partial

import pyarrow as pa

from kgateway.spark.decoders.avro import avro_decoder
from kgateway.spark.decoders.json import json_decoder
from kgateway.spark.decoders.parse_mode import ColumnDecoder, ParseMode, ValueDecoder
from kgateway.spark.errors import WrongOption
from kgateway.spark.options import Options

HEADERS = "headers"
HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestampType": pa.int32(),
    HEADERS: pa.list_(pa.field("element", HEADER)),
}
_COLUMNS = ("key", "value")


def kafka_columns(*, with_headers: bool) -> list[str]:
    return [name for name in TYPES if with_headers or name != HEADERS]


_MODES = {mode.lower(): mode for mode in ParseMode}
_AVRO, _JSON = "avro", "json"
_DEFAULTS = {_AVRO: ParseMode.FAILFAST, _JSON: ParseMode.PERMISSIVE}  # as Spark's from_avro and from_json
_MODE, _CORRUPT = "mode", "columnNameOfCorruptRecord"


def decoders_of(options: Options) -> dict[str, ColumnDecoder]:
    found = {}
    for column in _COLUMNS:
        form, schema = f"{column}.format", f"{column}.schema"
        if options.has(form):
            chosen = options.choice(form, {name: name for name in _DEFAULTS}, "")
            decoder = options.parsed(schema, partial(_decoder, options, chosen), f"a schema for {options.text(form)}")
            found[column] = ColumnDecoder(decoder, options.choice(_MODE, _MODES, _DEFAULTS[chosen].lower()))
        elif options.has(schema):
            raise WrongOption(f"{schema} is given without {form}")
    for name in (_MODE, _CORRUPT):
        if options.has(name) and not found:
            raise WrongOption(f"{name} is given without key.format or value.format")
    return found


def _decoder(options: Options, form: str, schema: str) -> ValueDecoder:
    if form == _AVRO:
        return avro_decoder(schema)
    return json_decoder(schema, options.text(_CORRUPT, "_corrupt_record"))
