"""The learner image: built twice from scratch it is the same image, and it holds nothing but the learner."""

import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import version
from pathlib import Path, PurePosixPath

import pytest
from docker import DockerClient
from support.channel import unique
from support.images import forget, pack
from support.network import ROOT

from executor.engine import engine
from executor.image.build import LABEL, Built, build

SOURCES = ("protocol", "learning", "learner-image", "requirements")
PROGRAM = "/opt/venv/bin/python"
ENTRY = [PROGRAM, "-I", "-B", "-m", "learner"]
# What the learner's locked requirements install, and ours.
PACKAGES = {
    "_cffi_backend", "cffi", "cloudpickle", "cryptography", "joblib", "learner", "learning", "narwhals",
    "numpy", "protocol", "pycparser", "scipy", "sklearn", "threadpoolctl",
}  # fmt: skip


@pytest.fixture(scope="module")
def client() -> Iterator[DockerClient]:
    with closing(engine()) as made:
        yield made


@pytest.fixture(scope="module")
def name(client: DockerClient) -> Iterator[str]:
    made = unique("learner")
    yield made
    forget(client, made)


@pytest.fixture(scope="module")
def built(client: DockerClient, name: str) -> Built:
    """The image that the other tests run too: built by the first who asks, today or in an earlier run."""
    return build(client, lambda _: None, tag=f"{name}:first")


@pytest.fixture(scope="module")
def files(
    client: DockerClient, built: Built, tmp_path_factory: pytest.TempPathFactory
) -> list[tarfile.TarInfo]:
    path = tmp_path_factory.mktemp("image") / "files.tar"
    container = client.containers.create(str(built.image_id))
    try:
        with path.open("wb") as stream:
            stream.writelines(container.export())
    finally:
        container.remove()
    with tarfile.open(path) as archive:
        return archive.getmembers()


def test_two_builds_of_the_same_sources_are_one_image(
    client: DockerClient, name: str, built: Built, tmp_path: Path
) -> None:
    """The second time from a copy of the tree with other times and modes, and without a cache."""
    for part in SOURCES:
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    for path in tmp_path.rglob("*"):
        os.utime(path, (981173106, 981173106))
        path.chmod(0o700)
    said: list[str] = []
    again = build(client, said.append, tag=f"{name}:second", force=True, root=tmp_path)
    assert again.built
    assert any("Step 1/" in line for line in said)
    assert again.source == built.source
    assert again.image_id == built.image_id


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


def test_a_build_leaves_no_image_but_its_own(client: DockerClient, built: Built) -> None:
    left = client.images.list(filters={"dangling": True, "label": "attestree.stage"})
    assert left == []


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
    at = PurePosixPath("opt/venv/lib/python3.11/site-packages")
    found = {PurePosixPath(entry.name).relative_to(at).parts[0] for entry in files if _below(entry, at)}
    packages = {part.partition(".")[0] for part in found if not part.endswith((".dist-info", ".libs"))}
    assert packages - {"__pycache__"} == PACKAGES


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


def _below(entry: tarfile.TarInfo, folder: PurePosixPath) -> bool:
    return folder in PurePosixPath(entry.name).parents
