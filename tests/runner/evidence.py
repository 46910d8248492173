"""What a failed run leaves to look at: a folder with logs, results and versions, and without secrets."""

import datetime
import os
import platform
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from .leftovers import LABELS, is_ours
from .surroundings import ROOT

KEPT = 5
SECONDS = 120
BYTES = 4_000_000
"""Of each log the end is kept, of this size."""
ENGINE_LOG = Path("/var/log/dockerd.log")
ENGINE_JOURNAL = ("journalctl", "--unit", "docker", "--lines", "2000", "--no-pager")
VERSIONS = (
    ("git", "rev-parse", "HEAD"),
    ("git", "status", "--short"),
    ("free", "-m"),
    ("df", "-Pm", ".", "/tmp", "/var/lib"),
    ("docker", "version"),
    ("docker", "compose", "version"),
    ("docker", "info"),
    (".venv/bin/python", "-m", "pip", "--disable-pip-version-check", "freeze", "--exclude-editable"),
)
TOLD = re.compile(
    r"ATTESTREE_|PYTHONHASHSEED$|LANG$|LC_|PATH$|HOME$|TERM$|CI$|DOCKER_HOST$|XDG_CACHE_HOME$|TMPDIR$"
)
"""The variables that are written down; others are the user's own business."""
SECRETS = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    re.compile(r"(?<=://)[^\s/@:]+:[^\s/@]+(?=@)"),
    re.compile(r"(?<=pass: )\S+"),
)


class Evidence:
    """The folder of one run, made when there is something to put into it."""

    def __init__(self, environment: Mapping[str, str], folder: Path | None = None) -> None:
        now = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
        self.folder = folder or ROOT / "build" / f"test-failure-{now}-{os.getpid()}"
        self._environment = environment

    @property
    def exists(self) -> bool:
        """Whether anything was collected."""
        return self.folder.is_dir()

    def add(self, name: str, text: str) -> None:
        """Keep a text, without the secrets that may be in it."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(redacted(text[-BYTES:]), errors="replace")

    def collect_files(self, folder: Path, name: str) -> None:
        """Keep the logs and results that jobs wrote."""
        for file in sorted(folder.iterdir()):
            if file.is_file():
                self.add(f"{name}/{file.name}", _end_of(file))

    def collect_containers(self, name: str) -> None:
        """Keep the logs of every container of the test networks, as they are now."""
        for label in LABELS:
            template = f'{{{{.ID}}}} {{{{.Names}}}} {{{{.Label "{label}"}}}}'
            listed = self._output("docker", "ps", "--all", "--filter", f"label={label}", "--format", template)
            for line in listed.splitlines():
                identifier, _, rest = line.partition(" ")
                container, _, owner = rest.partition(" ")
                if is_ours(owner):
                    logs = self._output("docker", "logs", "--timestamps", "--tail", "20000", identifier)
                    self.add(f"{name}/{container}.log", logs)
        self.add(f"{name}/docker-ps.txt", self._output("docker", "ps", "--all", "--no-trunc"))

    def collect_machine(self, arguments: Sequence[str]) -> None:
        """Keep what the run ran with and on: commit, versions, variables, and the engine's log."""
        lines = [
            f"scripts/test {shlex.join(arguments)}",
            f"{platform.platform()}; {_os_release()}; user {os.geteuid()}; umask {_umask():04o}",
            f"{os.cpu_count()} processors; load {os.getloadavg()}; python {platform.python_version()}",
            *(f"{name}={value}" for name, value in sorted(self._environment.items()) if TOLD.match(name)),
        ]
        for command in VERSIONS:
            lines += [f"$ {shlex.join(command)}", self._output(*command)]
        self.add("versions.txt", "\n".join(lines))
        if os.access(ENGINE_LOG, os.R_OK):
            self.add("dockerd.log", _end_of(ENGINE_LOG, 500_000))
        else:
            self.add("dockerd.log", self._output(*ENGINE_JOURNAL))

    def collect_doctor(self) -> None:
        """Keep what the doctor says of the test network, while it is there."""
        self.add("doctor.json", self._output(".venv/bin/executor", "doctor", "--json"))

    def remove_old(self) -> None:
        """Keep the newest of these folders alone."""
        folders = sorted((ROOT / "build").glob("test-failure-*"), key=lambda path: path.stat().st_mtime)
        for folder in folders[:-KEPT]:
            shutil.rmtree(folder, ignore_errors=True)

    def _output(self, *command: str) -> str:
        try:
            ran = subprocess.run(
                command, cwd=ROOT, env=self._environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, errors="replace", timeout=SECONDS, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{' '.join(command)}: {error}\n"
        return ran.stdout


def redacted(text: str) -> str:
    """Return a text without private keys and passwords."""
    for secret in SECRETS:
        text = secret.sub("[removed]", text)
    return text


def _end_of(file: Path, size: int = BYTES) -> str:
    with file.open("rb") as opened:
        opened.seek(max(0, file.stat().st_size - size))
        return opened.read().decode(errors="replace")


def _os_release() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown system")
    except OSError:
        return "unknown system"


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
