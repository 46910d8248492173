"""`executor experiment ieee-cis` and `shuttle` through their command line: other data is refused at once."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from executor.cli import main
from executor.exits import DATA_UNUSABLE


@pytest.mark.parametrize("workload", ["ieee-cis", "shuttle"])
def test_data_that_is_not_the_workloads_is_unusable(workload: str, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("a,isFraud\n1,0\n2,1\n")
    result = CliRunner().invoke(main, ["experiment", workload, "--data", str(rows)], catch_exceptions=False)
    assert result.exit_code == DATA_UNUSABLE
    assert "DATA_HASH" in result.stderr
