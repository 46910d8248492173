"""The three wheels, each alone in an environment, and their READMEs' examples on the live network."""

import json
import os
import secrets
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.network import PROJECT, ROOT, done, free_ports, run
from support.notes import deploy, host_address, make_certificates, package
from support.wheels import BARE, example, install, play, serving

from executor.network import CHANNEL, Network

PROJECTS = {"fabric-gateway": "fabric_gateway", "fabric-shim": "fabric_shim"}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("wheels")
    done("scripts/package", str(folder))
    return {path.name.partition("-")[0].replace("_", "-"): path for path in folder.glob("*.whl")}


@pytest.fixture(scope="module")
def pythons(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The Python of each wheel that stands alone."""
    folder = tmp_path_factory.mktemp("environments")
    return {name: install(folder / name, f"{name}.txt", wheels[f"attestree-{name}"]) for name in PROJECTS}


@dataclass(frozen=True)
class Notes:
    """The shim's example on the channel, and the process that serves it."""

    chaincode: str
    process: subprocess.Popen[str]


@pytest.fixture(scope="module")
def port() -> Iterator[str]:
    """A port that nobody else takes before the example listens, not even for an outgoing connection."""
    with free_ports() as prefix:
        yield f"{prefix}999"


@pytest.fixture(scope="module")
def notes(pythons: dict[str, Path], tmp_path_factory: pytest.TempPathFactory, port: str) -> Iterator[Notes]:
    network, folder = Network.load(), tmp_path_factory.mktemp("notes")
    name, address = f"notes-{secrets.token_hex(4)}", f"{host_address(network)}:{port}"
    make_certificates(folder, address)
    # Label and version name the network's own image, or `executor doctor` would find fault with the channel.
    image = done("docker", "image", "inspect", "-f", "{{.Id}}", network.chaincode_image).strip()
    image_id = image.removeprefix("sha256:")
    path, package_id = package(folder, name, image_id, address)
    environment = {"TLS_FOLDER": str(folder), "CHAINCODE_ID": package_id, "LISTEN": address}
    script = example("fabric-shim", folder)
    with serving(pythons["fabric-shim"], script, folder / "log", **environment) as process:
        deploy(network, name, f"1-{image_id}", path, package_id)
        yield Notes(name, process)


def test_there_are_three_and_a_second_build_gives_the_same_bytes(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    assert set(wheels) == {"attestree", "attestree-fabric-gateway", "attestree-fabric-shim"}
    done("scripts/package", str(tmp_path))
    again = {path.name: path.read_bytes() for path in tmp_path.glob("*.whl")}
    assert again == {path.name: path.read_bytes() for path in wheels.values()}


def test_each_has_licence_readme_and_types(wheels: dict[str, Path]) -> None:
    for name, path in wheels.items():
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            (metadata,) = [entry for entry in names if entry.endswith(".dist-info/METADATA")]
            text = archive.read(metadata).decode()
        assert "License-Expression: Apache-2.0" in text
        assert any(entry.endswith(".dist-info/licenses/LICENSE") for entry in names)
        assert any(entry.endswith("/py.typed") for entry in names)
        assert not [entry for entry in names if "__pycache__" in entry or entry.startswith("tests")]
        title = "Attestree" if name == "attestree" else name
        assert f"\n# {title}\n" in text


@pytest.mark.parametrize("name", PROJECTS)
def test_a_wheel_that_stands_alone_is_typed_and_brings_nothing_of_the_rest(
    pythons: dict[str, Path], tmp_path: Path, name: str
) -> None:
    script = tmp_path / "found.py"
    script.write_text(
        "from importlib.util import find_spec\n"
        "print([name for name in ('protocol', 'executor', 'chaincode', 'numpy', 'click') if find_spec(name)])"
    )
    assert play(pythons[name], script) == "[]\n"
    checked = run(
        ".venv/bin/mypy", "--strict", "--config-file", os.devnull, "--cache-dir", str(tmp_path / "cache"),
        "--python-executable", str(pythons[name]), str(example(name, tmp_path)),
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout


def test_the_examples_of_gateway_and_shim_work_together(
    pythons: dict[str, Path], notes: Notes, tmp_path: Path
) -> None:
    """The client writes, reads, is refused and hears the event; the contract serves every peer."""
    network = Network.load()
    environment = {
        "MSP": network.msp_id("org1"),
        "MSP_FOLDER": str(network.msp_folder("org1", "data-scientist")),
        "PEER": network.peer_address("org1"),
        "TLS_ROOT": str(network.folder("org1") / "tlsca.pem"),
        "AUTHORITIES": os.pathsep.join(
            f"{network.msp_id(name)}={network.folder(name) / 'ca.pem'}" for name in network.organisations
        ),
        "CHANNEL": CHANNEL,
        "CHAINCODE": notes.chaincode,
    }
    printed = play(pythons["fabric-gateway"], example("fabric-gateway", tmp_path), **environment)
    submitted, greeting, refused, event = printed.splitlines()
    tx_id = submitted.split()[1]
    assert len(tx_id) == 64
    assert greeting == "hello"
    assert refused == "refused: NOT_FOUND"
    assert event == f"event written of transaction {tx_id}"
    assert notes.process.poll() is None
    for organisation in network.organisations[1:]:
        call = json.dumps({"Args": ["read", "greeting"]})
        query = ("chaincode", "query", "-C", CHANNEL, "-n", notes.chaincode, "-c", call)
        assert network.peer(organisation, *query).strip() == "hello"


def test_the_command_of_the_whole_wheel_finds_the_network(wheels: dict[str, Path], tmp_path: Path) -> None:
    """Outside the repository, told where the network's state is, it reads the ledger."""
    python = install(tmp_path / "environment", "dev.txt", wheels["attestree"])
    state = os.environ.get("ATTESTREE_STATE", str(ROOT / "network/state" / PROJECT))
    ran = subprocess.run(
        [python.with_name("executor"), "process", "list", "--json"],
        env={**BARE, "ATTESTREE_PROJECT": PROJECT, "ATTESTREE_STATE": state},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert isinstance(json.loads(ran.stdout)["processes"], list)
