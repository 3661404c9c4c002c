"""Models of what no loop nest of a program does well: orders, choices by value, and scans. Runs in the venv of
tests/bench/peers.

  order_models.py DIR      writes one file each; prints their names
"""

import json
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 18


def write(directory, name, nodes, inputs, outputs, constants):
    graph = helper.make_graph(
        nodes, name, [helper.make_tensor_value_info(n, TensorProto.FLOAT, dims) for n, dims in inputs.items()],
        [helper.make_tensor_value_info(n, kind, dims) for n, (kind, dims) in outputs.items()],
        [numpy_helper.from_array(np.array(value), n) for n, value in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, str(directory / f"{name}.onnx"))
    return name


def top(directory, name, k, of):
    return write(directory, name, [helper.make_node("TopK", ["x", "k"], ["values", "indices"], axis=1)], {"x": [1, of]},
                 {"values": (TensorProto.FLOAT, [1, k]), "indices": (TensorProto.INT64, [1, k])},
                 {"k": np.array([k], np.int64)})


def main(out):
    directory = pathlib.Path(out)
    float_, integer = TensorProto.FLOAT, TensorProto.INT64
    boxes = helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["chosen"])
    return [
        top(directory, "TopK 100 of 30,000", 100, 30000),
        top(directory, "sort 2,000", 2000, 2000),
        write(directory, "unique 3,000", [helper.make_node("Unique", ["x"], ["y"], sorted=1)], {"x": [3000]},
              {"y": (float_, ["count"])}, {}),
        write(directory, "NMS 200 x 20", [boxes], {"boxes": [1, 200, 4], "scores": [1, 20, 200]},
              {"chosen": (integer, ["count", 3])},
              {"most": np.array([50], np.int64), "overlap": np.array([0.5], np.float32), "least": np.array([0.3], np.float32)}),
        write(directory, "CumSum 4 x 50,000", [helper.make_node("CumSum", ["x", "axis"], ["y"])], {"x": [4, 50000]},
              {"y": (float_, [4, 50000])}, {"axis": np.array(1, np.int64)}),
    ]


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
