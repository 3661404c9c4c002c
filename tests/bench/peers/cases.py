"""What is measured against peers: cases, the forms of each that a peer may like better, and what a case needs at least.
Standard library only."""

import dataclasses
import json
import pathlib

import common
import contender

FLOAT = 4
# Forms in one operator of ONNX itself, which peers beside onnxruntime may read too.
OPSET_23 = ("Attention", "RMSNormalization")


@dataclasses.dataclass
class Case:
    name: str
    model: list  # words of fusion-modelgen
    forms: dict = dataclasses.field(default_factory=dict)  # setting of onnxruntime -> words of forms.py
    settings: tuple = ("default", "none")  # of onnxruntime, on the model as it is
    instead: list = None  # words of fusion-modelgen for the model of onnxruntime, where it is another one
    others: bool = True  # peers beside onnxruntime take part
    flops: float = 0  # that cannot be left out
    reads: int = 0  # bytes that a run reads at least
    writes: int = 0
    mix: tuple = (1, 0)  # tensors read and written side by side, see machine_limits

    def files(self, work, python):
        """(model of ours, {side: what makes its Contender from the number of threads})"""
        ours = common.generate(work, *self.model, file=f"{self.name}.onnx".replace("/", "-"))
        theirs = ours if self.instead is None else common.generate(work, *self.instead, file=f"{self.name}-theirs.onnx")
        sides = {f"onnxruntime {setting}": (theirs, setting) for setting in self.settings}
        for form, words in self.forms.items():
            path = pathlib.Path(work) / f"{self.name}-{form}.onnx".replace("/", "-")
            words = [str(ours) if word == "MODEL" else word for word in words]
            common.run(python, contender.HERE / "forms.py", *words, path)
            for setting in (("no-skip",) if words[0] == "bert" else ("default",)):
                sides[f"onnxruntime {form}"] = (path, setting)
        return ours, sides

    def roof_s(self, limits):
        """Seconds that this machine needs at least; `limits`: see Limits."""
        memory = (self.reads + self.writes) / limits.stream(self.mix, self.reads + self.writes) if self.reads else 0
        return max(self.flops / limits.flops, memory)


