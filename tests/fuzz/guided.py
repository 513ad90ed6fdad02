"""
Fuzzing led by coverage: `python -m tests.fuzz.guided`, with libFuzzer's arguments.

The first two bytes of an input choose a message in a version, whole requests, or record batches; the rest is the data.
It starts from the seeds, unless an argument names a folder that is its corpus, or inputs to run once. When the time is
up and nothing was found it ends with 0; otherwise it prints what it found, leaves the input in a file, and ends with
another number.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import atheris

with atheris.instrument_imports(include=["kgateway"]):
    from kgateway.wire import source

    # Generated functions too: the module's own name precedes the built-in one. It must be set now, because some of them
    # are made when their modules are imported.
    vars(source)["compile"] = lambda *code: atheris.patch_code(compile(*code), trace_dataflow=True, nested=True)

    from kgateway.messages.catalogue import apis
    from kgateway.records.batch import batches, check_produced
    from kgateway.records.builder import BatchBuilder
    from kgateway.records.compression import Codec
    from kgateway.records.record import records
    from kgateway.wire.codec import decode, decoder, encode
    from kgateway.wire.errors import KafkaError, Malformed
    from kgateway.wire.headers import RequestHeader, peek, request_header_version
    from tests.fuzz.mutations import mutation
    from tests.fuzz.properties import check
    from tests.fuzz.seeds import MESSAGES, Seed, seeds

_RECORDS_BYTES_MAX = 1 << 20
_OPTIONS = [
    "-timeout=10",
    "-mutate_depth=1",
]  # unless the arguments say otherwise; each of our mutations may be several
_APIS = apis()


def fuzz_request(frame: bytes) -> None:
    """
    A request as a server reads it: peek, header, body.
    """
    try:
        key, version, _ = peek(frame)
        if key in _APIS and version in _APIS[key].request.__spec__.versions:
            request = _APIS[key].request
            _, pos = decoder(RequestHeader, request_header_version(request, version))(frame, 0)
            decoder(request, version)(frame, pos)
    except Malformed as malformed:
        if not 0 <= malformed.position <= len(frame):
            raise


def fuzz_batches(data: bytes) -> None:
    """
    Record batches as a server checks them and a consumer opens them.
    """
    try:
        for batch in batches(data):
            for _ in records(batch, _RECORDS_BYTES_MAX):
                pass
            check_produced(batch)
    except (Malformed, KafkaError):
        pass


_PAIRS = [(message, version) for message in MESSAGES for version in message.__spec__.versions]
_OTHERS: dict[str, Callable[[bytes], object]] = {"a request": fuzz_request, "record batches": fuzz_batches}
_TARGETS = _OTHERS | {f"{message.__name__} v{version}": partial(check, message, version) for message, version in _PAIRS}
_NAMES = list(_TARGETS)


def fuzz(data: bytes) -> None:
    name = _NAMES[_target(data)]
    try:
        _TARGETS[name](data[2:])
    except Exception:
        print(f"\nThis fails as {name}: bytes.fromhex({data[2:].hex()!r})", file=sys.stderr, flush=True)
        raise


def mutate(data: bytes, size_max: int, number: int) -> bytes:
    """
    Make the next input for libFuzzer. Its own mutations know nothing of lengths and tags, so ours make every other one
    of a message; a message that is damaged already is replaced by a seed.
    """
    target, random = _target(data) - len(_OTHERS), Random(number)
    if target < 0 or random.random() < 0.5:
        return atheris.Mutate(data, size_max)  # type: ignore[no-any-return]
    message, version = _PAIRS[target]
    try:
        decode(message, version, data[2:])
        seed = Seed(message, version, data[2:])
    except Malformed:
        seed = random.choice([seed for seed in seeds(message) if seed.version == version])
    return (data[:2] + mutation(seed, random))[:size_max]


def _target(data: bytes) -> int:
    return int.from_bytes(data[:2], "big") % len(_NAMES)


def _inputs() -> Iterator[bytes]:
    """
    The seeds, each with the number of its target.
    """
    for seed in (seed for message in MESSAGES for seed in seeds(message)):
        yield _input(f"{seed.message.__name__} v{seed.version}", seed.data)
        spec = seed.message.__spec__
        if spec.key is not None and spec.is_request:
            header = RequestHeader(
                request_api_key=spec.key, request_api_version=seed.version, correlation_id=1, client_id="c"
            )
            head = encode(header, request_header_version(seed.message, seed.version))
            yield _input("a request", head + seed.data)
    for codec in Codec:
        builder = BatchBuilder(codec=codec)
        for number in range(3):
            builder.append(b"key", b"value" * number, timestamp=number, headers=[("name", None)])
        yield _input("record batches", builder.build() * 2)


def _input(name: str, data: bytes) -> bytes:
    return _NAMES.index(name).to_bytes(2, "big") + data


def main(arguments: list[str]) -> int:
    """
    Run libFuzzer; returns the exit code.
    """
    if any(not argument.startswith("-") for argument in arguments):
        atheris.Setup([sys.argv[0], *_OPTIONS, *arguments], fuzz, custom_mutator=mutate)
        atheris.Fuzz()  # libFuzzer ends the process
    with TemporaryDirectory() as corpus:
        for number, data in enumerate(_inputs()):
            Path(corpus, str(number)).write_bytes(data)
        return subprocess.run([sys.executable, "-m", "tests.fuzz.guided", *arguments, corpus], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
