"""
The optional compilation. All metadata are in setup.cfg, and without KGATEWAY_COMPILE=1 nothing is compiled.
Compiled modules are never put beside the sources of a checkout, because they would hide what is edited there.

    KGATEWAY_COMPILE=1 python -m build --wheel

compiles the modules that pyproject.toml names, and the functions that the codec would generate at run time for the
messages that it names.
"""

import os
import sys
import tomllib
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError

ROOT = Path(__file__).parent
NATIVE = "kgateway.wire.native"  # kgateway.wire.native_functions looks there
# An annotation stays what it is in Python. Otherwise a subclass of bytes would be refused where bytes are expected.
DIRECTIVES = {"annotation_typing": False, "language_level": 3}
VARIABLE = "KGATEWAY_COMPILE"
EDITABLE = f"""\
An editable installation uses the sources, and contains no compiled modules. Unset {VARIABLE}, or build a wheel, whose
modules are compiled, with `{VARIABLE}=1 pip wheel --no-deps .`"""
NO_COMPILER = f"""\
The modules cannot be compiled: this takes a C compiler and Python's headers. Unset {VARIABLE} to build without compiled
modules, which takes neither."""


class CompileModules(build_ext):
    def finalize_options(self) -> None:
        super().finalize_options()
        if self.inplace:
            raise SystemExit(EDITABLE)
        self.parallel = self.parallel or os.cpu_count()

    def build_extensions(self) -> None:
        from Cython.Build import cythonize

        self._try_compiler()
        self._remove_earlier()
        generated = Path(self.build_temp, *NATIVE.split(".")).with_suffix(".py")
        generated.parent.mkdir(parents=True, exist_ok=True)
        generated.write_text(_native_functions())
        for extension in self.extensions:
            extension.sources = extension.sources or [str(generated)]
            [translated] = cythonize(
                extension, build_dir=self.build_temp, compiler_directives=DIRECTIVES, force=True, quiet=True
            )
            extension.sources = translated.sources
        super().build_extensions()

    def _try_compiler(self) -> None:
        """
        One error of the compiler is enough where nothing can be compiled.
        """
        probe = Path(self.build_temp, "probe.c")
        probe.parent.mkdir(parents=True, exist_ok=True)
        probe.write_text("#include <Python.h>\n")
        try:
            self.compiler.compile([str(probe)], output_dir=self.build_temp)
        except CCompilerError as error:
            raise SystemExit(f"{error}\n{NO_COMPILER}") from None

    def _remove_earlier(self) -> None:
        """
        An earlier build may have left modules that are no longer in the list, or are older than their sources.
        """
        for earlier in Path(self.build_lib, "kgateway").rglob(f"*{EXTENSION_SUFFIXES[0]}"):
            earlier.unlink()


def _is_wanted() -> bool:
    """
    Whether the environment asks for compiled modules, in the words of kgateway's settings.
    """
    if VARIABLE not in os.environ:
        return False
    sys.path.insert(0, str(ROOT))
    from kgateway.config.kinds import boolean

    try:
        return bool(boolean().parse(os.environ[VARIABLE]))
    except ValueError as error:
        raise SystemExit(f"{VARIABLE} is {os.environ[VARIABLE]!r}: {error}") from None


def _native_functions() -> str:
    """
    The module of the codec's functions for the messages in pyproject.toml. Only clients encode requests and decode
    responses.
    """
    from kgateway.wire.decoding import DecoderWriter
    from kgateway.wire.encoding import EncoderWriter
    from kgateway.wire.native_functions import module_text
    from kgateway.wire.schema import Message

    functions = {}
    for module in map(import_module, COMPILED["messages"]):
        for message in vars(module).values():
            if isinstance(message, type) and issubclass(message, Message) and message.__module__ == module.__name__:
                is_response = message.__spec__.name.endswith("Response")
                writers = (DecoderWriter,) * (not is_response) + (EncoderWriter,) * (not message.__spec__.is_request)
                for writer in writers:
                    for version in message.__spec__.versions:
                        written = writer(message, version)
                        written.write()
                        functions[written.source.text] = written.source.scope
    return module_text(functions)


COMPILED = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["kgateway"]["compiled"]

if _is_wanted():
    # The largest is first, because the compiler would work on it alone at the end.
    files = {NATIVE: []} | {name: [f"{name.replace('.', '/')}.py"] for name in COMPILED["modules"]}
    setup(
        setup_requires=["Cython==3.3.1"],
        ext_modules=[Extension(name, files[name], extra_compile_args=["-g0"]) for name in files],
        cmdclass={"build_ext": CompileModules},
    )
else:
    setup()
