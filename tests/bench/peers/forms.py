"""Run by the Python that has onnx: writes what a peer is best at, for work that our side gets as exporters write it.

    forms.py attention OPERATOR MASK BATCH HEADS QUERIES KEYS SIZE FILE   OPERATOR: MultiHeadAttention,
                                                                          GroupQueryAttention or Attention;
                                                                          MASK: none, full or causal
    forms.py rmsnorm ROWS COLS FILE                                       RMSNormalization of opset 23
    forms.py bert MODEL HEADS HIDDEN SKIP FILE                            a model of BERT as onnxruntime's own optimiser
                                                                          writes it; SKIP: skip or no-skip

Inputs of attention have the layout the operator wants: [batch, queries, heads * size].
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def save(nodes, inputs, outputs, weights, path, domain_version=1, opset=23):
    graph = helper.make_graph(nodes, "peer", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset),
                                                    helper.make_opsetid("com.microsoft", domain_version)])
    model.ir_version = 10
    onnx.save(model, path)


def floats(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def attention(operator, mask, batch, heads, queries, keys, size, path):
    hidden = heads * size
    inputs = [floats("q", [batch, queries, hidden]), floats("k", [batch, keys, hidden]), floats("v", [batch, keys, hidden])]
    weights, outputs = [], [floats("y", [batch, queries, hidden])]
    past = keys - queries
    if operator == "MultiHeadAttention":
        names = ["q", "k", "v"]
        if mask == "full":
            inputs.append(floats("mask", [batch, 1, queries, keys]))
            names += ["", "", "mask"]
        node = helper.make_node(operator, names, ["y"], domain="com.microsoft", num_heads=heads,
                                unidirectional=int(mask == "causal"))
    elif operator == "Attention":
        names = ["q", "k", "v"]
        if mask == "full":
            inputs.append(floats("mask", [batch, 1, queries, keys]))
            names.append("mask")
        node = helper.make_node(operator, names, ["y"], q_num_heads=heads, kv_num_heads=heads, is_causal=int(mask == "causal"))
    elif operator == "GroupQueryAttention":
        assert mask == "causal"
        # A prompt: all keys are new. One query: all but one are in the cache.
        new = queries if past else keys
        inputs[1:] = [floats(name, [batch, new, hidden]) for name in ("k", "v")]
        inputs += [floats(f"past_{name}", [batch, heads, past, size]) for name in ("key", "value")]
        outputs += [floats(f"present_{name}", [batch, heads, keys, size]) for name in ("key", "value")]
        weights = [numpy_helper.from_array(np.full([batch], keys - 1, dtype=np.int32), "lengths"),
                   numpy_helper.from_array(np.array(keys, dtype=np.int32), "total")]
        node = helper.make_node(operator, ["q", "k", "v", "past_key", "past_value", "lengths", "total"],
                                ["y", "present_key", "present_value"], domain="com.microsoft", num_heads=heads,
                                kv_num_heads=heads)
    else:
        sys.exit(f"forms.py: no attention operator {operator}")
    save([node], inputs, outputs, weights, path)


def rmsnorm(rows, cols, path):
    scale = numpy_helper.from_array(np.ones([cols], dtype=np.float32), "scale")
    node = helper.make_node("RMSNormalization", ["x", "scale"], ["y"], axis=-1, epsilon=1e-6)
    save([node], [floats("x", [rows, cols])], [floats("y", [rows, cols])], [scale], path)


def bert(model, heads, hidden, skip, path):
    from onnxruntime.transformers import fusion_options, optimizer
    options = fusion_options.FusionOptions("bert")
    options.enable_skip_layer_norm = skip == "skip"
    options.enable_bias_skip_layer_norm = skip == "skip"
    done = optimizer.optimize_model(model, model_type="bert", num_heads=heads, hidden_size=hidden, opt_level=0,
                                    optimization_options=options)
    done.save_model_to_file(path)


def main(words):
    if words[0] == "attention":
        attention(words[1], words[2], *map(int, words[3:8]), words[8])
    elif words[0] == "rmsnorm":
        rmsnorm(int(words[1]), int(words[2]), words[3])
    elif words[0] == "bert":
        bert(words[1], int(words[2]), int(words[3]), words[4], words[5])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
