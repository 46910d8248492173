"""The learner image: built twice from scratch it is the same image, and it holds nothing but the learner."""

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import PurePosixPath
from typing import Any

import pytest
from docker import DockerClient
from support.channel import unique
from support.images import forget, has, pack
from support.network import ROOT

from executor.image.build import LABEL, Built, build
from protocol.digest import Digest

SOURCES = ("protocol", "learning", "learner-image", "requirements")
PROGRAM = "/opt/venv/bin/python"
ENTRY = [PROGRAM, "-I", "-B", "-m", "learner"]
OURS = {"learner", "learning", "protocol"}
# What the learner's locked requirements install.
THEIRS = {
    "_cffi_backend", "cffi", "cloudpickle", "cryptography", "joblib", "narwhals", "numpy", "pycparser",
    "scipy", "sklearn", "threadpoolctl",
}  # fmt: skip
PACKAGES = PurePosixPath("opt/venv/lib/python3.11/site-packages")


@pytest.fixture(scope="module")
def client(docker_client: DockerClient) -> DockerClient:
    return docker_client


@pytest.fixture(scope="module")
def name(client: DockerClient) -> Iterator[str]:
    made = unique("learner")
    yield made
    forget(client, made)


@pytest.fixture(scope="module")
def built(client: DockerClient, name: str, learner_id: Digest) -> Built:
    """The image that the other tests run too: built by the first who asks, today or in an earlier run."""
    made = build(client, lambda _: None, tag=f"{name}:first")
    assert (made.built, made.image_id) == (False, learner_id)
    return made


@dataclass(frozen=True)
class Again:
    """A second build of the same sources: what it made and said, and what the engine called its parts."""

    made: Built
    said: list[str]
    stage: str
    as_built: Digest


@pytest.fixture(scope="module")
def again(client: DockerClient, name: str, built: Built, tmp_path_factory: pytest.TempPathFactory) -> Again:
    """Built after the first, from a copy of the tree with other times and modes, and without a cache."""
    root = tmp_path_factory.mktemp("sources")
    for part in SOURCES:
        shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
    for path in root.rglob("*"):
        os.utime(path, (981173106, 981173106))
        path.chmod(0o700)
    said: list[str] = []
    stages: list[str] = []
    ids: list[str] = []
    engine_builds = client.api.build

    def noting(**options: Any) -> Iterator[dict[str, Any]]:
        stages.append(options["buildargs"]["STAGE"])
        for event in engine_builds(**options):
            ids.extend(filter(None, [event.get("aux", {}).get("ID")]))
            yield event

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(client.api, "build", noting)
        made = build(client, said.append, tag=f"{name}:second", force=True, root=root)
    return Again(made, said, stages[0], Digest.parse(ids[-1]))


@pytest.fixture(scope="module")
def files(client: DockerClient, built: Built) -> list[tarfile.TarInfo]:
    container = client.containers.create(str(built.image_id))
    try:
        with (
            subprocess.Popen(["docker", "export", str(container.id)], stdout=subprocess.PIPE) as export,
            tarfile.open(fileobj=export.stdout, mode="r|") as archive,
        ):
            return archive.getmembers()
    finally:
        container.remove()


@pytest.mark.timeout(900)
def test_two_builds_of_the_same_sources_are_one_image(built: Built, again: Again) -> None:
    assert again.made.built
    assert any("Step 1/" in line for line in again.said)
    assert again.made.source == built.source
    assert again.made.image_id == built.image_id


def test_an_image_of_the_same_sources_is_not_built_again(
    client: DockerClient, name: str, built: Built
) -> None:
    said: list[str] = []
    again = build(client, said.append, tag=f"{name}:third")
    assert (again.built, again.image_id) == (False, built.image_id)
    assert not any("Step" in line for line in said)
    assert client.images.get(f"{name}:third").labels[LABEL] == built.source


def test_an_altered_image_is_not_taken_for_the_built_one_by_the_label_it_inherits(
    client: DockerClient, name: str, built: Built
) -> None:
    container = client.containers.create(str(built.image_id))
    try:
        container.put_archive("/", pack(extra=b"altered"))
        altered = container.commit(name, "altered")
    finally:
        container.remove()
    assert altered.labels[LABEL] == built.source
    assert altered.id != str(built.image_id)
    assert build(client, lambda _: None, tag=f"{name}:fourth").image_id == built.image_id


@pytest.mark.timeout(900)
def test_a_build_leaves_no_image_but_its_own(client: DockerClient, again: Again) -> None:
    assert client.images.list(all=True, filters={"label": f"attestree.stage={again.stage}"}) == []
    assert not has(client, again.as_built)
    assert has(client, again.made.image_id)


def test_the_image_has_no_programs_but_the_interpreter(files: list[tarfile.TarInfo]) -> None:
    names = {f"/{entry.name}" for entry in files}
    assert not names & {
        "/bin/sh",
        "/usr/bin/sh",
        "/bin/bash",
        "/usr/bin/env",
        "/usr/bin/dpkg",
        "/bin/busybox",
    }
    programs = [
        entry.name
        for entry in files
        if entry.isreg() and entry.mode & 0o111 and PurePosixPath(entry.name).parent.name in {"bin", "sbin"}
    ]
    assert len(programs) == 1
    assert PurePosixPath(programs[0]).name.startswith("python3")
    assert not [entry.name for entry in files if entry.mode & 0o6000], "set-user-id files"


def test_the_image_has_the_locked_packages_and_ours_alone(files: list[tarfile.TarInfo]) -> None:
    paths = [PurePosixPath(entry.name) for entry in files]
    parts = [path.relative_to(PACKAGES).parts for path in paths if PACKAGES in path.parents]
    top = {first for first, *_ in parts if not first.endswith((".dist-info", ".libs"))}
    assert {name.partition(".")[0] for name in top} - {"__pycache__"} == OURS | THEIRS
    assert not [path for path in parts if path[0] in OURS and path[-1].endswith((".so", ".c"))]


def test_every_module_is_compiled_for_good(files: list[tarfile.TarInfo]) -> None:
    """A container cannot write byte code: what is not compiled now is compiled at every start."""
    names = {entry.name for entry in files}
    for entry in files:
        path = PurePosixPath(entry.name)
        if path.suffix == ".py" and "site-packages" in path.parts:
            assert str(path.parent / "__pycache__" / f"{path.stem}.cpython-311.pyc") in names


def test_no_time_of_the_build_is_left_in_the_image(client: DockerClient, built: Built) -> None:
    attributes = client.images.get(str(built.image_id)).attrs
    assert attributes["Created"] == "1970-01-01T00:00:00Z"
    assert all(step["Created"] == 0 for step in client.images.get(str(built.image_id)).history())


def test_the_image_runs_as_the_contract_says(client: DockerClient, built: Built) -> None:
    configuration = client.images.get(str(built.image_id)).attrs["Config"]
    assert configuration["Entrypoint"] == ENTRY
    assert configuration["User"] == "10001:10001"
    assert not configuration.get("Volumes")


def test_packages_load_offline_read_only_and_as_nobody(client: DockerClient, built: Built) -> None:
    code = "import os, sklearn, learner, learning.fit, protocol; print(os.getuid(), sklearn.__version__)"
    said = client.containers.run(
        str(built.image_id),
        ["-I", "-B", "-c", code],
        entrypoint=PROGRAM,
        network_mode="none",
        read_only=True,
        cap_drop=["ALL"],
        remove=True,
    )
    assert said.decode().split() == ["10001", version("scikit-learn")]
