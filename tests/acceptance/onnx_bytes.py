"""Writes small ONNX models as bytes, with the standard library alone: what a hostile caller sends need not be what exporters write."""

import struct

FLOAT, INT32, INT64, BOOL = 1, 6, 7, 9


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def block(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def tensor(name, values, dims=None, kind=INT64):
    """An initialiser; `dims`: none for a list's own length, () for a scalar."""
    values = list(values) if isinstance(values, (list, tuple, range)) else [values]
    dims = [len(values)] if dims is None else dims
    raw = struct.pack(f"<{len(values)}{ {FLOAT: 'f', INT32: 'i', INT64: 'q', BOOL: '?'}[kind] }", *values)
    return b"".join(number(1, d) for d in dims) + number(2, kind) + block(8, name) + block(9, raw)


def attribute(name, value):
    head = block(1, name)
    if isinstance(value, float):
        return head + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)
    if isinstance(value, int):
        return head + number(3, value) + number(20, 2)
    if isinstance(value, str):
        return head + block(4, value) + number(20, 3)
    if isinstance(value, Tensor):
        return head + block(5, value.data) + number(20, 4)
    if isinstance(value, Graph):
        return head + block(6, value.bytes()) + number(20, 5)
    return head + b"".join(number(8, v) for v in value) + number(20, 7)


class Tensor:
    def __init__(self, data):
        self.data = data


def value_info(name, kind, dims):
    shape = b"".join(block(1, block(2, d) if isinstance(d, str) else number(1, d)) for d in dims)
    typed = number(1, kind) + (b"" if dims is None else block(2, shape))
    return block(1, name) + block(2, block(1, typed))


def node(op, inputs, outputs, domain="", **attributes):
    parts = [block(1, i) for i in inputs] + [block(2, o) for o in outputs] + [block(3, f"the_{op}_{outputs[0]}"), block(4, op)]
    parts += [block(5, attribute(k, v)) for k, v in attributes.items()]
    return b"".join(parts) + (block(7, domain) if domain else b"")


class Graph:
    """Nodes in order; names are chosen unless given."""

    count = 0
    opset = 18

    def __init__(self, name="g"):
        self.name, self.nodes, self.constants, self.inputs, self.outputs = name, [], [], [], []

    @classmethod
    def fresh(cls):
        cls.count += 1
        return f"t{cls.count}"

    def input(self, dims, kind=FLOAT, name=None):
        name = name or self.fresh()
        self.inputs.append(value_info(name, kind, dims))
        return name

    def const(self, values, dims=None, kind=INT64):
        name = self.fresh()
        self.constants.append(tensor(name, values, dims, kind))
        return name

    def op(self, op, *inputs, outputs=1, domain="", **attributes):
        names = [self.fresh() for _ in range(outputs)]
        self.nodes.append(node(op, inputs, names, domain, **attributes))
        return names[0] if outputs == 1 else names

    def output(self, name, dims=("?",), kind=FLOAT):
        self.outputs.append(value_info(name, kind, dims))

    def bytes(self):
        return (b"".join(block(1, n) for n in self.nodes) + block(2, self.name) + b"".join(block(5, c) for c in self.constants)
                + b"".join(block(11, i) for i in self.inputs) + b"".join(block(12, o) for o in self.outputs))

    def model(self, functions=(), opset=18):
        imports = block(8, block(1, "") + number(2, opset)) + (block(8, block(1, "own") + number(2, 1)) if functions else b"")
        return number(1, 8) + block(7, self.bytes()) + imports + b"".join(block(25, f) for f in functions)


def function(name, inputs, outputs, nodes, opset=18):
    return (block(1, name) + b"".join(block(4, i) for i in inputs) + b"".join(block(5, o) for o in outputs)
            + b"".join(block(7, n) for n in nodes) + block(9, block(1, "") + number(2, opset))
            + block(9, block(1, "own") + number(2, 1)) + block(10, "own"))
