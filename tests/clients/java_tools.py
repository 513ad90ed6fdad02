"""
Programs of Java, and Kafka's own command line tools.
"""

import os
import subprocess
from pathlib import Path
from typing import Any

from kgateway.testing.kafka import Kafka
from tests.clients.client import PATIENCE_S

SOURCES = Path(__file__).parent / "java"


def java(program: str, *arguments: str) -> list[str]:
    """
    The command that runs a class, or a source file, beside Kafka's jars.
    """
    return [
        "java",
        "-Xshare:auto",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        f"{os.environ['KAFKA_JARS']}/*",
        program,
        *arguments,
    ]


def run(
    name: str, *arguments: str, text: str = "", package: str = "org.apache.kafka.tools", fails: bool = False
) -> str:
    """
    The output of one of Kafka's command line tools; all output if it fails.
    """
    command = java(f"{package}.{name}", *arguments)
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False)
    assert bool(done.returncode) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr if fails else done.stdout


def tool(name: str, kafka: Kafka, *arguments: str, **options: Any) -> str:
    """
    The output of a tool run against a gateway.
    """
    return run(name, *arguments, "--bootstrap-server", kafka.bootstrap, **options)
