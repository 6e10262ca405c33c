"""Write the generated pages of the documentation: `python docs/generate.py`.

A test compares them with what this script would write.
"""

from __future__ import annotations

from pathlib import Path

import click

from glowmcu import show
from glowmcu.cli import cli

FOLDER = Path(__file__).resolve().parent / "generated"


def pages() -> dict[str, str]:
    """Return the text of every generated page by file name."""
    tables = {
        "operators.md": ("ONNX operators", show.operator_rows(None)),
        "instructions.md": ("Instructions and their kernels", show.instruction_rows()),
        "passes.md": ("Passes, in the order in which they run", show.pass_rows()),
        "targets.md": ("Targets", show.target_rows()),
        "boards.md": ("Boards", show.board_rows()),
    }
    found = {
        name: f"# {title}\n\n{show.markdown_table(rows)}\n"
        for name, (title, rows) in tables.items()
    }
    return {**found, "cli.md": _command_line()}


def _command_line() -> str:
    """Return the help of every command."""
    parts = ["# The command line\n"]
    context = click.Context(cli, info_name="glowmcu", max_content_width=100, terminal_width=100)
    for name in sorted(cli.commands):
        command = cli.commands[name]
        inner = click.Context(
            command, parent=context, info_name=name, max_content_width=100, terminal_width=100
        )
        parts.append(f"## glowmcu {name}\n\n```\n{command.get_help(inner)}\n```\n")
    return "\n".join(parts)


def main() -> None:
    """Write the pages that changed."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
