"""Options that several commands about models have."""

import click

digest_option = click.option(
    "--digest",
    metavar="SHA256",
    help="The digest that `model export` printed; with it nobody is asked, and no network is needed.",
)
