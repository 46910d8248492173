"""Numbers on the command line."""

import math
from typing import Any

import click


class NumberRange(click.FloatRange):
    """A range of numbers: click's own takes `nan` for a number within any range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the number."""
        found = super().convert(value, param, ctx)
        if math.isnan(found):
            self.fail(f"{value!r} is not a number", param, ctx)
        return found
