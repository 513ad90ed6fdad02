"""
packaging/compose.yaml, read as an engine would read it.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kgateway.config.settings import read_settings
from tests.packaging.containerfile import ROOT, only

PATH = ROOT / "packaging" / "compose.yaml"
_VARIABLE = re.compile(r"\$\{\w+:-(.*?)\}")


@pytest.fixture
def service() -> dict[str, Any]:
    """
    The one service, with the defaults of its variables.
    """
    service: dict[str, Any] = yaml.safe_load(_VARIABLE.sub(r"\1", PATH.read_text()))["services"]["kgateway"]
    return service


def test_the_image_is_built_from_the_checkout(service: dict[str, Any]) -> None:
    """
    Context and Containerfile are where the file says, seen from its folder and from the context.
    """
    context = (PATH.parent / service["build"]["context"]).resolve()
    assert context == ROOT
    assert (context / service["build"]["dockerfile"]).is_file()


def test_clients_are_told_where_they_reach_it(service: dict[str, Any]) -> None:
    """
    The published port is that of a listener, which advertises the port on this machine; the other one advertises the
    name of the service.
    """
    settings = read_settings([], service["environment"])
    ports = {listener.name: listener.endpoint.split(":")[1] for listener in settings.listen}
    [published] = service["ports"]
    assert published == f"127.0.0.1:9092:{ports['host']}"
    assert [str(address) for address in settings.advertise] == [
        "host=localhost:9092",
        f"services=kgateway:{ports['services']}",
    ]


def test_the_data_outlive_the_container(service: dict[str, Any]) -> None:
    """
    The volume is mounted where the image keeps its data, the only place that can be written besides /tmp.
    """
    assert service["volumes"] == [f"data:{only('VOLUME', 2)}"]
    assert "data" in yaml.safe_load(PATH.read_text())["volumes"]
    assert service["read_only"] is True
    assert service["tmpfs"] == ["/tmp"]


def test_the_start_from_the_root_of_a_checkout_is_documented() -> None:
    """
    The comment names the file by its path.
    """
    assert f"docker compose -f {PATH.relative_to(ROOT)} up" in Path(PATH).read_text()
