"""
Where plugins are found, and how broken ones are reported.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module, invalidate_caches
from pathlib import Path
from pkgutil import iter_modules
from textwrap import dedent

import pytest
from twisted.logger import capturedLogs, formatEvent

import twisted.plugins
from kgateway import __version__, handlers
from kgateway.server import discovery
from kgateway.server.discovery import discover, provider
from kgateway.server.registry import PluginError

HANDLER = """
    from kgateway.api import api
    from kgateway.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
    from kgateway.security.permissions import Free

    @api(HeartbeatRequest, HeartbeatResponse, versions="0-4", needs=Free("a test"))
    def heartbeat(request, context): ...

"""
CLASS = """
    from zope.interface import implementer
    from kgateway.interfaces import IApiHandler

    @implementer(IApiHandler)
    class Beat:
        name = "by hand"
"""
COMMAND = """
    # kgateway, as a command of Acme's own
    from twisted.application.service import ServiceMaker

    acme = ServiceMaker("acme", "acme.service", "Acme's gateway", "acme")
"""
BROKEN = [
    ("x = 1\ndef heartbeat(:", "SyntaxError: invalid syntax", 2),
    ("\n\nraise RuntimeError('no licence')", "RuntimeError: no licence", 3),
    ("1 / 0", "ZeroDivisionError: division by zero", 1),
    ("import sys\nsys.exit('bye')", "SystemExit: bye", 2),
    ("from kgateway.api import apy", "ImportError: cannot import name 'apy' from 'kgateway.api'", 1),
]
DROPPED = "twisted/plugins/acme"
Write = Callable[[Mapping[str, str]], None]
Install = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """
    Writes modules where Python finds them, and Twisted its plugins; their imports are undone.
    """
    before, names = set(sys.modules), set(vars(twisted.plugins))
    monkeypatch.setattr(twisted.plugins, "__path__", [*twisted.plugins.__path__, str(tmp_path / "twisted/plugins")])
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(modules: Mapping[str, str]) -> None:
        for name, text in modules.items():
            path = tmp_path / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text))
        invalidate_caches()

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]
    for name in set(vars(twisted.plugins)) - names:
        delattr(twisted.plugins, name)


@pytest.fixture
def install(tmp_path: Path, write: Write) -> Iterator[Install]:
    """
    Installs the files of a distribution and records them, as pip does.
    """

    def install(name: str, version: str, *paths: str) -> None:
        notes = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        notes.mkdir()
        (notes / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (notes / "RECORD").write_text("".join(f"{path},,\n" for path in paths))
        for path in paths:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).touch()
        invalidate_caches()

    discovery._distributions.cache_clear()
    yield install
    discovery._distributions.cache_clear()


def found(*packages: str) -> list[tuple[str, str]]:
    """
    Name and module of each plugin that is not built in.
    """
    plugins = [(plugin.value.name, plugin.module) for plugin in discover(packages)]
    return [(name, module) for name, module in plugins if not name.startswith("kgateway.handlers.")]


def refusal(*packages: str) -> str:
    """
    Why the gateway would not start.
    """
    with pytest.raises(PluginError) as caught:
        discover(packages)
    return str(caught.value)


def test_the_built_in_handlers_are_found() -> None:
    """
    There is one in each module, provided by that module.
    """
    modules = sorted(f"kgateway.handlers.{module.name}" for module in iter_modules(handlers.__path__))
    assert sorted(plugin.module for plugin in discover(())) == modules


def test_all_modules_of_a_package_are_searched(write: Write) -> None:
    """
    The package itself, its modules, and its subpackages.
    """
    write({"acme/__init__": HANDLER, "acme/one": HANDLER, "acme/deep/__init__": "", "acme/deep/two": HANDLER})
    assert found("acme") == [
        ("acme.heartbeat", "acme"),
        ("acme.deep.two.heartbeat", "acme.deep.two"),
        ("acme.one.heartbeat", "acme.one"),
    ]


def test_main_modules_are_not_imported(write: Write) -> None:
    """
    `__main__.py` is for `python -m`.
    """
    write({"acme/__init__": HANDLER, "acme/__main__": "raise SystemExit('it ran')"})
    assert found("acme") == [("acme.heartbeat", "acme")]


def test_a_package_may_be_one_module(write: Write) -> None:
    write({"acme": HANDLER})
    assert found("acme") == [("acme.heartbeat", "acme")]


def test_a_package_may_be_a_subpackage(write: Write) -> None:
    """
    Its siblings are not searched.
    """
    write({"acme/__init__": "", "acme/kafka/__init__": HANDLER, "acme/broken": "1 / 0"})
    assert found("acme.kafka") == [("acme.kafka.heartbeat", "acme.kafka")]


def test_a_dropped_in_module_is_found(write: Write) -> None:
    """
    Its place suffices.
    """
    write({DROPPED: HANDLER})
    assert found() == [("twisted.plugins.acme.heartbeat", "twisted.plugins.acme")]


def test_a_dropped_in_module_may_only_name_plugins(write: Write) -> None:
    """
    They are defined in the distribution's own package; the dropped-in module is the one they were found in.
    """
    write({"acme_kgateway": HANDLER, DROPPED: "from acme_kgateway import heartbeat"})
    assert found() == [("acme_kgateway.heartbeat", "twisted.plugins.acme")]


def test_a_dropped_in_module_need_not_mention_kgateway(write: Write) -> None:
    """
    It has the names of its plugins, and they may come from anywhere.
    """
    write({"shop_rules/__init__": "", "shop_rules/quota": HANDLER, DROPPED: "from shop_rules.quota import heartbeat"})
    assert found() == [("shop_rules.quota.heartbeat", "twisted.plugins.acme")]


@pytest.mark.parametrize("text", ["from shop_rules.quota import limit", "limit = None"], ids=["broken", "empty"])
def test_a_useless_dropped_in_module_stops_the_start(write: Write, text: str) -> None:
    """
    Nobody would notice that a plugin is missing.
    """
    write({DROPPED: text})
    assert "twisted.plugins.acme" in refusal()


@pytest.mark.parametrize(
    ("text", "lines"), [("from shop_rules.quota import limit", 1), ("limit = None", 0)], ids=["broken", "empty"]
)
def test_a_module_of_another_program_is_logged_at_most(install: Install, write: Write, text: str, lines: int) -> None:
    """
    It was installed by a distribution that does not mention kgateway, so it is not the gateway's to judge.
    """
    install("shop", "1", f"{DROPPED}.py", "shop/__init__.py", "shop-1.dist-info/METADATA")
    write({DROPPED: text})
    with capturedLogs() as logged:
        assert found() == []
    assert len(logged) == lines
    for line in map(str, map(formatEvent, logged)):
        assert line.startswith("twisted.plugins.acme is not searched for plugins: ")
        assert "Traceback" not in line


@pytest.mark.parametrize("place", ["shop/__init__", "shop-1.dist-info/METADATA"])
def test_a_module_of_a_program_with_plugins_stops_the_start(
    install: Install, write: Write, tmp_path: Path, place: str
) -> None:
    """
    The distribution mentions kgateway in another module, or requires it.
    """
    install("shop", "1", f"{DROPPED}.py", "shop/__init__.py", "shop-1.dist-info/METADATA")
    write({DROPPED: "from shop_rules.quota import limit"})
    file = tmp_path / (place if place.endswith("METADATA") else f"{place}.py")
    file.write_text(f"{file.read_text()}Requires-Dist: kgateway\n")
    assert "No module named 'shop_rules'" in refusal()


def test_a_folder_that_is_no_package_is_logged(write: Write, tmp_path: Path) -> None:
    """
    Python does not find its modules by walking through the package.
    """
    write({"acme/__init__": HANDLER, "acme/deep/one": HANDLER, "acme/deep/two": "", "acme/whole/__init__": ""})
    (tmp_path / "acme/texts").mkdir()
    with capturedLogs() as logged:
        assert found("acme") == [("acme.heartbeat", "acme")]
    assert [formatEvent(event) for event in logged] == [
        f"{tmp_path / 'acme/deep'} is not searched for plugins: it has no __init__.py"
    ]


def test_a_dropped_in_module_may_have_another_purpose(write: Write) -> None:
    """
    A command of twistd that mentions kgateway has no handler, and is no mistake.
    """
    write({DROPPED: COMMAND})
    assert found() == []


def test_our_own_twistd_command_is_no_handler() -> None:
    """
    `twisted/plugins/kgateway_plugin.py` mentions kgateway, too.
    """
    assert import_module("twisted.plugins.kgateway_plugin")
    assert found() == []


def test_a_plugin_counts_once(write: Write) -> None:
    """
    It belongs to the module where it was found first, however many import it.
    """
    again = "from acme.one import heartbeat  # for kgateway"
    write({"acme/__init__": again, "acme/one": HANDLER, DROPPED: again})
    assert found("acme") == [("acme.one.heartbeat", "twisted.plugins.acme")]


def test_importing_a_built_in_handler_does_not_provide_it(write: Write) -> None:
    write({"acme": f"{HANDLER}    from kgateway.handlers.metadata import metadata"})
    assert found("acme") == [("acme.heartbeat", "acme")]
    [module] = [
        plugin.module for plugin in discover(["acme"]) if plugin.value.name == "kgateway.handlers.metadata.metadata"
    ]
    assert module == "kgateway.handlers.metadata"


@pytest.mark.parametrize("name", ["acme", "acme.handlers", "kgateway.acme"])
def test_a_missing_package_is_reported(name: str) -> None:
    """
    The message says what to do.
    """
    where = "install it where kgateway is installed, or put its folder on PYTHONPATH"
    assert refusal(name) == f"there is no package {name}: {where}"


def test_a_missing_import_of_a_package_is_reported(write: Write) -> None:
    """
    The package itself is not missing.
    """
    write({"acme": "import acme_missing"})
    text = refusal("acme")
    assert "the plugin module acme cannot be imported: ModuleNotFoundError: No module named 'acme_missing'" in text


@pytest.mark.parametrize("text", ["", "from kgateway.api import api, around, Handler"], ids=["empty", "imports"])
def test_a_named_package_must_have_a_plugin(write: Write, text: str) -> None:
    write({"acme": text})
    assert refusal("acme").startswith("acme has no plugin: write a function and put `@api(...)`")


def test_a_dropped_in_module_without_a_plugin_is_refused(write: Write) -> None:
    """
    It has nothing that Twisted or the gateway would find.
    """
    write({DROPPED: "from kgateway.api import api"})
    assert refusal().startswith("twisted.plugins.acme has no plugin: ")


@pytest.mark.parametrize("place", ["acme", DROPPED])
def test_a_class_is_no_plugin(write: Write, place: str) -> None:
    """
    It would be skipped silently; the message shows the missing line.
    """
    write({place: CLASS})
    module = place.replace("/", ".")
    told = f"{module}.Beat is a class, but a plugin is an instance: put `beat = Beat()` below it"
    assert refusal(*[] if place == DROPPED else [place]) == told


def test_a_class_with_an_instance_is_a_plugin(write: Write) -> None:
    """
    The instance may be in another module.
    """
    write({"acme/__init__": "", "acme/beats": CLASS, "acme/made": "from acme.beats import Beat; beat = Beat()"})
    assert found("acme") == [("by hand", "acme.made")]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken[1].partition(":")[0])
@pytest.mark.parametrize("place", ["acme/__init__", "acme/deep/beat", DROPPED])
def test_a_module_that_cannot_be_imported(
    write: Write, tmp_path: Path, place: str, broken: tuple[str, str, int]
) -> None:
    """
    The message begins with the module, the error and what to do, and ends with the place, without the frames of the
    import system.
    """
    text, error, line = broken
    write({"acme/__init__": "", "acme/deep/__init__": "", place: text})
    told = refusal(*[] if place == DROPPED else ["acme"])
    head, *tail = told.splitlines()
    module = place.removesuffix("/__init__").replace("/", ".")
    assert head.startswith(f"the plugin module {module} cannot be imported: {error}")
    assert head.endswith("; fix it, or start without it")
    assert f'File "{tmp_path / place}.py", line {line}' in told
    assert "importlib" not in told
    assert "discovery" not in told
    assert tail[-1].startswith(error)


def test_built_in_handlers_are_provided_by_the_gateway() -> None:
    assert provider("kgateway.handlers.metadata") == f"kgateway {__version__}"


def test_the_provider_of_a_package(install: Install) -> None:
    """
    It is the distribution that has it, with its version.
    """
    install("acme-kgateway", "1.2", "acme_kgateway/__init__.py", "acme_kgateway/one.py")
    assert provider("acme_kgateway.one") == "acme-kgateway 1.2"


def test_the_provider_of_a_dropped_in_module(install: Install) -> None:
    """
    Many share Twisted's folder: it is the distribution with the file.
    """
    install("acme-kgateway", "1.2", "twisted/plugins/acme.py")
    install("other", "3", "twisted/plugins/other.py")
    assert provider("twisted.plugins.acme") == "acme-kgateway 1.2"


def test_the_provider_in_a_shared_namespace(install: Install) -> None:
    """
    Distributions may share a namespace: it is the one with the file, for a package its `__init__.py`.
    """
    install("acme-kgateway", "1.2", "acme/kafka/__init__.py", "acme/kafka/one.py")
    install("acme-core", "3", "acme/core.py")
    assert provider("acme.kafka") == provider("acme.kafka.one") == "acme-kgateway 1.2"
    assert provider("acme.core") == "acme-core 3"


@pytest.mark.usefixtures("install")
@pytest.mark.parametrize("module", ["acme.one", "twisted.plugins.acme"])
def test_without_a_provider_the_module_is_named(module: str) -> None:
    """
    A folder on PYTHONPATH belongs to no distribution.
    """
    assert provider(module) == module


@pytest.mark.usefixtures("install")
def test_providers_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The reactor waits meanwhile, so all distributions are searched once, not once for each module.
    """
    looks = iter([{"kgateway": ["kgateway"]}])
    monkeypatch.setattr(discovery, "packages_distributions", lambda: next(looks))
    for module in ("kgateway.handlers.metadata", "kgateway.handlers.produce", "kgateway.handlers.fetch"):
        assert provider(module).startswith("kgateway ")
