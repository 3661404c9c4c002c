"""Writes the node tests of the onnx that this Python has: OUT/NAME/model.onnx, test_data_set_<k>/ with input_<i>.pb and
output_<i>.pb, and case.json. Prints the version of onnx.

  newest_onnx_worker.py OUT

case.json: ops (of its nodes), inputs (their names), rtol, atol (of the test), beside (what it is about if that is not tensors),
and retries: sets of inputs to make constants of in turn, for tests pass shapes and the like as inputs, which no plan can be made for.
"""

import json
import pathlib
import sys
import warnings

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
KINDS = {"sequence_type": "sequence", "optional_type": "optional", "map_type": "map", "sparse_tensor_type": "sparse"}


def nodes_of(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from nodes_of(attribute.g)


def beside(case, nodes):
    """"" if it is a function from tensors to tensors that a plan can be made for."""
    graph = case.model.graph
    for value in (*graph.input, *graph.output):
        kind = value.type.WhichOneof("value")
        if kind in KINDS:
            return KINDS[kind]
        if value.type.tensor_type.elem_type == onnx.TensorProto.STRING:
            return "string"
    for node in nodes:
        if node.op_type in RANDOM:
            return "random"
        if node.op_type == "ImageDecoder":
            return "image decoding"
        if "training" in node.domain or any(a.name == "training_mode" and a.i for a in node.attribute):
            return "training"
        if any(a.type in (onnx.AttributeProto.STRINGS,) or a.t.data_type == onnx.TensorProto.STRING
               for a in node.attribute if a.name.startswith(("keys", "values", "cats", "default_tensor", "value"))):
            return "string"
    return "training" if case.name.startswith("test_training_") else ""


def retries(case):
    """What shapes and numbers of passes may follow from: integers and truth values behind the first input; all of these; scalars
    and vectors behind the first input; all inputs where all are scalars and vectors."""
    graph, (inputs, _) = case.model.graph, case.data_sets[0]
    whole, small, order = [], [], [value.name for value in graph.input][:len(inputs)]
    for value, given in zip(graph.input, inputs):
        given = numpy_helper.to_array(given) if isinstance(given, onnx.TensorProto) else np.asarray(given)
        if given.dtype.kind in "iub":
            whole.append(value.name)
        if given.ndim <= 1:
            small.append(value.name)
    out = []
    for names in ([name for name in whole if name != order[0]], whole, [name for name in small if name != order[0]],
                  small if len(small) == len(order) else []):
        if names and names not in out:
            out.append(names)
    return out


def write(path, values, declared):
    for k, (value, one) in enumerate(zip(values, declared)):
        kind = one.type.WhichOneof("value")
        if not isinstance(value, onnx.TensorProto):
            make = {"sequence_type": numpy_helper.from_list, "optional_type": numpy_helper.from_optional,
                    "map_type": numpy_helper.from_dict}.get(kind)
            value = make(value, one.name) if make else numpy_helper.from_array(np.asarray(value), one.name)
        path.with_name(f"{path.name}_{k}.pb").write_bytes(value.SerializeToString())


def tolerance(case):
    """That of the test, and of bf16 one unit in the last place: few sums come to the same bits in another order."""
    types = {value.type.tensor_type.elem_type for value in case.model.graph.output}
    return max(case.rtol, 2**-7 if onnx.TensorProto.BFLOAT16 in types else 0)


def write_case(case, directory):
    directory.mkdir(parents=True)
    (directory / "model.onnx").write_bytes(case.model.SerializeToString())
    nodes = [*nodes_of(case.model.graph), *(node for function in case.model.functions for node in function.node)]
    about = beside(case, nodes)
    said = {"ops": sorted({node.op_type for node in case.model.graph.node}),
            "inputs": [value.name for value in case.model.graph.input], "rtol": tolerance(case), "atol": case.atol, "beside": about,
            "retries": [] if about in KINDS.values() else retries(case)}
    (directory / "case.json").write_text(json.dumps(said))
    for k, (inputs, outputs) in enumerate(case.data_sets):
        data = directory / f"test_data_set_{k}"
        data.mkdir()
        write(data / "input", inputs, case.model.graph.input)
        write(data / "output", outputs, case.model.graph.output)


def main(out):
    warnings.simplefilter("ignore")
    for case in collect_testcases(None):
        write_case(case, pathlib.Path(out) / case.name)
    return onnx.__version__


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
