"""Model commands on the live network: two nodes learn and publish, the CLI reads, exports and scores."""

import csv
import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from support.channel import register, unique
from support.commands import done, executor, printed, refused
from support.federation import node_of, nodes
from support.player import N_FEATURES, N_MAX, N_NEW, N_SHARE, Player, fitted, played

from learning.actions import predictor
from learning.ensemble import Ensemble
from learning.parameters import Parameters
from protocol.defence import Membership

FEATURES = [f"V{i}" for i in range(N_FEATURES)]


@pytest.fixture(scope="module")
def federation(network: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    version = unique("1")
    register(version)
    first, second = nodes()
    content = {
        "process": unique("model"),
        "nodes": {first.identity: "org1", second.identity: "org2"},
        "image": f"attestree/learner:{version}",
        "iterations": 1,
        "seed": 7,
        "n_new": N_NEW,
        "n_max": N_MAX,
        "n_share": N_SHARE,
        "features": FEATURES,
        "label": "fraud",
        "options": {"threshold": 0.25, "vote_cap": 0.4},
    }
    path = tmp_path_factory.mktemp("federation") / "federation.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def published(federation: Path) -> Player:
    """A process proposed, accepted, started and ended by command, played by two nodes, one of them late."""
    process = done("process", "create", "--spec", str(federation))["process"]
    for organisation in ("org1", "org2"):
        done("process", "accept", process, "--spec", str(federation), organisation=organisation)
    done("process", "start", process)
    first, late = played([Player(member, process) for member in nodes()])
    first.publish()
    ended = done("process", "complete", process)
    assert (ended["status"], ended["published"]) == ("completed", [late.node])
    assert refused("model", "export", process, late.node, "--out", "nowhere") == (13, "MODEL_INCOMPLETE")
    late.publish()
    return first


@pytest.fixture
def place(published: Player) -> tuple[str, str]:
    return published.process, published.node


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows without a label, an id in front, values missing, columns in another order than the process has."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, N_FEATURES))
    path = tmp_path_factory.mktemp("data") / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *reversed(FEATURES)])
        for i, row in enumerate(X):
            cells = ["" if rng.random() < 0.05 else repr(float(value)) for value in row]
            writer.writerow([f"row-{i}", *reversed(cells)])
    return path


def test_list_and_show(place: tuple[str, str], published: Player) -> None:
    listed = done("model", "list", place[0])["models"]
    found = {item["node"]: (item["owner"], item["size"]) for item in listed}
    assert sorted(found.values()) == [("Org1MSP", N_MAX), ("Org2MSP", N_MAX)]
    (own,) = (item for item in listed if item["node"] == place[1])
    shown = done("model", "show", *place, organisation="org2")
    assert shown["digest"] == own["digest"]
    parts = {part["origin"]: part for part in shown["contributions"]}
    assert sum(part["trees"] for part in parts.values()) == len(published.ensemble)
    assert sum(part["vote"] for part in parts.values()) == pytest.approx(1)
    assert {part["organisation"] for part in parts.values()} == {"Org1MSP", "Org2MSP"}
    text = printed("model", "show", *place)
    assert "Contribution by origin" in text.out
    assert shown["digest"] in text.out


