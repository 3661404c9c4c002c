"""A model beside its fused export in onnxruntime. Runs in the venv of tests/bench/peers; prints JSON.

  ort_outputs.py inputs MODEL OUT.npz [DATA]       inputs of a run, of DATA/input_<k>.pb or random; prints the dims they bind
  ort_outputs.py compare MODEL FUSED IN.npz        runs both; prints how their outputs differ
  ort_outputs.py optimise MODEL OUT.onnx IN.npz DIR  writes what onnxruntime makes of it (ORT_ENABLE_EXTENDED), and the inputs
                                                   with outputs of the original as DIR/input_<k>.npy, output_<k>.npy; prints
                                                   the operators of its own domain
"""

import json
import pathlib
import sys

import numpy as np
import onnxruntime

ATOL, RTOL = 1e-6, 1e-5  # the second of max|b| of the output
# Element types of ONNX that the models have, by number.
DTYPES = {1: "f4", 2: "u1", 3: "i1", 4: "u2", 5: "i2", 6: "i4", 7: "i8", 9: "?", 10: "f2", 11: "f8", 12: "u4", 13: "u8"}
BY_NAME = {"tensor(float)": "f4", "tensor(double)": "f8", "tensor(float16)": "f2", "tensor(int64)": "i8",
           "tensor(int32)": "i4", "tensor(bool)": "?", "tensor(uint8)": "u1", "tensor(int8)": "i1"}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data):
    """(number, value) of each field of a protobuf message; bytes or an integer."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        else:
            length = {1: 8, 5: 4}.get(tag & 7)
            if length is None:
                length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        yield tag >> 3, value


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def integers(values):
    """Of a repeated integer field, packed or not."""
    out = []
    for value in values:
        if isinstance(value, int):
            out.append(signed(value))
            continue
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            out.append(signed(number))
    return out


def read_tensor(path):
    """A TensorProto as an array."""
    found = {}
    for number, value in fields(path.read_bytes()):
        found.setdefault(number, []).append(value)
    dtype = np.dtype(DTYPES[found[2][0]])
    if 9 in found:
        flat = np.frombuffer(found[9][0], dtype)
    elif 4 in found or 10 in found:  # float_data, double_data
        flat = np.frombuffer(b"".join(found.get(4) or found[10]), "f4" if 4 in found else "f8").astype(dtype)
    else:
        ints = np.array(integers(found.get(5, []) + found.get(7, []) + found.get(11, [])))
        flat = ints.astype("u2").view("f2") if dtype == np.float16 else ints.astype(dtype)
    return flat.reshape(integers(found.get(1, [])))


def session(path, options=None):
    options = options or onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def random_input(declared, chance):
    shape = [d if isinstance(d, int) else 2 for d in declared.shape]
    dtype = np.dtype(BY_NAME[declared.type])
    if dtype.kind == "f":
        return chance.standard_normal(shape).astype(dtype)
    return chance.integers(0, 2, shape).astype(dtype)


def make_inputs(model, out, data=None):
    chance = np.random.default_rng(1)
    arrays, dims = {}, {}
    for k, declared in enumerate(session(model).get_inputs()):
        path = pathlib.Path(data) / f"input_{k}.pb" if data else None
        array = read_tensor(path) if path and path.exists() else random_input(declared, chance)
        arrays[declared.name] = array
        for axis, dim in enumerate(declared.shape):
            if not isinstance(dim, int):
                dims[dim or f"{declared.name}[{axis}]"] = array.shape[axis]
    np.savez(out, **arrays)
    return dims


def difference(name, got, wanted):
    out = {"name": name, "identical": False, "max_rel": 0.0, "equal": False, "words": ""}
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        out["words"] = f"{got.dtype}{list(got.shape)}, the original {wanted.dtype}{list(wanted.shape)}"
        return out
    out["identical"] = got.tobytes() == wanted.tobytes()
    if out["identical"] or got.dtype.kind != "f":
        out["equal"] = out["identical"]
        out["words"] = "" if out["equal"] else "values differ"
        return out
    a, b = got.astype("f8"), wanted.astype("f8")
    finite = np.isfinite(a) & np.isfinite(b)
    same = bool(np.array_equal(a[~finite], b[~finite], equal_nan=True))
    largest = float(np.abs(b[finite]).max(initial=0))
    worst = float(np.abs(a[finite] - b[finite]).max(initial=0))
    out["max_rel"] = worst / largest if largest else worst
    out["equal"] = same and worst <= ATOL + RTOL * largest
    out["words"] = f"max|a-b| {worst:.1e}, max|b| {largest:.1e}"
    return out


def compare(model, fused, inputs):
    given = dict(np.load(inputs))
    plain, written = session(model), session(fused)
    names = [o.name for o in plain.get_outputs()]
    if [o.name for o in written.get_outputs()] != names:
        raise SystemExit("other outputs than the original has")
    return [difference(*three) for three in zip(names, written.run(names, given), plain.run(names, given))]


def own_operators(model):
    """Names of com.microsoft operators in a model file: of its graph (7), nodes (1), domain (7) and op_type (4)."""
    found = set()
    for number, graph in fields(pathlib.Path(model).read_bytes()):
        for tag, node in fields(graph) if number == 7 else ():
            named = dict(fields(node)) if tag == 1 else {}
            if named.get(7) == b"com.microsoft":
                found.add(named[4].decode())
    return sorted(found)


def optimise(model, out, inputs, directory):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(out)
    session(model, options)
    chance = np.random.default_rng(1)
    # It keeps inputs whose initialisers it has folded.
    names = {declared.name: declared for declared in session(out).get_inputs()}
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    given, plain = dict(np.load(inputs)), session(model, options)
    directory = pathlib.Path(directory)
    directory.mkdir()
    for k, (name, declared) in enumerate(names.items()):
        np.save(directory / f"input_{k}.npy", given[name] if name in given else random_input(declared, chance))
    for k, array in enumerate(plain.run(None, given)):
        np.save(directory / f"output_{k}.npy", array)
    return own_operators(out)


if __name__ == "__main__":
    print(json.dumps({"inputs": make_inputs, "compare": compare, "optimise": optimise}[sys.argv[1]](*sys.argv[2:])))
