"""Odd private data through `executor launch`: learned from, or refused before a task is opened."""

from pathlib import Path

import pytest
from docker import DockerClient
from support.launching import launch, launched, ledger, nothing_is_left, reached, running

HEADER = "x0,x1,x2,x3,x4,Class"


def test_g1_g2_g3_g6_g7_odd_rows_are_learned_from_all_the_same(
    learner: str, rows: Path, tmp_path: Path, docker_client: DockerClient
) -> None:
    """No anomaly; one row; a column without a value; one row a hundred times; BOM, CRLF and semicolons."""
    ordinary = (rows.parent / "node01.csv").read_text().splitlines()[1:]
    values = [line.rsplit(",", 1)[0] for line in ordinary]
    files = {
        "node01": "\n".join([HEADER, *(f"{value},0" for value in values)]),
        "node02": "\n".join([HEADER, ordinary[0]]),
        "node03": "\n".join([HEADER, *(",".join(["", *line.split(",")[1:]]) for line in ordinary)]),
        "node04": "\n".join([HEADER, *(ordinary[:1] * 100)]),
        "node05": "\ufeff" + "\r\n".join([HEADER, *ordinary]).replace(",", ";"),
    }
    for node, text in files.items():
        (tmp_path / f"{node}.csv").write_bytes(text.encode())
    process = running(learner, rows, dict.fromkeys(files, "org1"))
    reports = launched(process, "--all-local", "--until-complete", "--data", str(tmp_path / "{node}.csv"))
    assert [report["node"] for report in reports] == list(files)
    assert all(report["rounds"][0]["created"] == 3 for report in reports)
    reached(process, "completed")
    for node in files:
        nothing_is_left(docker_client, process, node)


@pytest.fixture(scope="module")
def waiting(learner: str, rows: Path) -> str:
    """A process of one node that never gets to its first round."""
    return running(learner, rows, {"node01": "org1"}, topology="disconnected")


REFUSED = {
    "g4-no-label": ("x0,x1,x2,x3,x4\n1,2,3,4,5\n", "'Class'"),
    "g5-text": (f"{HEADER}\n1,2,3,4,5,0\n1,2,three,4,5,0\n", "line 3, column 'x2'"),
    "g5-infinite": (f"{HEADER}\n1,2,inf,4,5,0\n", "line 2, column 'x2'"),
    "label-beyond-0-and-1": (f"{HEADER}\n1,2,3,4,5,2\n", "line 2, column 'Class'"),
    "g8-no-byte": ("", "empty"),
    "g8-no-row": (f"{HEADER}\n", "row"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_g4_g5_g8_rows_that_cannot_be_used_open_no_task(waiting: str, tmp_path: Path, case: str) -> None:
    text, place = REFUSED[case]
    path = tmp_path / "rows.csv"
    path.write_text(text)
    ran = launch(waiting, "--node", "node01", "--data", str(path))
    assert ran.code == 40, ran.out
    assert str(path) in ran.error["cause"]
    assert place in ran.error["cause"], ran.error
    assert ran.error["remedy"]
    # A value of a row is private, even in an error.
    assert "three" not in ran.out + ran.err
    assert list(ledger().execution.list_tasks(waiting)) == []
