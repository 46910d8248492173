"""What a command did: its exit code and what it printed."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EXECUTOR = str(Path(sys.executable).with_name("executor"))


@dataclass(frozen=True)
class Ran:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def answer(self) -> Any:
        """The one JSON object on stdout."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """The JSON objects on stdout, one per line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> Any:
        """Why it failed: what the command says, or a launch of the first node that failed."""
        if "error" in self.answer:
            return self.answer["error"]
        return next(node["error"] for node in self.answer["nodes"] if node["error"])
