"""The same trees in ONNX Runtime, as `executor model export` lays them out."""

from collections.abc import Sequence
from typing import Any

import onnxruntime
from onnx import TensorProto, helper

from executor.model.graph import IR, OPSET, TREES_OPSET, Arrays, trees_node
from protocol.trees.tree import Tree


def onnx_session(trees: Sequence[Tree]) -> Any:
    """Return a session that gives the mean of the trees, on one thread."""
    parts = Arrays()
    for tree in trees:
        parts.add(tree, tree.value / len(trees), 0)
    cast = helper.make_node("Cast", ["features"], ["rows"], to=TensorProto.DOUBLE)
    graph = helper.make_graph(
        [cast, trees_node(parts, 1, "score")],
        "forest",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["N", "d"])],
        [helper.make_tensor_value_info("score", TensorProto.DOUBLE, ["N", 1])],
    )
    versions = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", TREES_OPSET)]
    made = helper.make_model(graph, ir_version=IR, opset_imports=versions)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    raw = made.SerializeToString()
    return onnxruntime.InferenceSession(raw, options, providers=["CPUExecutionProvider"])
