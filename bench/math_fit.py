"""Fits the polynomials of native/codegen/math*.cpp and writes native/codegen/math_coeffs.h.

    python -m pip install mpmath && python bench/math_fit.py > native/codegen/math_coeffs.h

Every fit is a weighted minimax polynomial found with Remez' exchange on a dense Chebyshev grid.
The weight turns the error of the polynomial into the relative error of the function it serves, so
the printed `2^-e` is the approximation error of the result, before any rounding. The leading
coefficients are rounded to the target type one at a time and the others fitted again around them;
that keeps the rounding of a coefficient from costing more than it must.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mpmath as mp
from mpmath import mpf

mp.mp.prec = 320

Function = Callable[[mpf], mpf]


@dataclass(frozen=True)
class Fit:
    """One polynomial: target(t) ~ sum c[k] t**k on [lo, hi], error measured as weight(t) * error."""

    name: str
    note: str
    target: Function
    weight: Function
    lo: mpf
    hi: mpf
    # log2 of the error to reach for each precision, or None where that precision has no use for it.
    f32: float | None
    f64: float | None
    wide: float | None
    # How many leading coefficients are rounded one at a time (float rounds them all).
    careful: int = 3


def round_to(value: mpf, bits: int) -> mpf:
    """`value` to the nearest number with `bits` bits of significand."""
    if value == 0:
        return value
    mantissa, exponent = mp.frexp(value)
    return mp.ldexp(mp.nint(mp.ldexp(mantissa, bits)), exponent - bits)


def horner(coefficients: Sequence[mpf], t: mpf) -> mpf:
    total = mpf(0)
    for c in reversed(coefficients):
        total = total * t + c
    return total


class Grid:
    """Target and weight sampled once at Chebyshev points; each exchange only re-evaluates the fit."""

    def __init__(self, fit: Fit, degree: int) -> None:
        count = 24 * (degree + 2)
        mid, half = (fit.lo + fit.hi) / 2, (fit.hi - fit.lo) / 2
        self.t = [mid - half * mp.cos(mp.pi * (i + mpf(1) / 2) / count) for i in range(count)]
        # Guard against hitting a removable singularity exactly.
        self.t = [t if t != 0 else half / 10**9 for t in self.t]
        self.y = [fit.target(t) for t in self.t]
        self.w = [fit.weight(t) for t in self.t]


def remez(grid: Grid, degree: int, fixed: Sequence[mpf]) -> tuple[list[mpf], mpf]:
    """Minimax fit with the first len(fixed) coefficients given; returns all and the largest error."""
    first = len(fixed)
    free = degree + 1 - first
    rest = [y - horner(fixed, t) for t, y in zip(grid.t, grid.y, strict=True)]
    powers = [t**first for t in grid.t]
    if free == 0:
        return list(fixed), max(abs(w * r) for w, r in zip(grid.w, rest, strict=True))
    size = len(grid.t)
    points = [round((size - 1) * (1 - mp.cos(mp.pi * i / free)) / 2) for i in range(free + 1)]
    best: tuple[list[mpf], mpf] | None = None
    for _ in range(40):
        rows = mp.matrix(free + 1, free + 1)
        right = mp.matrix(free + 1, 1)
        for row, index in enumerate(points):
            value = powers[index]
            for k in range(free):
                rows[row, k] = value
                value *= grid.t[index]
            rows[row, free] = (-1) ** row / grid.w[index]
            right[row] = rest[index]
        solution = mp.lu_solve(rows, right)
        c = [solution[k] for k in range(free)]
        errors = [w * (horner(c, t) * p - r) for t, w, p, r in zip(grid.t, grid.w, powers, rest, strict=True)]
        largest = max(abs(e) for e in errors)
        if best is None or largest < best[1]:
            best = ([*fixed, *c], largest)
        # The extremum of each run of equal sign, then the free + 1 that matter.
        extrema: list[int] = []
        for i, e in enumerate(errors):
            if extrema and (errors[extrema[-1]] > 0) == (e > 0):
                if abs(e) > abs(errors[extrema[-1]]):
                    extrema[-1] = i
            else:
                extrema.append(i)
        while len(extrema) > free + 1:
            extrema.pop(0 if abs(errors[extrema[0]]) < abs(errors[extrema[-1]]) else -1)
        if len(extrema) < free + 1 or largest < abs(solution[free]) * mpf("1.001"):
            break
        points = extrema
    assert best is not None
    return best


def fit_rounded(fit: Fit, bits: int, goal: float, careful: int) -> tuple[list[mpf], float]:
    """The lowest degree that reaches 2**goal, its coefficients representable in `bits` bits."""
    for degree in range(1, 40):
        grid = Grid(fit, degree)
        _, error = remez(grid, degree, [])
        if mp.log(error, 2) > goal:
            continue
        fixed: list[mpf] = []
        for _ in range(min(careful, degree + 1)):
            c, _ = remez(grid, degree, fixed)
            fixed.append(round_to(c[len(fixed)], bits))
        c, _ = remez(grid, degree, fixed)
        c = [round_to(v, bits) for v in c]
        error = max(abs(w * (horner(c, t) - y)) for t, w, y in zip(grid.t, grid.w, grid.y, strict=True))
        return c, float(mp.log(error, 2))
    raise SystemExit(f"{fit.name}: no degree below 40 reaches 2^{goal}")


def hex_literal(value: mpf) -> str:
    return float(value).hex() if value != 0 else "0.0"


# --- the functions -------------------------------------------------------------------------------

LN2 = mp.log(2)
HALF_LN2 = LN2 / 2 * mpf("1.0001")  # the reduction rounds its quotient, hence the slack
QUARTER_PI = mp.pi / 4 * mpf("1.0001")
TAN_EIGHTH = mp.sqrt(2) - 1
LOG_S = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)  # s = f / (2 + f) at f = sqrt(2) - 1


def erfcx(a: mpf) -> mpf:
    return mp.exp(a * a) * mp.erfc(a)


def log_r(z: mpf) -> mpf:
    """(log((1 + s) / (1 - s)) / s - 2) / s^2 with z = s^2."""
    s = mp.sqrt(z)
    return (mp.log((1 + s) / (1 - s)) / s - 2) / z


def t_to_a(t: mpf, k: mpf) -> mpf:
    """Inverse of t = (a - k) / (a + k)."""
    return k * (1 + t) / (1 - t)


ERFC_K, ERFC_HI = mpf("3.75"), mpf("27.5")
ERFC_LO = mpf("0.8")


def scaled_erfcx(t: mpf) -> mpf:
    a = t_to_a(t, ERFC_K)
    return (1 + 2 * a) * erfcx(a)


# Taken out of g so that no coefficient is large enough for its own rounding to show.
ERFC_HEAD = mpf("1.2265625")


def t_of(a: mpf) -> mpf:
    return (a - ERFC_K) / (a + ERFC_K)


ERF_SPLIT = mpf("0.92")

FITS = [
    Fit(
        "exp",
        "(e^r - 1 - r) / r^2, |r| <= ln2/2",
        lambda r: (mp.exp(r) - 1 - r) / r**2,
        lambda r: r**2 / mp.exp(r),
        -HALF_LN2,
        HALF_LN2,
        -27.5,
        -58,
        -36,
    ),
    Fit(
        "exp2",
        "(2^r - 1 - r ln2) / r^2, |r| <= 1/2",
        lambda r: (mp.power(2, r) - 1 - r * LN2) / r**2,
        lambda r: r**2 / mp.power(2, r),
        mpf("-0.50001"),
        mpf("0.50001"),
        -27.5,
        -58,
        -36,
    ),
    Fit(
        "sinh",
        "(sinh r - r) / r^3 in z = r^2, |r| <= ln2/2",
        lambda z: (mp.sinh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
        lambda z: z * mp.sqrt(z) / mp.sinh(mp.sqrt(z)),
        mpf(0),
        HALF_LN2**2,
        -29,
        -59,
        -36,
    ),
    Fit(
        "cosh",
        "(cosh r - 1) / r^2 in z = r^2, |r| <= ln2/2",
        lambda z: (mp.cosh(mp.sqrt(z)) - 1) / z,
        lambda z: z / mp.cosh(mp.sqrt(z)),
        mpf(0),
        HALF_LN2**2,
        -29,
        -59,
        -36,
    ),
    Fit(
        "tanh",
        "(tanh x - x) / x^3 in z = x^2, |x| <= 0.8 (float only)",
        lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
        lambda z: z * mp.sqrt(z) / mp.tanh(mp.sqrt(z)),
        mpf(0),
        mpf("0.64"),
        -27.5,
        None,
        None,
    ),
    Fit(
        "log",
        "(log((1+s)/(1-s)) / s - 2) / s^2 in z = s^2",
        log_r,
        lambda z: z / 2,
        mpf(0),
        LOG_S**2 * mpf("1.0001"),
        -29,
        -60,
        -36,
    ),
    Fit(
        "log_tail",
        "the same with its leading 2/3 taken out, for double-double logarithms",
        lambda z: (log_r(z) - mpf(2) / 3) / z,
        lambda z: z * z / 2,
        mpf(0),
        LOG_S**2 * mpf("1.0001"),
        -36,
        -68,
        -36,
    ),
    Fit(
        "log_poly",
        "(log(1+f) - f + f^2/2) / f^3, sqrt(1/2) <= 1+f <= sqrt(2)",
        lambda f: (mp.log1p(f) - f + f * f / 2) / f**3,
        lambda f: f**3 / mp.log1p(f),
        1 / mp.sqrt(2) - 1 - mpf("1e-4"),
        mp.sqrt(2) - 1 + mpf("1e-4"),
        -26.5,
        None,
        None,
    ),
    Fit(
        "sin",
        "(sin r - r) / r^3 in z = r^2, |r| <= pi/4",
        lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
        lambda z: z * mp.sqrt(z) / mp.sin(mp.sqrt(z)),
        mpf(0),
        QUARTER_PI**2,
        -28,
        -58,
        -36,
    ),
    Fit(
        "cos",
        "(cos r - 1 + r^2/2) / r^4 in z = r^2, |r| <= pi/4",
        lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2,
        lambda z: z**2 / mp.cos(mp.sqrt(z)),
        mpf(0),
        QUARTER_PI**2,
        -28,
        -58,
        -36,
    ),
    Fit(
        "asin",
        "(asin x - x) / x^3 in z = x^2, |x| <= 1/2",
        lambda z: (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
        lambda z: z * mp.sqrt(z) / mp.asin(mp.sqrt(z)),
        mpf(0),
        mpf("0.25"),
        -28,
        -58,
        -36,
    ),
    Fit(
        "atan",
        "(atan t - t) / t^3 in z = t^2, |t| <= tan(pi/8)",
        lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
        lambda z: z * mp.sqrt(z) / mp.atan(mp.sqrt(z)),
        mpf(0),
        TAN_EIGHTH**2 * mpf("1.001"),
        -28,
        -58,
        -36,
    ),
    Fit(
        "erf",
        "erf(x)/x - 1 in z = x^2, |x| <= 0.92",
        lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
        lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)),
        mpf(0),
        ERF_SPLIT**2,
        -28,
        -58,
        -36,
        8,
    ),
    Fit(
        "erf_log",
        "-log(erfc a)/a - 1, 0.92 <= a <= 4, error seen by erf (float only)",
        lambda a: -mp.log(mp.erfc(a)) / a - 1,
        lambda a: mp.erfc(a) * a / mp.erf(a),
        ERF_SPLIT,
        mpf(4),
        -27,
        None,
        None,
    ),
    Fit(
        "erfc",
        "(1 + 2a) e^(a^2) erfc(a) - 1.2265625 in t = (a - 3.75) / (a + 3.75), 0.8 <= a <= 27.5",
        lambda t: scaled_erfcx(t) - ERFC_HEAD,
        lambda t: 1 / scaled_erfcx(t),
        t_of(ERFC_LO),
        t_of(ERFC_HI),
        None,
        -57,
        -36,
        0,
    ),
    Fit(
        "erf_far",
        "the same for erf alone: 0.9 <= a <= 6, error seen by erf",
        lambda t: scaled_erfcx(t) - ERFC_HEAD,
        lambda t: mp.erfc(t_to_a(t, ERFC_K)) / mp.erf(t_to_a(t, ERFC_K)) / scaled_erfcx(t),
        t_of(mpf("0.9")),
        t_of(mpf(6)),
        None,
        -58,
        -36,
        0,
    ),
    Fit(
        "rcbrt",
        "m^(-1/3), 1 <= m <= 2, a start for one quartic step",
        lambda m: mp.power(m, mpf(-1) / 3),
        lambda m: mp.power(m, mpf(1) / 3),
        mpf(1),
        mpf(2),
        -12,
        -14,
        -12,
    ),
]

BITS = {"f32": 24, "f64": 53, "wide": 53}


def main(names: Sequence[str]) -> None:
    print("// Generated by bench/math_fit.py: minimax polynomials, constant term first. Do not edit.")
    print("// The note gives the relative approximation error seen by the function.")
    print("#pragma once\n")
    print('#include "math_builder.h"\n')
    print("// clang-format off")
    print("namespace cuvil::codegen::coeffs {\n")
    for fit in FITS:
        if names and fit.name not in names:
            continue
        print(f"// {fit.note}")
        spans = []
        for kind, bits in BITS.items():
            goal = getattr(fit, kind)
            if goal is None:
                spans.append("{}")
                continue
            careful = 40 if kind == "f32" else fit.careful
            c, error = fit_rounded(fit, bits, goal, careful)
            print(f"inline constexpr double {fit.name}_{kind}[] = {{  // 2^{error:.1f}")
            text = [hex_literal(v) for v in c]
            for i in range(0, len(text), 4):
                print("    " + ", ".join(text[i : i + 4]) + ",")
            print("};")
            spans.append(f"{fit.name}_{kind}")
            print(f"{fit.name} {kind}: degree {len(c) - 1}, 2^{error:.1f}", file=sys.stderr)
        print(f"inline constexpr Poly {fit.name}{{{', '.join(spans)}}};\n")
    print("}  // namespace cuvil::codegen::coeffs")


if __name__ == "__main__":
    main(sys.argv[1:])
