"""An ONNX model as calls of a framework that has no importer for it: what torch_worker.py and jax_worker.py run.

    graph = Graph("model.onnx")
    outputs = graph.evaluate(lib, values)   # values: name -> array, of inputs and of graph.weights; in order of graph.outputs

`lib` spells what frameworks do not spell alike; see class Lib of either worker. Shapes are those of the file, and operators
those of tests/bench/peers/cases.py: a model with another one ends with its name.
"""

import numpy as np
import onnx
from onnx import helper, numpy_helper


class Graph:
    def __init__(self, path):
        graph = onnx.shape_inference.infer_shapes(onnx.load(path)).graph
        constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        self.nodes = [node for node in graph.node if node.op_type != "Constant"]
        for node in graph.node:
            if node.op_type == "Constant":
                constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
        self.constants = constants
        # One number is written into the code, as a person would.
        self.weights = {name: value for name, value in constants.items() if value.size > 1}
        self.outputs = [value.name for value in graph.output]
        self.shapes = {name: list(value.shape) for name, value in constants.items()}
        for value in [*graph.input, *graph.value_info, *graph.output]:
            self.shapes[value.name] = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        self.inputs = {value.name: (self.shapes[value.name], helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))
                       for value in graph.input if value.name not in constants}

    def evaluate(self, lib, values):
        values = dict(values)
        for node in self.nodes:
            if node.op_type not in OPERATORS:
                raise NotImplementedError(f"operator {node.op_type}")
            found = OPERATORS[node.op_type](Call(self, node, lib, values))
            for name, value in zip(node.output, found if isinstance(found, (list, tuple)) else [found]):
                values[name] = value
        return [values[name] for name in self.outputs]


class Call:
    """One node: call[k] is its k-th input, None if it has none."""

    def __init__(self, graph, node, lib, values):
        self.graph, self.node, self.lib, self.values = graph, node, lib, values
        self.attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}

    def __getitem__(self, k):
        name = self.node.input[k] if k < len(self.node.input) else ""
        if not name:
            return None
        return self.values[name] if name in self.values else self.graph.constants[name].item()

    def all(self):
        return [self[k] for k in range(len(self.node.input))]

    def static(self, k):
        """An input that must be in the file, as numpy's."""
        return self.graph.constants[self.node.input[k]]

    def get(self, name, default=None):
        return self.attributes.get(name, default)

    def shape(self, k=0):
        """Of the k-th input."""
        return self.graph.shapes[self.node.input[k]]

    def to(self):
        """Shape of the output."""
        return self.graph.shapes[self.node.output[0]]


def divide(call):
    if call.graph.inputs.get(call.node.input[0], (0, np.dtype("f4")))[1].kind in "iu":
        raise NotImplementedError("Div of integers")
    return call[0] / call[1]


def power(call):
    exponent = call[1]
    return call[0] ** (int(exponent) if isinstance(exponent, float) and exponent.is_integer() else exponent)


def gemm(call):
    a, b = [call.lib.transpose(call[k], [1, 0]) if call.get(name) else call[k] for k, name in ((0, "transA"), (1, "transB"))]
    product = call.lib.matmul(a, b)
    product = product * call.get("alpha") if call.get("alpha", 1.0) != 1.0 else product
    return product if call[2] is None else product + (call[2] * call.get("beta") if call.get("beta", 1.0) != 1.0 else call[2])


