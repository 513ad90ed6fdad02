"""
The example at the end of a subcommand's help. A test runs each of them.
"""

from argparse import ArgumentParser, HelpFormatter

_HEADING = "example:\n"


class _Formatter(HelpFormatter):
    """
    Leaves examples as they are, for they are copied.
    """

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith(_HEADING) else super()._fill_text(text, width, indent)


def add_example(parser: ArgumentParser, example: str) -> None:
    """
    Lines for a shell.
    """
    parser.formatter_class = _Formatter
    parser.epilog = _HEADING + "\n".join(f"  $ {line}" for line in example.splitlines())
