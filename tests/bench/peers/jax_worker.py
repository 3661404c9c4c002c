"""Run by the Python that has jax: MODEL THREADS. XLA for the CPU, in f32; weights are constants of what is compiled."""

import os
import sys

import worker  # first: what libraries print must not be taken for an answer

model, threads = sys.argv[1], int(sys.argv[2])
os.environ["NPROC"] = str(threads)  # of XLA's pool
os.environ["JAX_PLATFORMS"] = "cpu"
if threads == 1:
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import onnx_graph

jax.config.update("jax_default_matmul_precision", "highest")


class Lib:
    """Spells what onnx_graph.py asks for."""

    abs, cos, exp, log, sin, sqrt, tanh = jnp.abs, jnp.cos, jnp.exp, jnp.log, jnp.sin, jnp.sqrt, jnp.tanh
    erf, sigmoid, relu, leaky_relu = lax.erf, jax.nn.sigmoid, jax.nn.relu, jax.nn.leaky_relu
    where, matmul, transpose, reshape, softmax = jnp.where, jnp.matmul, jnp.transpose, jnp.reshape, jax.nn.softmax
    concat, clip, broadcast_to, minimum, maximum, arange, constant = (
        jnp.concatenate, jnp.clip, jnp.broadcast_to, jnp.minimum, jnp.maximum, jnp.arange, jnp.asarray)

    @staticmethod
    def mean(x, axes, keep):
        return jnp.mean(x, tuple(axes), keepdims=keep)

    @staticmethod
    def cast(x, dtype):
        return x.astype(jax.dtypes.canonicalize_dtype(dtype))

    @staticmethod
    def take(x, index, axis, shape):
        return jnp.take(x, index, axis, mode="clip")

    @staticmethod
    def batch_norm(x, scale, bias, mean, variance, epsilon):
        scale = scale * lax.rsqrt(variance + epsilon)
        return x * scale[:, None, None] + (bias - mean * scale)[:, None, None]

    @staticmethod
    def conv(x, weight, bias, strides, pads, group):
        y = lax.conv_general_dilated(x, weight, strides, pads, feature_group_count=group)
        return y if bias is None else y + bias[:, None, None]

    @staticmethod
    def max_pool(x, kernel, strides, pads):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, *kernel), (1, 1, *strides), [(0, 0), (0, 0), *pads])

    @staticmethod
    def lstm(x, zeros, w, r, w_bias, r_bias):
        def step(state, x):
            h, c = state
            i, f, g, o = jnp.split(x + h @ r.T, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h
        (h, c), y = lax.scan(step, (zeros[0], zeros[0]), x @ w.T + (w_bias + r_bias))
        return y, h[None], c[None]

    @staticmethod
    def attention(q, k, v, mask, causal):
        return jax.nn.dot_product_attention(q, k, v, bias=mask, is_causal=causal)

    @staticmethod
    def rms_norm(x, scale, epsilon):
        return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + epsilon) * scale


graph = onnx_graph.Graph(model)
weights = {name: jnp.asarray(value) for name, value in graph.weights.items()}
inputs = [jnp.asarray(worker.values(shape, dtype)) for shape, dtype in graph.inputs.values()]
run = jax.jit(lambda *inputs: graph.evaluate(Lib, {**weights, **dict(zip(graph.inputs, inputs))}))
worker.serve(lambda: jax.block_until_ready(run(*inputs)), lambda: [np.asarray(value) for value in run(*inputs)])