class Limits:
    """What the machine can do, measured in this run and as often as asked for something new."""

    def __init__(self, threads):
        self.threads = threads
        said = json.loads(common.run(common.BIN / "machine_limits", threads).stdout)
        self.flops = 1e9 * said.get("fma_avx512_gflops", said.get("fma_avx2_gflops", said["muladd_sse_gflops"]))
        self.known = {}

    def stream(self, mix, size):
        """Bytes per second of a mix of `mix` = (reads, writes) tensors of so many bytes in all, with the best stores."""
        size = max(int(size) // self.threads // 4096 * 4096, 4096)
        if (mix, size) not in self.known:
            said = json.loads(common.run(common.BIN / "machine_limits", "stream", *mix, size, self.threads).stdout)
            self.known[mix, size] = 1e9 * max(said["plain_gb_per_s"], said["streaming_gb_per_s"])
        return self.known[mix, size]


def matmul(m, n, k):
    return Case(f"gemm {m}x{n}x{k}", ["matmul", "--rows", m, "--cols", n, "--hidden", k], settings=("default",),
                flops=2.0 * m * n * k, reads=FLOAT * (m * k + n * k + m * n))


def attention(mask, queries, keys, heads=12, size=64):
    name = {"none": "mha_nomask", "full": "mha", "causal": "mha_causal"}[mask]
    shape = [1, heads, queries, keys, size]
    operators = ["MultiHeadAttention", "Attention"] + (["GroupQueryAttention"] if mask == "causal" else [])
    half = 2 if mask == "causal" and queries > 1 else 1
    return Case(f"attention {mask} {queries}x{keys}",
                [name, "--seq", queries, "--past", keys - queries, "--hidden", heads * size, "--heads", heads],
                forms={o: ["attention", o, mask, *map(str, shape)] for o in operators},
                flops=4.0 * heads * queries * keys * size / half,
                reads=FLOAT * heads * size * (2 * keys + 2 * queries) if queries == 1 else 0)


def rows_of(name, model, rows, cols, reads, **more):
    size = FLOAT * rows * cols
    return Case(f"{name} {rows}x{cols}", [model, "--rows", rows, "--cols", cols], reads=reads * size, writes=size,
                mix=(reads, 1), **more)


def layer(name, *words, flops=0.0, **more):
    return Case(name, list(words), settings=("default", "no-skip", "none"), flops=flops, **more)


GEMM = [matmul(*shape) for shape in [
    (128, 128, 128), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (128, 768, 768),
    (128, 3072, 768), (128, 768, 3072), (512, 768, 768), (512, 3072, 768), (512, 768, 3072), (384, 1024, 1024),
    (197, 768, 768), (197, 2304, 768), (129, 257, 385), (333, 777, 555), (1000, 1000, 1000), (4096, 64, 576)]]
ONE_ROW = [matmul(1, n, k) for n, k in [(768, 768), (3072, 768), (768, 3072), (2048, 2048), (4096, 4096), (1000, 1024)]]
EIGHT_ROWS = [matmul(8, n, k) for n, k in [(768, 768), (3072, 768), (768, 3072), (2048, 2048), (4096, 4096), (1000, 1024)]]
CAUSAL = [attention("causal", s, s) for s in (512, 2048)]
MASKED = [attention("full", s, s) for s in (512, 2048)]
PLAIN = [attention("none", s, s) for s in (512, 2048)]
DECODE = [attention("none", 1, keys) for keys in (512, 1024, 2048, 4096, 8192)]
LAYER_NORM = [rows_of("residual+bias+LayerNorm", "add_bias_layernorm", rows, 768, 2, settings=("default", "no-skip", "none"))
              for rows in (512, 8192, 32768)]
SOFTMAX = [rows_of("masked softmax", "scale_mask_softmax", rows, cols, 1) for rows, cols in ((1536, 128), (6144, 512), (24576, 2048))]
RMS_NORM = [rows_of("RMSNorm", "rmsnorm", rows, cols, 1, forms={"RMSNormalization": ["rmsnorm", str(rows), str(cols)]})
            for rows, cols in ((128, 4096), (1024, 4096), (8192, 4096))]
CHAINS = [Case(f"chain of {depth}, {rows * 1024}", ["elementwise", "--rows", rows, "--cols", 1024, "--depth", depth],
               reads=2 * FLOAT * rows * 1024, writes=FLOAT * rows * 1024, mix=(2, 1))
          for depth in (5, 10, 20) for rows in (16, 1024, 8192)]
CONV = [Case("conv 3x3 64x56x56", ["conv_bias_leakyrelu"], flops=2.0 * 9 * 64 * 64 * 56 * 56),
        Case("conv 3x3 256x14x14", ["conv_bias_leakyrelu", "--channels", 256, "--image", 14], flops=2.0 * 9 * 256 * 256 * 14 * 14),
        Case("conv 1x1 64x56x56", ["conv1x1"], flops=2.0 * 64 * 64 * 56 * 56),
        Case("conv 1x1 512x14x14", ["conv1x1", "--channels", 512, "--image", 14], flops=2.0 * 512 * 512 * 14 * 14),
        Case("depthwise 96x56x56", ["depthwise"]),
        Case("depthwise 576x14x14", ["depthwise", "--channels", 576, "--image", 14]),
        Case("resnet50", ["resnet50"], flops=2.0 * 4.09e9)]
BERT = {skip: ["bert", "MODEL", "12", "768", skip] for skip in ("skip", "no-skip")}
LAYERS = [layer(f"BERT layer {seq}", "bert_layer", "--seq", seq, forms=BERT) for seq in (16, 128, 512)] + [
    layer("ViT block", "vit_block"), layer("T5 encoder layer", "t5_encoder"), layer("GPT-2 layer", "gpt2_layer_nopast"),
    layer("Llama layer", "llama_small")]
MLP20 = 20 * 256 * 256  # weights, which one row reads once
TINY = [Case("bert_tiny", ["bert_tiny"]), Case("llama_small decode", ["llama_small_decode"]),
        Case("mlp20_m1", ["mlp20_m1_n256"], flops=2.0 * MLP20, reads=FLOAT * MLP20), Case("lstm_cell_b1", ["lstm_cell"])]

# f32 of onnxruntime is what these are beside.
BF16 = [dataclasses.replace(case, name=f"{case.name} in bf16", flops=0, others=False) for case in LAYERS
        if case.name.startswith(("BERT", "ViT", "Llama"))] + [
    layer("BERT-base, 12 layers, in bf16", "bert_12l", others=False)]
DECODE_7B = ["llama_small_decode", "--layers", 1, "--hidden", 4096, "--heads", 32, "--kv_heads", 32, "--ff", 11008, "--past", 512]
WEIGHTS_BF16 = [Case("layer of 7B, one token", DECODE_7B, others=False)]
WEIGHTS_INT8 = [Case("layer of 7B, one token, i8", [*DECODE_7B, "--int8"], instead=DECODE_7B, others=False)]
WEIGHTS_INT8_BOTH = [Case("layer of 7B, one token, i8 for both", [*DECODE_7B, "--int8"], others=False)]
# Beside the same graph of the peer, which multiplies 8 bits too, and beside its f32.
INT8 = [case for name, words in [("gemm 512x3072x768", ["matmul", "--rows", 512, "--cols", 3072, "--hidden", 768]),
                                 ("BERT layer 128", ["bert_layer", "--seq", 128]), ("Llama layer", ["llama_small"]),
                                 ("conv 3x3 64x56x56", ["conv_bias_leakyrelu"]), ("conv 1x1 64x56x56", ["conv1x1"]),
                                 ("conv 3x3 256x14x14", ["conv_bias_leakyrelu", "--channels", 256, "--image", 14]),
                                 ("resnet50", ["resnet50"])]
        for case in (layer(f"{name}, QDQ of both", *words, "--qdq", others=False),
                     layer(f"{name}, QDQ", *words, "--qdq", instead=words, others=False))]
MODELS = [layer(name, name) for name in [
    "bert_layer", "vit_block", "gpt2_layer_decode", "llama_small", "t5_encoder", "mha", "mlp20_m512_n256", "layernorm",
    "lstm_unroll10", "lstm", "conv_bn_relu"]]


@dataclasses.dataclass
class Group:
    name: str
    title: str
    cases: list
    arguments: tuple = ()  # further words of our side's run_bursts
    needs: str = ""  # word of the CPU's flags without which there is nothing to measure


FAST = ("--numerics", "fast")
GROUPS = {group.name: group for group in [
    Group("models", "Models as exporters write them", MODELS),
    Group("gemm", "Matrix products, many rows", GEMM),
    Group("one row", "Matrix products, one row", ONE_ROW),
    Group("eight rows", "Matrix products, eight rows", EIGHT_ROWS),
    Group("causal", "Attention, causal", CAUSAL),
    Group("masked", "Attention with a mask", MASKED),
    Group("plain", "Attention without a mask", PLAIN),
    Group("decode", "Attention of one query to a cache of keys", DECODE),
    Group("norm", "Residual, bias and LayerNorm", LAYER_NORM),
    Group("softmax", "Softmax with a mask", SOFTMAX),
    Group("rmsnorm", "RMSNorm", RMS_NORM),
    Group("chain", "Chains of elementwise operators", CHAINS),
    Group("conv", "Convolutions", CONV),
    Group("layer", "Layers of transformers", LAYERS),
    Group("tiny", "Tiny models", TINY),
    Group("bf16", "Layers in bf16 beside f32 of the peer", BF16, FAST, "avx512_bf16"),
    Group("weights in bf16", "Weights in bf16 beside f32 of the peer", WEIGHTS_BF16, FAST),
    Group("weights in i8", "Weights in i8 beside f32 of the peer", WEIGHTS_INT8, FAST),
    Group("i8 of both", "Weights in i8 of both", WEIGHTS_INT8_BOTH, FAST),
    Group("int8", "Products of 8 bits by 8 bits", INT8, (), "avx512_vnni")]}
# Of which fused plans are compared with one kernel a node.
SUBGRAPHS = [["add_bias_layernorm"], ["scale_mask_softmax"], ["rmsnorm"], ["elementwise", "--depth", 10], ["mha"], ["mha_causal"],
             ["mha_nomask", "--seq", 1, "--past", 2047], ["conv_bias_leakyrelu"], ["depthwise"], ["lstm_cell"], ["mlp20_m1_n256"],
             ["bert_layer", "--seq", 128], ["vit_block"], ["gpt2_layer_nopast"], ["llama_small"], ["llama_small_decode"]]
