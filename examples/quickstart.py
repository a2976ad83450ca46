"""The example of the project: one decorated NumPy function, compiled to one kernel at its first call."""

import cuvil
import numpy as np


@cuvil.jit(shape_hint={"x": (1, 128), "w": (128, 64)})
def matmul_inference(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.maximum(x @ w, 0.0)


x = np.random.randn(1, 128).astype(np.float32)
w = np.random.randn(128, 64).astype(np.float32)
result = matmul_inference(x, w)


def main() -> None:
    expected = np.maximum(x @ w, 0.0)
    print(f"result: {result.dtype}{list(result.shape)}")
    print(f"largest difference from NumPy: {np.abs(result - expected).max():.2e}")
    print()
    print(cuvil.get_compiled_module(matmul_inference).dump_schedule())


if __name__ == "__main__":
    main()
