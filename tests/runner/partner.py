"""A second hunt beside the first, on a network of its own: each of the two is the other's load."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from .surroundings import PORTS, PROJECT, ROOT

SECONDS_TO_CLEAR_UP = 600


class Partner(contextlib.AbstractContextManager["Partner"]):
    """The same tests as often, in a process with a network, ports and seeds of its own."""

    def __init__(self, times: int, seed: int, paths: Sequence[str], raw: Path) -> None:
        self.raw = raw.with_name(f"{raw.stem}-partner.jsonl")
        self.log = raw.with_name(f"{raw.stem}-partner.log")
        self.problem = ""
        self.command = [
            sys.executable, "-m", "tests.runner.flaky", str(times), "--busy", "--one-of-two",
            "--seed", str(seed), "--raw", str(self.raw), *paths,
        ]  # fmt: skip
        # Under another name it neither waits for the first hunt nor removes anything of it.
        name = PROJECT.removeprefix("attestree").removesuffix("test").strip("-")
        self.environment = {
            **os.environ,
            "ATTESTREE_TEST_PROJECT": f"attestree-{name}busy-test",
            "ATTESTREE_TEST_PORTS": str(int(PORTS) + 1),
        }

    def __enter__(self) -> Self:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                self.command,
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Wait for its last turn; if ours were broken off, have it stop too and remove its network."""
        if kind is not None:
            self._process.send_signal(signal.SIGINT)
        try:
            code = self._process.wait(None if kind is None else SECONDS_TO_CLEAR_UP)
        except KeyboardInterrupt:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(SECONDS_TO_CLEAR_UP)
            raise
        if code not in (0, 1):
            self.problem = f"the hunt beside this one ended with {code}: {self.log}"
