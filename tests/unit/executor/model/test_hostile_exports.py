"""Whatever a file holds, it is the model of its digest or a refusal, never another exception."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.published import SCHEMA, answers

from executor.model import files
from executor.model.errors import ModelError

MODEL = answers().assemble()
RAW = files.to_json(MODEL, SCHEMA)
RECORD: dict[str, Any] = json.loads(RAW)

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def read(raw: bytes) -> None:
    try:
        model, _ = files.from_json(raw, "model.json")
    except ModelError:
        return
    # The digest covers the trees; threshold, vote and cap are for the ledger to confirm.
    assert model.ensemble == MODEL.ensemble
    assert model.digest == MODEL.digest


@settings(max_examples=60, deadline=None)
@given(field=st.sampled_from(sorted(RECORD)), value=values)
def test_any_value_in_any_field(field: str, value: Any) -> None:
    read(json.dumps({**RECORD, field: value}).encode())


@settings(max_examples=60, deadline=None)
@given(
    field=st.sampled_from(sorted(RECORD["estimators"][0])), value=values, entry=st.sampled_from([0, 1, 20])
)
def test_any_value_in_any_array(field: str, value: Any, entry: int) -> None:
    trees = list(RECORD["estimators"])
    trees[entry] = {**trees[entry], field: value}
    read(json.dumps({**RECORD, "estimators": trees}).encode())


@settings(max_examples=60, deadline=None)
@given(place=st.integers(0, len(RAW)), length=st.integers(0, 20), new=st.binary(max_size=20))
def test_any_bytes_anywhere(place: int, length: int, new: bytes) -> None:
    read(RAW[:place] + new + RAW[place + length :])


def test_the_unaltered_file_is_accepted() -> None:
    read(RAW)
    with pytest.raises(ModelError):
        files.from_json(RAW[:-3], "model.json")
