"""
Functions of the codec that were written to a module at build time. Here the module is not compiled.
"""

import re
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace

import pytest

from kgateway.wire import codec
from kgateway.wire.codec_writer import CodecWriter
from kgateway.wire.decoding import DecoderWriter
from kgateway.wire.encoding import EncoderWriter
from kgateway.wire.errors import Malformed, Unencodable
from kgateway.wire.native_functions import MODULE, module_text
from tests.wire.tables import Pair, Signed, Tagged

PAIR = Pair(code=1, items=[Pair.Item(name="x", numbers=[2, 3])])


def _written(*writers: CodecWriter) -> ModuleType:
    for writer in writers:
        writer.write()
    module = ModuleType(MODULE)
    exec(module_text({writer.source.text: writer.source.scope for writer in writers}), vars(module))
    return module


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """
    The module with the functions of two messages.
    """
    monkeypatch.setitem(sys.modules, "cython", SimpleNamespace(locals=lambda **_: lambda it: it, Py_ssize_t=int))
    module = _written(DecoderWriter(Pair, 2), EncoderWriter(Pair, 2), DecoderWriter(Signed, 0))
    monkeypatch.setitem(sys.modules, MODULE, module)
    for generator in (codec._decoder, codec._encoder):
        generator.cache_clear()
    yield module
    for generator in (codec._decoder, codec._encoder):
        generator.cache_clear()


def test_functions_are_found_by_their_text(module: ModuleType) -> None:
    """
    A function of another version is not in the module, and neither is one whose table has changed since.
    """
    found = DecoderWriter(Pair, 2).write().function
    assert found.__qualname__.partition(".")[0] in vars(module)
    assert DecoderWriter(Pair, 1).write().function.__qualname__ == "decode"


def test_they_do_the_same(module: ModuleType) -> None:
    """
    They get the objects of the tables that are there at run time.
    """
    assert codec.decode(Pair, 2, codec.encode(PAIR, 2)) == PAIR
    signed = Signed(small=-1, large=-(1 << 63), key=None, names=["y"])
    assert codec.decode(Signed, 0, codec.encode(signed, 0)) == signed


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("0001 03 01 01 00 01 01", "Pair v2: items at byte 3: 2 declared, with 5 bytes left"),
        ("0001 02 00 01 00 00", "Pair v2: items.name at byte 4: null is not allowed here"),
        ("00", "Pair v2: code at byte 0: the bytes end here"),
    ],
)
def test_their_failures_name_the_field(data: str, words: str) -> None:
    """
    A compiled function leaves no variables behind, so the failure is repeated by the function that it stands for.
    """
    decoder = DecoderWriter(Pair, 2).write()
    failure = ValueError("without a frame of the function")
    assert decoder.blame_bytes(failure, bytes.fromhex(data), 0)[0] in words
    with pytest.raises(Malformed) as malformed:
        codec.decode(Pair, 2, bytes.fromhex(data))
    assert words in str(malformed.value)


@pytest.mark.usefixtures("module")
def test_values_that_cannot_be_written_are_named() -> None:
    with pytest.raises(Unencodable, match=r"Pair v2: items\.name: null is not allowed here"):
        codec.encode(Pair(code=1, items=[Pair.Item(name=None, numbers=[])]), 2)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("writer", "numbers"),
    [
        (DecoderWriter(Pair, 1), {"pos", "size", "room", "most", "n", "end"}),
        (DecoderWriter(Signed, 0), {"pos", "size", "room", "most", "end"}),  # `n` may be a part of a number of 64 bits
        (
            DecoderWriter(Tagged, 0),
            {"pos", "size", "room", "most", "n", "end", "tag1", "stop2", "tag4", "stop5", "tag7", "stop8"},
        ),
        (EncoderWriter(Tagged, 0), {"n"}),  # its tags are bytearrays
    ],
    ids=["lengths", "wide", "tags", "tags encoded"],
)
def test_positions_and_counts_are_numbers_of_the_machine(writer: CodecWriter, numbers: set[str]) -> None:
    """
    What counts or points into the bytes has a type of C.
    """
    writer.write()
    text = module_text({writer.source.text: writer.source.scope})
    assert set(re.findall(r"(\w+)=cython\.Py_ssize_t", text)) == numbers
