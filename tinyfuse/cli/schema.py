"""`tinyfuse schema`: prints the JSON Schema of a command's answer with --json."""

from __future__ import annotations

import click

from tinyfuse.schema.answers import ANSWERS
from tinyfuse.schema.document import schema_text

_EXAMPLES = """\b
Examples:
  tinyfuse schema report > report.schema.json
  tinyfuse schema error
"""


@click.command("schema", epilog=_EXAMPLES)
@click.argument("name", type=click.Choice(list(ANSWERS)), metavar="COMMAND")
def command(name: str) -> int:
    """Print the JSON Schema of what COMMAND prints with --json. COMMAND `error`: what any command prints if it
    fails."""
    click.echo(schema_text(name), nl=False)
    return 0
