"""A Docker engine of files, for what scripts do while the real one is in the middle of something."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOREIGN = ("ATTESTREE_LOCKED", "DOCKER_HOST", "DOCKER_CONTEXT")
"""What would lead a command to another engine, or past its lock."""
DOCKER = """#!/bin/bash
cd "$ENGINE"
echo "$*" >>calls
case "$1 $2" in
  "ps --all") cat containers ;;
  "rm --force")
    # The first removal meets a container that is just coming back.
    if [ -e restarting ]; then rm restarting; else : >containers; fi ;;
  "network ls") cat networks ;;
  "network rm")
    if [ -s containers ] || [ -s endpoints ]; then echo "network has active endpoints" >&2; exit 1; fi
    : >networks ;;
  "network inspect") cat endpoints ;;
  "network disconnect") : >endpoints ;;
  "container inspect") grep -qx "$3" containers ;;
  "volume ls") cat volumes ;;
  "volume rm") : >volumes ;;
  "image inspect")
    touch "asked-$CALLER"
    [ -s imported ] ;;
  "import "*)
    for _ in {1..300}; do [ -e asked-first ] && [ -e asked-second ] && break; sleep 0.1; done
    echo "$CALLER" >>imported ;;
esac
"""


@dataclass(frozen=True)
class Engine:
    """What the engine has, a line each, and what it was told to do."""

    folder: Path

    def put(self, **lines: str) -> None:
        for name, text in lines.items():
            (self.folder / name).write_text(text)

    def get(self, name: str) -> str:
        return (self.folder / name).read_text()

    def environment(self, caller: str = "first") -> dict[str, str]:
        """Variables with which a command finds this engine and no other."""
        others = {name: value for name, value in os.environ.items() if name not in FOREIGN}
        return {
            **others,
            "PATH": f"{self.folder}:{os.environ['PATH']}",
            "ENGINE": str(self.folder),
            "CALLER": caller,
            "ATTESTREE_PROJECT": "attestree-unit",
            "ATTESTREE_STATE": str(self.folder / "state" / "attestree-unit"),
            "ATTESTREE_CACHE": str(self.folder / "cache"),
        }

    def start(self, *command: str, caller: str = "first") -> "subprocess.Popen[str]":
        """Start a command of the repository on it."""
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env=self.environment(caller),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        with self.start(*command) as started:
            out, err = started.communicate(timeout=150)
        return subprocess.CompletedProcess(command, started.returncode, out, err)

    @classmethod
    def make(cls, folder: Path) -> "Engine":
        """An engine without anything."""
        made = cls(folder)
        program = folder / "docker"
        program.write_text(DOCKER)
        program.chmod(0o755)
        made.put(calls="", containers="", networks="", endpoints="", volumes="", imported="")
        return made
