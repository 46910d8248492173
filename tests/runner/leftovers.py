"""What killed runs left: processes, containers, networks, volumes, images and folders of test networks.

A test network is one called as this run's, or so with a hyphen and more. Nothing of another name is touched.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from .surroundings import MARK, PORTS, PROJECT, ROOT

SECONDS = 120
ROUNDS = 20
"""How often what comes back, as a container by its restart policy, is removed again, half a second apart."""
LABELS = ("attestree.network", "attestree.test")
"""What a network's parts carry, and what containers of tests outside of any network carry."""
ENGINES = Path("/run")
"""Where each engine of scripts/engine has a folder, PROJECT-engine-VERSION."""
KINDS = (
    ("container", ("ps", "--all"), ("rm", "--force", "--volumes")),
    ("network", ("network", "ls"), ("network", "rm")),
    ("volume", ("volume", "ls"), ("volume", "rm", "--force")),
)


def is_ours(name: str) -> bool:
    """Whether a network of this name is this run's, or was made by one of its tests."""
    return name == PROJECT or name.startswith(f"{PROJECT}-")


def remove(environment: Mapping[str, str]) -> list[str]:
    """Remove everything that earlier runs left, and return what it was, in words."""
    found = [f"process {pid} ({name})" for pid, name in end_processes(PROJECT)]
    if engine_answers(environment):
        found += _remove_from_engine(environment)
    found += _stop_second_engines(environment)
    for path in sorted((ROOT / "network" / "state").glob(f"{PROJECT}*")):
        if not is_ours(path.name.removesuffix(".lock")):
            continue
        if path.suffix == ".lock":
            path.unlink(missing_ok=True)
        else:
            found.append(f"folder {path.relative_to(ROOT)}")
            shutil.rmtree(path)
    return found


def engine_answers(environment: Mapping[str, str]) -> bool:
    """Whether there is an engine to ask."""
    return _docker(environment, "version").returncode == 0


def _stop_second_engines(environment: Mapping[str, str]) -> list[str]:
    """Stop the engines that tests started beside the first, but not the one that the run itself is on."""
    found, used = [], environment.get("DOCKER_HOST", "")
    for path in sorted(ENGINES.glob(f"{PROJECT}*-engine-*")):
        project, _, version = path.name.rpartition("-engine-")
        if is_ours(project) and f"{path}/" not in used:
            asked = {**environment, "ATTESTREE_PROJECT": project}
            if _run(asked, "scripts/engine", version, "stop", "--purge").returncode == 0:
                found.append(f"engine {version} of {project}")
    return found


def _remove_from_engine(environment: Mapping[str, str]) -> list[str]:
    found = []
    for kind, listing, removal in KINDS:
        removed: dict[str, None] = {}
        for turn in range(ROUNDS):
            ours = _ours(environment, kind, listing)
            if not ours:
                break
            time.sleep(0.5 if turn else 0)
            _docker(environment, *removal, *ours)
            removed |= dict.fromkeys(ours)
        found += [f"{kind} {one}" for one in removed]
    listed = _docker(environment, "image", "ls", "--format", "{{.Repository}}:{{.Tag}}").stdout
    registry = re.compile(rf"(127\.0\.0\.1|localhost):{PORTS}005/.*")
    tags = [tag for tag in listed.splitlines() if registry.fullmatch(tag) and "<none>" not in tag]
    if tags:
        _docker(environment, "rmi", *tags)
        found += [f"image {tag}" for tag in tags]
    return found


def _ours(environment: Mapping[str, str], kind: str, listing: Sequence[str]) -> list[str]:
    """Return what there is of this kind that belongs to a test network or was made by a test."""
    identifier = "Name" if kind == "volume" else "ID"
    found = []
    for label in LABELS:
        template = f'{{{{.{identifier}}}}} {{{{.Label "{label}"}}}}'
        lines = _docker(environment, *listing, "--filter", f"label={label}", "--format", template).stdout
        for name, _, owner in (line.partition(" ") for line in lines.splitlines()):
            if is_ours(owner) or (kind == "container" and _mounts_ours(environment, name)):
                found.append(name)
    return found


def _mounts_ours(environment: Mapping[str, str], container: str) -> bool:
    """Whether a container has something of a run's temporary folder, as the sandboxes of tests have."""
    template = "{{range .Mounts}}{{println .Source}}{{end}}"
    sources = _docker(environment, "inspect", "--format", template, container).stdout.split("\n")
    return any(source.startswith(f"{tempfile.gettempdir()}/{PROJECT}.") for source in sources)


def _docker(environment: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return _run(environment, "docker", *arguments)


def _run(environment: Mapping[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))


def end_processes(mark: str) -> list[tuple[int, str]]:
    """Kill the processes of a run that has ended, by the mark they inherited; return their ids and names."""
    found = _processes(mark)
    for pid, _ in found:
        _kill(pid)
    end = time.monotonic() + 10
    while _processes(mark) and time.monotonic() < end:
        time.sleep(0.1)
    return found


def _processes(mark: str) -> list[tuple[int, str]]:
    variable, ours = f"{MARK}={mark}".encode(), _ancestors()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) not in ours:
            try:
                variables = (entry / "environ").read_bytes().split(b"\0")
                name = (entry / "comm").read_text().strip()
            except OSError:
                continue
            # The engine, whoever started it, serves others too.
            if variable in variables and not name.startswith(
                ("dockerd", "docker-proxy", "containerd", "runc")
            ):
                found.append((int(entry.name), name))
    return found


def _ancestors() -> set[int]:
    """This process and those that started it."""
    found, pid = set(), os.getpid()
    while pid > 1:
        found.add(pid)
        stat = Path(f"/proc/{pid}/stat").read_text()
        pid = int(stat.rpartition(")")[2].split()[1])
    return found


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
