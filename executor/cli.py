"""The `executor` command: one group, one module per command."""

from typing import Any

import click

from executor.caller import group_options
from executor.doctor.command import doctor
from executor.experiment.command import experiment
from executor.image.command import image
from executor.model.commands import model
from executor.launch.command import launch
from executor.process.commands import process
from executor.simulate.command import simulate


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="attestree", prog_name="executor")
@group_options
def main(**_: Any) -> None:
    """Train anomaly detectors together, and check afterwards what happened."""


main.add_command(doctor)
main.add_command(experiment)
main.add_command(image)
main.add_command(model)
main.add_command(launch)
main.add_command(process)
main.add_command(simulate)
