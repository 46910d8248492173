"""The compose file: every service of the largest network, none with more rights than it needs."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from executor.network import Network

ROOT = Path(__file__).resolve().parents[3]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]


def test_every_service_of_the_largest_network_is_there() -> None:
    largest = Network("attestree", ROOT, 8, 7, 99, "image")
    assert set(SERVICES) == set(largest.services)


@pytest.mark.parametrize("name", SERVICES)
def test_service_is_confined(name: str) -> None:
    service = SERVICES[name]
    assert service["user"] == "${SERVICE_UID}:${SERVICE_GID}"
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["restart"] == "unless-stopped"
    assert "mem_limit" in service
    assert "healthcheck" in service
    assert not {"privileged", "network_mode", "pid", "ipc", "devices", "cap_add"} & set(service)


@pytest.mark.parametrize("name", [name for name in SERVICES if not name.startswith("chaincode")])
def test_go_program_keeps_to_four_fifths_of_its_memory(name: str) -> None:
    """Then its collector works before the kernel kills."""
    service = SERVICES[name]
    limit = int(service["mem_limit"].removesuffix("m"))
    assert service["environment"]["GOMEMLIMIT"] == f"{limit * 4 // 5}MiB"


@pytest.mark.parametrize("name", SERVICES)
def test_service_publishes_on_loopback_alone(name: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name].get("ports", []))


def test_no_port_is_published_twice() -> None:
    ports = [port.split(":")[1] for service in SERVICES.values() for port in service.get("ports", [])]
    assert len(ports) == len(set(ports))


@pytest.mark.parametrize("name", SERVICES)
def test_organisation_sees_its_own_material_alone(name: str) -> None:
    owner = {"registry": "org1"}.get(name) or name.partition(".")[2] or f"${{{name.upper()}_OWNER}}"
    for volume in SERVICES[name]["volumes"]:
        source = volume.partition(":/")[0]
        if "/organisations/" in source:
            assert f"/organisations/{owner}/" in f"{source}/"
        assert "docker.sock" not in volume


def test_every_volume_carries_the_network_s_labels() -> None:
    labels = {"attestree.network", "attestree.id", "attestree.fabric"}
    assert all(set(volume["labels"]) == labels for volume in COMPOSE["volumes"].values())


def test_orderers_are_dealt_out_to_the_organisations() -> None:
    small = Network("attestree", ROOT, 2, 4, 3, "image")
    assert list(small.orderers.items()) == [
        ("orderer1", "org1"), ("orderer2", "org2"), ("orderer3", "org1"), ("orderer4", "org2")
    ]  # fmt: skip
    assert small.orderer_folder("orderer3") == ROOT / "organisations" / "org1" / "orderer3"
