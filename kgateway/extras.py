"""
The extras of the distribution: which libraries each brings, and how it is installed.
"""

from pathlib import Path
from shlex import quote

_LIBRARIES = {
    "spark": ("pyspark", "pyarrow", "numpy", "pandas", "fastavro"),
    "seaweedmq": ("h2", "google", "OpenSSL", "service_identity"),
}
_ROOT = Path(__file__).parents[1]


def install_command(extra: str, root: Path = _ROOT) -> str:
    """
    The command that installs an extra, quoted for a shell: of this checkout, or of an installed distribution.
    """
    if not (root / "setup.cfg").is_file():
        return f"pip install {quote(f'kgateway[{extra}]')}"
    where = "." if root == Path.cwd() else root
    return f"pip install -e {quote(f'{where}[{extra}]')}"


def not_installed(error: ImportError, extra: str | None = None) -> str | None:
    """
    What to do about a library that cannot be imported, or None if no extra is known to bring it.
    """
    library = (error.name or "").partition(".")[0]
    extra = extra or next((name for name, libraries in _LIBRARIES.items() if library in libraries), None)
    if extra is None:
        return None
    return f"the extra `{extra}` is not installed (there is no {library}): install it with `{install_command(extra)}`"
