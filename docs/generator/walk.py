"""Which of our files a command passes: `python -m docs.generator.walk executor launch --process P ...`.

Runs the command in this process and lists, on standard error, every file of ours of which a function ran, in
the order in which they were first called. Loading a module does not count. What runs in containers, the
learner and the chaincodes, is not seen from here.
"""

import runpy
import shutil
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from .repository import ROOT

SHADED = (".venv", "docs")
"""Folders below the root whose files are not meant."""


class Walk:
    """Notes the files of ours that functions are called in."""

    def __init__(self) -> None:
        self.files: dict[Path, str] = {}
        self._known: dict[str, Path | None] = {}

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        """Take note of a call; this is what sys.setprofile calls."""
        if event != "call":
            return
        code = frame.f_code
        if code.co_filename not in self._known:
            self._known[code.co_filename] = _ours(code.co_filename)
        path = self._known[code.co_filename]
        if path is not None and path not in self.files and not _is_loading(frame):
            self.files[path] = code.co_qualname

    def __enter__(self) -> "Walk":
        threading.setprofile(self.note)
        sys.setprofile(self.note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)


def _is_loading(frame: FrameType | None) -> bool:
    """Whether a module is being loaded: its own text, its classes, and what these call."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _ours(name: str) -> Path | None:
    try:
        path = Path(name).relative_to(ROOT)
    except ValueError:
        return None
    return None if path.parts[0] in SHADED else path


def main(command: list[str]) -> int:
    """Run a Python program as if it had been called, and list what it passed through."""
    program = shutil.which(command[0]) or command[0]
    sys.argv = [program, *command[1:]]
    walk = Walk()
    try:
        with walk:
            runpy.run_path(program, run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    for number, (path, function) in enumerate(walk.files.items(), 1):
        print(f"{number:3} {path}  {function}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
