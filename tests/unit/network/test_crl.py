"""A revocation list goes to every place that names the organisation: Fabric takes no two versions of one."""

import base64
import io
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "network" / "lib" / "crl.py"


def group(*names: str) -> dict[str, Any]:
    return {"groups": {name: {"values": {"MSP": {"value": {"config": {"name": name}}}}} for name in names}}


@pytest.fixture
def change(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Run the script on a channel of two organisations, of which the first also orders."""
    groups = {"Application": group("Org1MSP", "Org2MSP"), "Orderer": group("Org1MSP")}
    config = {"channel_group": {"groups": groups}}
    block = {"data": {"data": [{"payload": {"data": {"config": config}}}]}}
    (tmp_path / "crl.pem").write_bytes(b"list")

    def run(msp: str) -> dict[str, Any]:
        monkeypatch.setattr(sys, "argv", ["crl.py", "--msp", msp, "--crl", str(tmp_path / "crl.pem")])
        monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(block)))
        runpy.run_path(str(SCRIPT), run_name="__main__")
        found = json.loads(capsys.readouterr().out)["channel_group"]["groups"]
        return {
            f"{kind}/{name}": organisation["values"]["MSP"]["value"]["config"].get("revocation_list")
            for kind in found
            for name, organisation in found[kind]["groups"].items()
        }

    return run


def test_an_organisation_that_also_orders_has_one_list_in_both_places(change: Any) -> None:
    listed = [base64.b64encode(b"list").decode()]
    assert change("Org1MSP") == {
        "Application/Org1MSP": listed, "Application/Org2MSP": None, "Orderer/Org1MSP": listed
    }  # fmt: skip
    assert change("Org2MSP")["Orderer/Org1MSP"] is None


def test_an_organisation_that_is_not_in_the_channel_is_named(change: Any) -> None:
    with pytest.raises(SystemExit, match="Org3MSP is not in the channel"):
        change("Org3MSP")