def split(call):
    axis = call.get("axis", 0) % len(call.shape())
    parts = len(call.node.output)
    sizes = call.static(1).tolist() if len(call.node.input) > 1 else [call.shape()[axis] // parts] * parts
    ends = np.cumsum(sizes).tolist()
    return [call[0][(slice(None),) * axis + (slice(end - size, end),)] for end, size in zip(ends, sizes)]


def slices(call):
    rank = len(call.shape())
    steps = call.static(4).tolist() if len(call.node.input) > 4 else [1] * rank
    axes = call.static(3).tolist() if len(call.node.input) > 3 else range(rank)
    index = [slice(None)] * rank
    for start, end, axis, step in zip(call.static(1).tolist(), call.static(2).tolist(), axes, steps):
        if step < 1:
            raise NotImplementedError("Slice backwards")
        extent = call.shape()[axis]
        index[axis] = slice(*slice(start, end, step).indices(extent))
    return call[0][tuple(index)]


def gather(call):
    axis, index = call.get("axis", 0) % len(call.shape()), call[1]
    if isinstance(index, int):
        return call[0][(slice(None),) * axis + (index,)]
    return call.lib.take(call[0], index, axis, call.shape(1))


def reduce_mean(call):
    axes = call.get("axes") or call.static(1).tolist()
    return call.lib.mean(call[0], axes, bool(call.get("keepdims", 1)))


def windows(call):
    """(strides, [(begin, end) padding of each dim]) of a node with windows."""
    dims = len(call.shape()) - 2
    pads = call.get("pads", [0] * (2 * dims))
    if call.get("auto_pad", b"NOTSET") != b"NOTSET" or call.get("ceil_mode", 0) or set(call.get("dilations", [1])) != {1}:
        raise NotImplementedError(f"attributes of {call.node.op_type}")
    return call.get("strides", [1] * dims), list(zip(pads[:dims], pads[dims:]))


def conv(call):
    return call.lib.conv(call[0], call[1], call[2], *windows(call), call.get("group", 1))


def max_pool(call):
    return call.lib.max_pool(call[0], call.get("kernel_shape"), *windows(call))


def lstm(call):
    if set(call.attributes) != {"hidden_size"} or len(call.node.input) > 4:
        raise NotImplementedError("this form of LSTM")
    weights = [call.static(1)[0], call.static(2)[0], *np.split(call.static(3)[0], 2)]
    gates = [np.split(weight, 4) for weight in weights]  # input, output, forget, cell; frameworks want cell before output
    weights = [call.lib.constant(np.concatenate([i, f, c, o])) for i, o, f, c in gates]
    zeros = call.lib.constant(np.zeros([1, call.shape()[1], call.get("hidden_size")], dtype=np.float32))
    y, h, c = call.lib.lstm(call[0], zeros, *weights)
    return y[:, None], h, c


def attention(call):
    """Of opset 23: three dims, heads in the last."""
    if set(call.attributes) - {"q_num_heads", "kv_num_heads", "is_causal"} or len(call.node.input) > 4:
        raise NotImplementedError("this form of Attention")
    heads = [call.get("q_num_heads"), call.get("kv_num_heads"), call.get("kv_num_heads")]
    q, k, v = [call.lib.reshape(call[i], [*call.shape(i)[:2], heads[i], call.shape(i)[2] // heads[i]]) for i in range(3)]
    return call.lib.reshape(call.lib.attention(q, k, v, call[3], bool(call.get("is_causal", 0))), call.to())


def of(name):
    """The function of `lib` of this name, of all inputs."""
    return lambda call: getattr(call.lib, name)(*call.all())


def shaped(call):
    return call.lib.reshape(call[0], call.to())


OPERATORS = {
    "Add": lambda call: call[0] + call[1], "Sub": lambda call: call[0] - call[1], "Mul": lambda call: call[0] * call[1],
    "Div": divide, "Pow": power, "Neg": lambda call: -call[0], "Less": lambda call: call[0] < call[1],
    "LessOrEqual": lambda call: call[0] <= call[1], "Greater": lambda call: call[0] > call[1], "Min": of("minimum"),
    "Max": of("maximum"),
    "Identity": lambda call: call[0],
    "Cast": lambda call: call.lib.cast(call[0], helper.tensor_dtype_to_np_dtype(call.get("to")).name),
    "Abs": of("abs"), "Cos": of("cos"), "Exp": of("exp"), "Erf": of("erf"), "Log": of("log"), "Relu": of("relu"), "Sigmoid": of("sigmoid"),
    "Sin": of("sin"), "Sqrt": of("sqrt"), "Tanh": of("tanh"), "Where": of("where"), "MatMul": of("matmul"), "Gemm": gemm,
    "LeakyRelu": lambda call: call.lib.leaky_relu(call[0], call.get("alpha", 0.01)), "Clip": of("clip"),
    "Transpose": lambda call: call.lib.transpose(call[0], list(call.get("perm", range(len(call.shape()))[::-1]))),
    "Reshape": shaped, "Flatten": shaped, "Unsqueeze": shaped, "Squeeze": shaped,
    "Expand": lambda call: call.lib.broadcast_to(call[0], call.to()),
    "Concat": lambda call: call.lib.concat(call.all(), call.get("axis")), "Split": split, "Slice": slices, "Gather": gather,
    "Range": lambda call: call.lib.arange(*[call.static(k).item() for k in range(3)]),
    "ReduceMean": reduce_mean, "Softmax": lambda call: call.lib.softmax(call[0], call.get("axis", -1)),
    "BatchNormalization": lambda call: call.lib.batch_norm(*call.all(), call.get("epsilon", 1e-5)),
    "Conv": conv, "MaxPool": max_pool, "GlobalAveragePool": lambda call: call.lib.mean(call[0], [2, 3], True), "LSTM": lstm,
    "Attention": attention,
    "RMSNormalization": lambda call: call.lib.rms_norm(call[0], call[1], call.get("epsilon", 1e-5)),
}
