"""
Kafka's own classes in Java processes.
"""

import json
import subprocess
from base64 import b64decode
from pathlib import Path
from typing import Any

from kgateway.wire.schema import Struct
from kgateway.wire.types import Binary, ListOf, Referenced, StructOf, UuidType, WireType

HERE = Path(__file__).parent


class Java:
    """
    A Java program of this folder, run with one generation of Kafka, `new` or `old`: a line in, a line out.
    """

    def __init__(self, program: str, generation: str) -> None:
        jars = HERE / "target" / generation
        if not jars.is_dir():
            raise FileNotFoundError(f"{jars} is missing: mvn -f {HERE / 'pom.xml'} package")
        command = ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", str(HERE / program)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")

    def ask(self, line: str) -> str:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().rstrip("\n")

    def close(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


class Oracle:
    """
    The message classes of one generation.
    """

    def __init__(self, generation: str) -> None:
        self._java = Java("Oracle.java", generation)

    def ask(self, name: str, version: int, data: bytes) -> tuple[bytes, Any] | None:
        """
        Kafka's bytes after reading these ones, and its JSON of them; `None` if it lacks the version.
        """
        answer = self._java.ask(f"{name} {version} {data.hex()}")
        if answer == "-":
            return None
        if not answer or answer.startswith("!"):
            raise AssertionError(f"Kafka cannot read {name} v{version} {data.hex()}: {answer}")
        again, _, shown = answer.partition(" ")
        return bytes.fromhex(again), json.loads(shown)

    def close(self) -> None:
        self._java.close()


def matches(value: Struct, shown: dict[str, Any], version: int) -> bool:
    """
    Whether Kafka's JSON and our value agree on each field; fields left out have their defaults.
    """
    lowered = {name.lower(): item for name, item in shown.items()}
    for field in value.__fields__:
        name = field.name.replace("_", "")
        if version in field.versions and name in lowered:
            if not _same(getattr(value, field.name), lowered.pop(name), field.type, version):
                return False
        elif version in field.versions and field.tag is None:
            return False
    return not lowered


def _same(value: Any, shown: Any, kind: WireType, version: int) -> bool:
    match kind:
        case _ if value is None or shown is None:
            return value is shown
        case ListOf(item):
            pairs = zip(value, shown, strict=False)
            return len(value) == len(shown) and all(_same(ours, theirs, item, version) for ours, theirs in pairs)
        case StructOf():
            return matches(value, shown, version)
        case UuidType():
            return bool(str(value) == shown)
        case Referenced():
            return True  # Kafka shows it as records, which these bytes are not; the bytes were compared
        case Binary():
            return bool(bytes(value) == b64decode(shown))
        case _:
            return bool(value == shown)
