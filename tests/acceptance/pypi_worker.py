"""A model of tests/models/pypi.txt made ready to be measured. Runs in the venv of tests/bench/peers; prints JSON.

  pypi_worker.py MODEL OUT.onnx DATA INPUT...   writes the model with dims as INPUT says, and DATA/input_<k>.npy and
                                                output_<k>.npy, what onnxruntime computes with no optimisation of the graph.
                                                Where INPUT makes constants of inputs also OUT.inputs.onnx, the model as it is,
                                                and OUT.inputs.npz, values of all its inputs; prints whether it did
"""

import json
import pathlib
import re
import sys

import numpy as np
import onnx
import onnxruntime

CHANCE = np.random.default_rng(1)


def values(declared, shape, limit):
    dtype = onnx.helper.tensor_dtype_to_np_dtype(declared.type.tensor_type.elem_type)
    if np.issubdtype(dtype, np.floating):
        return CHANCE.standard_normal(shape).astype(dtype)
    return CHANCE.integers(0, limit, shape).astype(dtype)


def parse(word):
    """(name, constant or None, shape, limit)"""
    if match := re.fullmatch(r"(.+):=([-+.e\d]+)", word):
        return match[1], float(match[2]), (), None
    match = re.fullmatch(r"(.+)=(\d+(?:x\d+)*)(?:<(\d+))?", word)
    if match is None:
        raise SystemExit(f"no input: {word}")
    return match[1], None, tuple(int(dim) for dim in match[2].split("x")), int(match[3] or 2)


def bind(graph, bound):
    """The value of each named dim wherever the model has it."""
    for declared in (*graph.input, *graph.output, *graph.value_info):
        for dim in declared.type.tensor_type.shape.dim:
            if dim.dim_param in bound:
                dim.dim_value = bound[dim.dim_param]


def prepare(model, words, constants):
    """Changes the model; gives the values of its inputs by name. `constants`: what words make constants of is an input no more."""
    graph, given, bound = model.graph, {}, {}
    declared = {value.name: value for value in graph.input}
    for name, constant, shape, limit in map(parse, words):
        tensor = declared[name].type.tensor_type
        if constant is not None:
            value = np.array(constant, onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
            if constants:
                graph.initializer.append(onnx.numpy_helper.from_array(value, name))
                graph.input.remove(declared[name])
            else:
                given[name] = value
            continue
        for dim, value in zip(tensor.shape.dim, shape, strict=True):
            if dim.dim_param:
                bound[dim.dim_param] = value
            dim.dim_value = value
        given[name] = values(declared[name], shape, limit)
    bind(graph, bound)
    known = {tensor.name for tensor in graph.initializer}
    missing = [value.name for value in graph.input if value.name not in given and value.name not in known]
    if missing:
        raise SystemExit(f"inputs without a shape: {', '.join(missing)}")
    return given


def main(path, out, data, *words):
    model = onnx.load(path)
    given = prepare(model, words, constants=True)
    onnx.save(model, out)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(out, options, providers=["CPUExecutionProvider"])
    directory = pathlib.Path(data)
    directory.mkdir(parents=True, exist_ok=True)
    for k, declared in enumerate(session.get_inputs()):
        np.save(directory / f"input_{k}.npy", given[declared.name])
    for k, array in enumerate(session.run(None, given)):
        np.save(directory / f"output_{k}.npy", array)
    if not any(constant is not None for _, constant, _, _ in map(parse, words)):
        return False
    # With fixed dims onnxruntime refuses models of which a branch is for others.
    shipped = pathlib.Path(out).with_suffix(".inputs.onnx")
    shipped.write_bytes(pathlib.Path(path).read_bytes())
    np.savez(shipped.with_suffix(".npz"), **prepare(onnx.load(path), words, constants=False))
    return True


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
