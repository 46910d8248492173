"""The `executor` command: one group, one module per command."""

import click


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="attestree", prog_name="executor")
def main() -> None:
    """Train anomaly detectors together, and check afterwards what happened."""