def test_export_is_checked_and_scores_as_the_ledger_says(
    place: tuple[str, str], federation: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    made = done("model", "export", *place, "--out", str(out), "--spec", str(federation), organisation="org2")
    assert set(made["files"]) == {"json", "npz", "onnx"}
    record = json.loads((out / "model.json").read_text(encoding="utf-8"))
    assert record["digest"] == made["digest"]
    organisations = {member.identity: f"Org{i}MSP" for i, member in enumerate(nodes(), 1)}
    voting = {"threshold": 0.25, "vote": "mean", "vote_cap": 0.4, "organisations": organisations}
    assert record["voting"] == voting
    assert record["features"] == FEATURES
    again = ("model", "export", *place, "--out", str(out))
    assert refused(*again) == (2, "EXPORT_EXISTS")
    before = (out / "model.onnx").read_bytes()
    done(*again, "--force", "--format", "onnx", "--spec", str(federation))
    assert (out / "model.onnx").read_bytes() == before
    # What is left of the first export is no part of the second.
    assert refused("model", "verify", *place, str(out)) == (14, "MODEL_ALTERED")
    (out / "model.npz").unlink()
    assert done("model", "verify", *place, str(out))["files"] == ["model.json", "model.onnx"]


def test_predict_agrees_with_learning_and_with_onnx(
    place: tuple[str, str], published: Player, federation: Path, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "scores.csv"
    arguments = (*place, str(data), "--spec", str(federation), "--keep", "id", "--out", str(out))
    summary = done("model", "predict", *arguments)
    with out.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [f"row-{i}" for i in range(200)]
    assert summary["rows"] == 200
    assert summary["anomalous"] == sum(row["anomalous"] == "1" for row in rows) > 0
    scores = np.array([float(row["score"]) for row in rows])
    X = np.genfromtxt(data, delimiter=",", skip_header=1)[:, :0:-1].astype(np.float32)
    assert (scores == node_scores(published, X)).all()
    made = done("model", "export", *place, "--out", str(tmp_path), "--spec", str(federation))
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    by_onnx, anomalous = session.run(None, {"features": X})
    assert np.abs(by_onnx - scores).max() < 1e-15
    assert [str(int(value)) for value in anomalous] == [row["anomalous"] for row in rows]
    # The exported file is enough with its digest, and knows its features; else the ledger confirms it.
    digest = f"sha256:{sha256((tmp_path / 'model.json').read_bytes()).hexdigest()}"
    assert digest == made["export_digest"]
    for by in (("--digest", digest), ()):
        exported = (*place, str(data), "--model", str(tmp_path / "model.json"), *by, "--json")
        assert executor("model", "predict", *exported).answer["scores"] == scores.tolist()


def node_scores(player: Player, X: np.ndarray) -> np.ndarray:
    trees = [e for member in nodes() for e in fitted(member.identity) if e.id in player.ensemble]
    members = Membership.of({member.identity: member.organisation for member in nodes()})
    agreed = Parameters(vote_cap=0.4, members=members)
    return predictor(player.node, Ensemble.of(trees), agreed).scores(X)


def test_rows_of_another_schema_are_refused(place: tuple[str, str], data: Path, tmp_path: Path) -> None:
    assert refused("model", "predict", *place, str(data)) == (40, "DATA_SCHEMA")
    other = tmp_path / "other.csv"
    other.write_text("V0,V1\n1,2\n", encoding="utf-8")
    assert refused("model", "predict", *place, str(other), "--label", "fraud") == (40, "DATA_SCHEMA")


@pytest.mark.parametrize("what", ["tree", "threshold", "owner"])
def test_h20_an_altered_export_is_refused_by_the_ledger(
    place: tuple[str, str], data: Path, tmp_path: Path, what: str
) -> None:
    done("model", "export", *place, "--out", str(tmp_path), "--format", "json")
    path = tmp_path / "model.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    if what == "tree":
        tree = record["estimators"][0]
        tree["value"] = [
            1.0 - value if tree["feature"][i] < 0 else value for i, value in enumerate(tree["value"])
        ]
    elif what == "threshold":
        record["voting"]["threshold"] = 0.99
    else:
        record["owner"] = "Org2MSP"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    assert refused("model", "predict", *place, str(data), "--model", str(path)) == (14, "MODEL_ALTERED")


def test_c15_access_is_granted_and_revoked_by_command(place: tuple[str, str], tmp_path: Path) -> None:
    if node_of("org3") is None:
        pytest.skip("the network has no third organisation")
    stranger = {"organisation": "org3"}
    export = ("model", "export", *place, "--out", str(tmp_path))
    assert refused(*export, **stranger) == (12, "ACCESS_GRANT")
    assert not list(tmp_path.iterdir())
    assert refused("model", "grant", *place, "org3", organisation="org2") == (12, "ACCESS_ORGANISATION")
    granted = done("model", "grant", *place, "org3", "--expires", "2099-01-01T00:00:00Z")
    assert granted["organisations"]["Org3MSP"]["expires"].startswith("2099-01-01")
    done(*export, **stranger)
    assert "Org3MSP" in done("model", "access", *place)["organisations"]
    done("model", "revoke", *place, "Org3MSP")
    assert refused("model", "show", *place, **stranger) == (12, "ACCESS_GRANT")
    assert refused("model", "revoke", *place, "org3") == (13, "GRANT_UNKNOWN")
    changes = done("model", "access", *place, "--history")["changes"]
    assert [entry["value"]["change"]["action"] for entry in changes][-3:] == ["revoke", "grant", "publish"]
    assert "revoke Org3MSP" in printed("model", "access", *place, "--history").out


def test_what_is_not_there_is_refused(place: tuple[str, str]) -> None:
    assert refused("model", "show", place[0], "node99")[0] == 13
    assert refused("model", "show", unique("none"), place[1])[0] == 13
    assert done("model", "list", unique("none"))["models"] == []
