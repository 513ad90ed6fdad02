"""
Schemas as DDL, such as `id long, lines array<struct<sku: string>>`, in the grammar of Spark's SQL.

Spark parses DDL in Java, and sources are planned in Python processes that have none.
"""

import re
from collections.abc import Callable

from pyspark.sql import types as t

_TOKEN = re.compile(r"\s*(?:(?P<quoted>`(?:[^`]|``)+`)|(?P<text>'(?:[^'\\]|\\.)*')|(?P<word>\w+)|(?P<sign>[<>(),:]))")
_NAMES: dict[str, Callable[[], t.DataType]] = {
    "boolean": t.BooleanType,
    "tinyint": t.ByteType,
    "byte": t.ByteType,
    "smallint": t.ShortType,
    "short": t.ShortType,
    "int": t.IntegerType,
    "integer": t.IntegerType,
    "bigint": t.LongType,
    "long": t.LongType,
    "float": t.FloatType,
    "real": t.FloatType,
    "double": t.DoubleType,
    "date": t.DateType,
    "timestamp": t.TimestampType,
    "timestamp_ltz": t.TimestampType,
    "timestamp_ntz": t.TimestampNTZType,
    "string": t.StringType,
    "binary": t.BinaryType,
}
_DECIMALS = ("decimal", "dec", "numeric")


def parse_ddl(text: str) -> t.StructType:
    """
    The schema; ValueError where the text is none.
    """
    parser = _Parser(text)
    schema = t.StructType(parser.listed(parser.field))
    parser.check_end()
    return schema


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def listed(self, one: Callable[[], t.StructField]) -> list[t.StructField]:
        found = [one()]
        while self._took(","):
            found.append(one())
        return found

    def field(self) -> t.StructField:
        name = self._name()
        self._took(":")
        kind = self._type()
        is_nullable = not self._took("not")
        if not is_nullable:
            self._expect("null")
        comment = self._next("text")[1:-1] if self._took("comment") else None
        return t.StructField(name, kind, is_nullable, {"comment": comment} if comment else None)

    def check_end(self) -> None:
        if self._text[self._at :].strip():
            raise self._wrong()

    def _type(self) -> t.DataType:
        name = self._next("word").lower()
        if name in _NAMES:
            return _NAMES[name]()
        if name in _DECIMALS:
            return t.DecimalType(*self._precision())
        return self._nested(name)

    def _nested(self, name: str) -> t.DataType:
        if name not in {"array", "map", "struct"}:
            raise ValueError(f"there is no type {name}")
        self._expect("<")
        if name == "array":
            made: t.DataType = t.ArrayType(self._type())
        elif name == "map":
            key = self._type()
            self._expect(",")
            made = t.MapType(key, self._type())
        else:
            made = t.StructType(self.listed(self.field))
        self._expect(">")
        return made

    def _precision(self) -> list[int]:
        if not self._took("("):
            return []
        numbers = [int(self._next("word"))]
        if self._took(","):
            numbers.append(int(self._next("word")))
        self._expect(")")
        return numbers

    def _name(self) -> str:
        token = self._match()
        if token and token["quoted"]:
            self._at = token.end()
            return token["quoted"][1:-1].replace("``", "`")
        return self._next("word")

    def _match(self) -> "re.Match[str] | None":
        return _TOKEN.match(self._text, self._at)

    def _next(self, kind: str) -> str:
        token = self._match()
        if not token or token[kind] is None:
            raise self._wrong()
        self._at = token.end()
        return token[kind]

    def _took(self, wanted: str) -> bool:
        """
        Whether this is the next word or sign, which is skipped then.
        """
        token = self._match()
        if not token or wanted != (token["word"] or token["sign"] or "").lower():
            return False
        self._at = token.end()
        return True

    def _expect(self, wanted: str) -> None:
        if not self._took(wanted):
            raise self._wrong()

    def _wrong(self) -> ValueError:
        left = self._text[self._at :].strip()
        return ValueError(f"{left!r} is unexpected" if left else "it ends too early")
