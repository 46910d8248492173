"""Images that organisations rebuild from source, on live peers, and a process that asks for it."""

import os
import shutil
from pathlib import Path

import pytest
from docker import DockerClient
from support.channel import DIGESTS, IMAGE, Member, admin1, register, scientist1, specification, unique
from support.commands import done, here
from support.federation import nodes
from support.images import forget, pack
from support.network import ROOT
from support.network import done as script

from executor.image import build
from executor.image.context import CHAINCODE
from executor.image.local import LocalImages
from executor.network import Network

pytestmark = pytest.mark.usefixtures("network")


def test_an_organisation_gets_the_registered_image_from_these_sources(learner: str) -> None:
    """The second organisation builds nothing: the image of these sources is there."""
    for organisation in ("org1", "org2"):
        # A machine may have newer packages of Debian than are locked.
        said = done("image", "attest", learner, "--any-base", organisation=organisation)
        assert said["same"] is True
    shown = done("image", "show", learner)
    assert {"Org1MSP", "Org2MSP"} <= {found["organisation"] for found in shown["rebuilds"]}


@pytest.mark.timeout(900)
def test_a_base_with_an_altered_package_is_refused_where_builds_are_compared(
    docker_client: DockerClient, learner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, name = script("network/images.sh", "python-base").strip(), unique("base")
    container = docker_client.containers.create(base, ["true"], network_mode="none")
    try:
        container.put_archive("/", pack(**{"usr/bin/python3.11": b"another interpreter"}))
        container.commit(name, "altered")
    finally:
        container.remove()
    try:
        assert script("network/images.sh", "base-lock", f"{name}:altered") == ""
        refused = here("image", "build", "--locked-base", "--base", f"{name}:altered")
        assert (refused.code, refused.answer["error"]["code"]) == (2, "IMAGE_BASE")
        with monkeypatch.context() as patched:
            answers = {"python-base": f"{name}:altered", "base-lock": ""}
            patched.setattr(build, "_ask_network", lambda *asked: answers[asked[0]])
            refused = here("image", "attest", learner)
        assert (refused.code, refused.answer["error"]["code"]) == (2, "IMAGE_BASE")
    finally:
        docker_client.images.remove(f"{name}:altered")


@pytest.mark.timeout(900)
def test_another_clone_gives_the_networks_chaincode_image(
    docker_client: DockerClient, tmp_path: Path
) -> None:
    """Another byte is another key of the sources, which the image is labelled with: see the unit tests."""
    for part in ("protocol", "chaincode", "learner-image", "requirements"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    for path in tmp_path.rglob("*"):
        os.utime(path, (981173106, 981173106))
        path.chmod(0o700)
    name = unique("chaincode")
    known = LocalImages(docker_client).find(Network.load().chaincode_image)
    assert known is not None
    try:
        options = {"tag": f"{name}:again", "root": tmp_path, "recipe": CHAINCODE}
        again = build.build(docker_client, lambda _: None, force=True, **options)
        assert (again.built, again.image_id) == (True, known.image_id)
    finally:
        forget(docker_client, name)


def test_a_process_starts_when_as_many_got_the_same_image_as_it_asks_for() -> None:
    process, version = unique("rebuilt"), unique("1")
    register(version)
    owners = {member.identity: Network.load().msp_id(member.organisation) for member in nodes()}
    made = specification(process, version, owners) | {"image_attestations": 2}
    scientist1.propose(made)
    for organisation in ("org1", "org2"):
        Member(organisation, "admin").submit("orchestration", "Accept", process)
    image_id = made["steps"][0]["image"]["image_id"]
    Member("org3", "auditor").submit("image", "Attest", IMAGE, version, image_id)
    Member("org1", "auditor").submit("image", "Attest", IMAGE, version, image_id)
    Member("org2", "auditor").submit("image", "Attest", IMAGE, version, DIGESTS[14])
    assert admin1.code("orchestration", "Start", process) == "IMAGE_UNATTESTED"
    Member("org2", "auditor").submit("image", "Attest", IMAGE, version, image_id)
    admin1.submit("orchestration", "Start", process)
