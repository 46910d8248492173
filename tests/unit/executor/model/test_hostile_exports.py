"""Whatever a file holds, it is the exported model or a refusal, never another exception (H20)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.published import SCHEMA, small_model

from executor.model import files
from executor.model.errors import ModelError
from protocol.digest import Digest

MODEL = small_model()
EXPORTED = files.Exported(MODEL, SCHEMA, {"onnx": Digest.of(b"graph")})
RAW = files.to_json(EXPORTED)
RECORD: dict[str, Any] = json.loads(RAW)

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def read(raw: bytes) -> None:
    """Whatever is accepted has the one spelling of what it says, so that its digest stands for all of it."""
    try:
        exported = files.from_json(raw, "model.json")
    except ModelError:
        return
    assert files.to_json(exported) == raw
    assert exported.model.ensemble == MODEL.ensemble
    assert exported.model.digest == MODEL.digest


@given(field=st.sampled_from(sorted(RECORD)), value=values)
def test_any_value_in_any_field(field: str, value: Any) -> None:
    read((json.dumps({**RECORD, field: value}, indent=1) + "\n").encode())


@given(field=st.sampled_from(sorted(RECORD["estimators"][0])), value=values, entry=st.sampled_from([0, 1, 2]))
def test_any_value_in_any_array(field: str, value: Any, entry: int) -> None:
    trees = list(RECORD["estimators"])
    trees[entry] = {**trees[entry], field: value}
    read((json.dumps({**RECORD, "estimators": trees}, indent=1) + "\n").encode())


@given(place=st.integers(0, len(RAW)), length=st.integers(0, 20), new=st.binary(max_size=20))
def test_any_bytes_anywhere(place: int, length: int, new: bytes) -> None:
    read(RAW[:place] + new + RAW[place + length :])


def test_the_unaltered_file_is_accepted() -> None:
    read(RAW)
    with pytest.raises(ModelError):
        files.from_json(RAW[:-3], "model.json")
