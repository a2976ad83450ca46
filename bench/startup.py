"""Start-up in fresh processes: decorate and call the example for the first time, with and without a cache.

    python bench/startup.py [--program example|mlp] [--rounds 25]

Every sample is a process of its own; peers take turns. "cold" starts with an empty cache directory, "warm"
with the one that the cold process filled, for peers that have one. Times are taken inside the process, from
before the decoration to the first result, with the peer imported; "import" is its import after NumPy's.
"mlp" is a multilayer perceptron of 30 operations: 128-256-256-10, batch 32, ReLU, layer norm, softmax.
Numba, JAX and ONNX Runtime are optional (``pip install cuvil[bench] jax onnxruntime onnx``).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

PRELUDE = """
import json, time
import numpy as np
x = np.random.default_rng(0).standard_normal((1, 128)).astype(np.float32)
w = np.random.default_rng(1).standard_normal((128, 64)).astype(np.float32)
now = time.perf_counter
t0 = now()
"""

FINISH = """
t3 = now()
assert np.allclose(r, np.maximum(x @ w, 0), atol=1e-4)
print(json.dumps([(t1 - t0) * 1e3, (t3 - t1) * 1e3]))
"""

PROGRAMS = {
    "cuvil": """
import cuvil
t1 = now()
@cuvil.jit(shape_hint={"x": (1, 128), "w": (128, 64)})
def matmul_inference(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.maximum(x @ w, 0.0)
r = matmul_inference(x, w)
""",
    "numpy": """
t1 = now()
r = np.maximum(x @ w, 0.0)
""",
    "numba": """
import numba
t1 = now()
@numba.njit(cache=True)
def f(x, w):
    return np.maximum(x @ w, np.float32(0.0))
r = f(x, w)
""",
    "jax": """
import os, jax, jax.numpy as jnp
jax.config.update("jax_compilation_cache_dir", os.environ["PEER_CACHE"])
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
t1 = now()
@jax.jit
def f(x, w):
    return jnp.maximum(x @ w, 0.0)
r = np.asarray(f(x, w))
""",
    "onnxruntime": """
import os, onnxruntime
t1 = now()
session = onnxruntime.InferenceSession(os.environ["PEER_MODEL"], providers=["CPUExecutionProvider"])
(r,) = session.run(None, {"x": x, "w": w})
""",
}


MLP_PRELUDE = """
import json, time
import numpy as np
rng = np.random.default_rng(0)
def array(*shape):
    return rng.standard_normal(shape).astype(np.float32) * np.float32(0.1)
x = array(32, 128)
layers = (array(128, 256), array(256), array(256, 256), array(256), array(256, 10), array(10),
          array(256), array(256), array(256), array(256))
now = time.perf_counter
t0 = now()
"""

MLP_BODY = """
def mlp(x, w1, b1, w2, b2, w3, b3, g1, h1, g2, h2):
    y = np.maximum(x @ w1 + b1, 0)
    d = y - y.mean(axis=-1, keepdims=True)
    y = d / np.sqrt((d * d).mean(axis=-1, keepdims=True) + np.float32(1e-5)) * g1 + h1
    y = np.maximum(y @ w2 + b2, 0)
    d = y - y.mean(axis=-1, keepdims=True)
    y = d / np.sqrt((d * d).mean(axis=-1, keepdims=True) + np.float32(1e-5)) * g2 + h2
    z = y @ w3 + b3
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
"""

MLP_FINISH = """
t3 = now()
assert np.allclose(r.sum(axis=-1), 1, atol=1e-4)
print(json.dumps([(t1 - t0) * 1e3, (t3 - t1) * 1e3]))
"""

MLP_PROGRAMS = {
    "cuvil": "import cuvil\nt1 = now()\n@cuvil.jit" + MLP_BODY + "r = mlp(x, *layers)\n",
    "numpy": "t1 = now()" + MLP_BODY + "r = mlp(x, *layers)\n",
    "jax": """
import os, jax, jax.numpy as jnp
jax.config.update("jax_compilation_cache_dir", os.environ["PEER_CACHE"])
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
t1 = now()
@jax.jit"""
    + MLP_BODY.replace("np.float32(1e-5)", "1e-5").replace("np.", "jnp.")
    + "r = np.asarray(mlp(x, *layers))\n",
}


def write_model(path: str) -> None:
    """The example as an ONNX file: what the user of ONNX Runtime has exported before."""
    import onnx
    from onnx import TensorProto, helper

    shapes = {"x": (1, 128), "w": (128, 64), "y": (1, 64)}
    value = {n: helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])]
    graph = helper.make_graph(nodes, "example", [value["x"], value["w"]], [value["y"]])
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]), path)


def sample(program: str, environment: dict[str, str]) -> tuple[float, float]:
    """Milliseconds of the import and of the first call, in a fresh process."""
    done = subprocess.run(
        [sys.executable, program], env={**os.environ, **environment}, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(done.stderr)
    imported, called = json.loads(done.stdout.splitlines()[-1])
    return imported, called


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=25, help="processes of each kind (default: 25)")
    parser.add_argument("--program", choices=("example", "mlp"), default="example")
    options = parser.parse_args()
    rounds, mlp = options.rounds, options.program == "mlp"
    sources = MLP_PROGRAMS if mlp else PROGRAMS
    prelude, finish = (MLP_PRELUDE, MLP_FINISH) if mlp else (PRELUDE, FINISH)
    peers = [p for p in sources if p in ("cuvil", "numpy") or importlib.util.find_spec(p)]
    if "onnxruntime" in peers and not importlib.util.find_spec("onnx"):
        peers.remove("onnxruntime")
    imports: dict[str, list[float]] = {p: [] for p in peers}
    times = {(p, kind): [] for p in peers for kind in ("cold", "warm")}
    with tempfile.TemporaryDirectory() as root:
        programs = {}
        for peer in peers:
            programs[peer] = os.path.join(root, f"{peer}_example.py")
            with open(programs[peer], "w") as file:
                file.write(prelude + sources[peer] + finish)
        model = os.path.join(root, "example.onnx")
        if "onnxruntime" in peers:
            write_model(model)
        for k in range(rounds + 1):  # the first round only fills the system's file cache
            for peer in peers:
                cache = os.path.join(root, "cache")
                environment = {
                    "CUVIL_CACHE": "1",
                    "CUVIL_CACHE_DIR": os.path.join(cache, "cuvil"),
                    "NUMBA_CACHE_DIR": os.path.join(cache, "numba"),
                    "PEER_CACHE": os.path.join(cache, "jax"),
                    "PEER_MODEL": model,
                }
                for kind in ("cold", "warm"):
                    imported, called = sample(programs[peer], environment)
                    if k:
                        imports[peer].append(imported)
                        times[peer, kind].append(called)
                shutil.rmtree(cache, ignore_errors=True)
            if sys.stderr.isatty():
                print(f"\rround {k + 1} of {rounds + 1}", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    print(f"the {options.program}, first call in a fresh process, ms; medians of {rounds} processes")
    heads = ["import", "cold", "best 1/4", "warm", "best 1/4", "cuvil/cold", "cuvil/warm"]
    print(" " * 14 + "".join(f"{head:>12}" for head in heads))
    median = statistics.median
    for peer in peers:
        cold, warm = times[peer, "cold"], times[peer, "warm"]
        ratios = [median(times["cuvil", k]) / median(times[peer, k]) for k in ("cold", "warm")]
        cells = [
            median(imports[peer]),
            median(cold),
            statistics.quantiles(cold, n=4)[0],
            median(warm),
            statistics.quantiles(warm, n=4)[0],
        ]
        print(f"{peer:<14}" + "".join(f"{c:>12.2f}" for c in cells) + "".join(f"{r:>12.4f}" for r in ratios))


if __name__ == "__main__":
    main()
