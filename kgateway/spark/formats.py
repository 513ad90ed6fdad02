"""
The formats of keys and values that have typed columns, by name.
"""

from collections.abc import Callable

from kgateway.spark.avro_values import avro_decoder
from kgateway.spark.failures import WrongOption
from kgateway.spark.json_values import json_decoder
from kgateway.spark.options import Options
from kgateway.spark.values import ValueDecoder

_COLUMNS = ("key", "value")
FORMATS: dict[str, Callable[[str], ValueDecoder]] = {
    "avro": avro_decoder,
    "json": json_decoder,
}  # by the text of a schema


def decoders_of(options: Options) -> dict[str, ValueDecoder]:
    """
    What decodes keys and values, where the options name a format.
    """
    found = {}
    for column in _COLUMNS:
        form, schema = f"{column}.format", f"{column}.schema"
        if options.has(form):
            make = options.choice(form, FORMATS, "")
            found[column] = options.parsed(schema, make, f"a schema for {options.text(form)}")
        elif options.has(schema):
            raise WrongOption(f"{schema} is given without {form}")
    return found
