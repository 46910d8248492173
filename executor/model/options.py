"""Options that several commands about models have."""

from pathlib import Path

import click

model_option = click.option(
    "--model",
    "file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="An exported model.json instead of the ledger's; the ledger confirms it, or --digest does.",
)
models_option = click.option(
    "--model",
    "files",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="An exported model.json, once for each; the ledger confirms them, or --digest does.",
)
digest_option = click.option(
    "--digest",
    metavar="SHA256",
    help="The digest that `model export` printed; with it nobody is asked, and no network is needed.",
)
digests_option = click.option(
    "--digest",
    "digests",
    multiple=True,
    metavar="SHA256",
    help="The digest of each --model, in the same order; with them nobody is asked.",
)
