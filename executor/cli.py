"""The `executor` command: one group; a command's module is loaded when the command is called."""

import gc
import importlib
from typing import Any

import click

from executor.caller import group_options

# gRPC, the engine's client, numpy and scikit-learn load slowly, and no command needs them all.
COMMANDS = {
    "answer": "executor.replay.challenge_commands",
    "audit": "executor.audit.command",
    "challenge": "executor.replay.challenge_commands",
    "doctor": "executor.doctor.command",
    "experiment": "executor.experiment.commands",
    "image": "executor.image.command",
    "judge": "executor.replay.challenge_commands",
    "launch": "executor.launch.command",
    "logs": "executor.launch.log_command",
    "model": "executor.model.commands",
    "process": "executor.process.commands",
    "replay": "executor.replay.command",
    "simulate": "executor.experiment.simulate",
}


class Commands(click.Group):
    """Finds a command by name in the module that has it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names, for the help page."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load one command."""
        if cmd_name not in COMMANDS:
            return None
        # What is loaded stays, and looking through it for garbage would take a tenth of the start.
        gc.disable()
        try:
            found: click.Command = getattr(importlib.import_module(COMMANDS[cmd_name]), cmd_name)
        finally:
            gc.enable()
        return found


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="attestree", prog_name="executor")
@group_options
def main(**_: Any) -> None:
    """Train anomaly detectors together, and check afterwards what happened."""
