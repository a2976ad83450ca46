"""Writes expectations.txt: calls of NumPy functions with what NumPy 2 gives, for expectations_test.cpp.

    python tests/native/ops/make_expectations.py

Run it with NumPy 2 (and SciPy) after adding a row; the file is committed, so that the native tests need
no Python. A line is `row args... -> result`:

    f32[2,3]=h,h,..   an array, elements as hex bits       F:f32[2,3]=..  the same in Fortran order
    s:f32=h           a NumPy scalar                       i:5 f:h b:1    a static Python number
    wi:5 wf:h         a run-time Python number             n              None
    d:f32             a dtype                              e              ...
    (a;b)             a list or tuple                      [a:b:c]        a slice
    k                 the argument is not given            t:text         a string
    $3                the array that the line `$3 f32[2]=h,h` defines
"""

import itertools
import operator
import pathlib
import warnings

import numpy as np
import scipy.special

warnings.simplefilter("ignore")
np.seterr(all="ignore")

CIR = {
    "bool": "bool",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
}
NP = {v: k for k, v in CIR.items()}
INTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
FLOATS = ["f16", "f32", "f64"]
ALL = ["bool", *INTS, *FLOATS]
lines = []


class Weak:
    """A Python number that is known at run time only."""

    def __init__(self, value):
        self.value = value


class Missing:
    pass


MISSING = Missing()


def hexes(a):
    a = np.ascontiguousarray(a)
    return ",".join(format(int(x), "x") for x in a.reshape(-1).view(f"u{a.itemsize}"))


def spell(a):
    if isinstance(a, Missing):
        return "k"
    if a is None:
        return "n"
    if a is Ellipsis:
        return "e"
    if isinstance(a, Weak):
        return f"wi:{a.value:d}" if isinstance(a.value, int) else "wf:" + hexes(np.float64(a.value))
    if isinstance(a, bool):
        return f"b:{a:d}"
    if isinstance(a, np.generic):  # before float: np.float64 is one
        return f"s:{CIR[a.dtype.name]}={hexes(a)}"
    if isinstance(a, int):
        return f"i:{a:d}"
    if isinstance(a, float):
        return "f:" + hexes(np.float64(a))
    if isinstance(a, str):
        return "t:" + a
    if isinstance(a, (np.dtype, type)):
        return "d:" + CIR[np.dtype(a).name]
    if isinstance(a, slice):
        return "[" + ":".join(spell(p) for p in (a.start, a.stop, a.step)) + "]"
    if isinstance(a, (tuple, list)):
        return "(" + ";".join(spell(x) for x in a) + ")"
    t = CIR[a.dtype.name]
    order = "F:" if a.ndim > 1 and a.flags.f_contiguous and not a.flags.c_contiguous else ""
    return intern(f"{order}{t}[{','.join(map(str, a.shape))}]={hexes(a)}")


names_of = {}


def intern(text):
    if len(text) < 80:
        return text
    if text not in names_of:
        names_of[text] = f"${len(names_of)}"
        lines.append(f"{names_of[text]} {text}")
    return names_of[text]


def spell_result(r):
    if isinstance(r, (tuple, list)):
        return "(" + ";".join(spell_result(x) for x in r) + ")"
    if isinstance(r, np.ndarray) and r.ndim > 1:
        # The memory order, slow to fast, ignoring axes of one element.
        wide = [k for k in range(r.ndim) if r.shape[k] != 1]
        order = sorted(wide, key=lambda k: -abs(r.strides[k]))
        mark = "" if order == wide or r.size == 0 or 0 in r.strides else "@" + "".join(map(str, order))
        return f"{CIR[r.dtype.name]}[{','.join(map(str, r.shape))}]{mark}={hexes(r)}"
    if isinstance(r, np.ndarray):
        return f"{CIR[r.dtype.name]}[{','.join(map(str, r.shape))}]={hexes(r)}"
    return spell(r)


def find(row):
    space, name = row.rsplit(".", 1)
    if space == "operator":
        return getattr(operator, name)
    if space == "builtins":
        return __builtins__.__dict__[name] if hasattr(__builtins__, "__dict__") else __builtins__[name]
    if space == "math":
        import math

        return getattr(math, name)
    if space == "scipy.special":
        return getattr(scipy.special, name)
    if space == "numpy.linalg":
        return getattr(np.linalg, name)
    return getattr(np, name)


def strip(a):
    if isinstance(a, Weak):
        return a.value
    if isinstance(a, list):
        return [strip(x) for x in a]
    if isinstance(a, tuple):
        return tuple(strip(x) for x in a)
    return a


def call(row, *args, names=None, **keywords):
    """Arguments in the order of the row's parameters; `names` for those passed by keyword here."""
    real = [strip(a) for a in args]
    try:
        if row.startswith("ndarray."):
            method = getattr(real[0], row[8:])
            if not callable(method):
                r = method
            elif names:
                given = {n: v for n, v in zip(names, real[1:], strict=False) if v is not MISSING}
                r = method(**given)
            else:
                r = method(*real[1:])
        elif names:
            k = len(real) - len(names)
            given = {n: v for n, v in zip(names, real[k:], strict=False) if v is not MISSING}
            r = find(row)(*real[:k], **given)
        else:
            r = find(row)(*real)
        out = spell_result(r)
    except Exception as e:
        text = str(e).strip().replace("\n", " ")
        kind = type(e)
        cls = "TypeError" if issubclass(kind, TypeError) else kind.__name__
        out = f"!{cls}: {text}"
    line = " ".join([row, *map(spell, args)]) + " -> " + out
    lines.append(line)


def values(t, few=False):
    n = np.dtype(NP[t])
    if t == "bool":
        return np.array([False, True])
    if t in INTS:
        info = np.iinfo(n)
        v = [0, 1, 2, 3, 7, info.max, info.min, info.max - 1]
        if info.min < 0:
            v += [-1, -2, -7]
        if few:
            v = [0, 1, 7, info.max, info.min] + ([-1, -3] if info.min < 0 else [2])
        return np.array(v, n)
    inf, nan = np.inf, np.nan
    info = np.finfo(n)
    v = [0.0, -0.0, 1.0, -1.0, 2.5, -0.5, inf, -inf, nan]
    if not few:
        v += [float(info.max), float(info.tiny), float(info.smallest_subnormal), -3.0, 7.25]
    return np.array(v, n)


def pairs(t, few=False):
    v = values(t, few)
    a, b = np.meshgrid(v, v)
    return a.ravel(), b.ravel()


# ---- bodies and promotion ---------------------------------------------------------------------------
ARITH = ["add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod"]
CHOOSE = ["maximum", "minimum", "fmax", "fmin"]
COMPARE = ["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"]
LOGIC = ["logical_and", "logical_or", "logical_xor"]
BITS = ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"]
FLOAT2 = ["copysign", "heaviside", "nextafter"]
UNARY = [
    "negative",
    "positive",
    "absolute",
    "fabs",
    "sign",
    "reciprocal",
    "square",
    "sqrt",
    "logical_not",
    "isnan",
    "isinf",
    "isfinite",
    "isposinf",
    "isneginf",
    "signbit",
    "invert",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "fix",
    "degrees",
    "radians",
]
MATH1 = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "arcsinh",
    "arccosh",
    "arctanh",
    "cbrt",
]
MATH2 = ["arctan2", "hypot", "logaddexp", "logaddexp2"]

for name in ARITH + COMPARE:
    for t in ("bool", "i8", "u8", "i32", "i64", "u64", *FLOATS):
        a, b = pairs(t, few=t not in ("i8", "f32"))
        call(f"numpy.{name}", a, b)
for name in CHOOSE:
    for t in ("bool", "i8", "u64"):
        call(f"numpy.{name}", *pairs(t, few=t != "i8"))
    for t in FLOATS:  # zeros of both signs aside: NumPy's own loops differ
        a, b = pairs(t)
        keep = ~((a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b)))
        call(f"numpy.{name}", a[keep], b[keep])
for name in LOGIC:
    for t in ("bool", "i8", "f16", "f64"):
        call(f"numpy.{name}", *pairs(t, few=True))
for name in BITS:
    for t in ("bool", "i8", "u8", "i64", "u32"):
        call(f"numpy.{name}", *pairs(t, few=t != "i8"))
for name in FLOAT2:
    for t in FLOATS:
        call(f"numpy.{name}", *pairs(t))
for name in UNARY + MATH1:
    for t in ALL:
        call(f"numpy.{name}", values(t, few=name in MATH1 and t not in FLOATS))
for name in MATH2:
    for t in FLOATS:
        call(f"numpy.{name}", *pairs(t, few=True))
for name in ("erf", "erfc", "expit"):
    for t in ("bool", "i16", *FLOATS):
        call(f"scipy.special.{name}", values(t, few=True))
for t in FLOATS:
    call("numpy.sinc", np.array([0, -0.5, 1, 2.25], NP[t]))
for t in ("i8", "u8", "i32", "i64", "u64"):
    v = values(t, few=True)
    a, b = np.meshgrid(v, np.abs(v))
    call("numpy.power", a.ravel(), b.ravel())
    call("operator.pow", v, 2)
    call("operator.pow", v, 3)
    call("operator.pow", v, 0)
    call("operator.pow", v, -1)
    call("operator.pow", v, Weak(5))
    call("operator.pow", v, 0.5)
call("operator.pow", np.array([1, 2], "i8"), np.array([2, -1], "i8"))
for t in FLOATS:
    a, b = pairs(t, few=True)
    call("numpy.power", a, b)
    for e in (2, 0.5, -1, 1, 0, 3, 2.0, -2, 1.5):
        call("operator.pow", values(t), e)
    for e in (2.0, 0.5, -1.0, 1.0, 0.0, 3.0):
        call("operator.pow", values(t, few=True), Weak(e))
call("numpy.float_power", np.array([1, 2, 3], "i8"), np.array([2, -1, 0.5], "f4"))

# Promotion: every pair of types, and weak numbers.
for x, y in itertools.product(ALL, ALL):
    a, b = np.ones(1, NP[x]), np.array([2], NP[y]) if y != "bool" else np.ones(1, bool)
    for name in ("add", "divide", "power", "arctan2", "less", "bitwise_and", "left_shift", "maximum"):
        call(f"numpy.{name}", a, b)
for t in ALL:
    a = np.ones(2, NP[t])
    for w in (2, -1, 300, 2.5, True, 2**40):
        for op in ("operator.add", "operator.truediv", "operator.lt", "operator.floordiv", "numpy.maximum"):
            call(op, a, w)
    for w in (Weak(2), Weak(2.5), Weak(300), Weak(-1)):
        for op in ("operator.mul", "operator.eq", "operator.sub", "numpy.hypot"):
            call(op, w, a)
    call("operator.add", a, np.float64(1))
    call("operator.add", a, np.int8(1))
    call("operator.add", np.ones((), NP[t]), 1)
for a, b in ((-1, 2**63), (-1, 0), (5, 5), (2**62, 2**63 + 1)):
    for name in COMPARE:
        call(f"numpy.{name}", np.array([a]), np.array([b], "u8"))
        call(f"numpy.{name}", np.array([b], "u8"), np.array([a]))
for w in (-1, 0, 255, 256, 2**40):
    for op in ("lt", "le", "gt", "ge", "eq", "ne"):
        call(f"operator.{op}", np.array([0, 255], "u1"), w)
        call(f"operator.{op}", Weak(w), np.array([0, 255], "u1"))
        call(f"operator.{op}", np.array([0, 2**64 - 1], "u8"), Weak(w))
for t in ("f4", "i4"):
    for d in ("float32", "float64", "int64", "float16"):
        call(
            "numpy.add",
            np.ones(2, t),
            np.ones(2, "i2"),
            MISSING,
            MISSING,
            MISSING,
            MISSING,
            np.dtype(d),
            names=["out", "where", "casting", "order", "dtype"],
        )
call(
    "numpy.sqrt",
    np.ones(2, "f4"),
    MISSING,
    MISSING,
    MISSING,
    MISSING,
    np.dtype("int64"),
    names=["out", "where", "casting", "order", "dtype"],
)

# Python numbers among themselves
for op in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "eq"):
    call(f"operator.{op}", Weak(2.5), Weak(-3.0))
    call(f"operator.{op}", Weak(-7.5), Weak(2.0))
    call(f"operator.{op}", Weak(-7), 2)
    call(f"operator.{op}", 9, Weak(4))
    call(f"operator.{op}", Weak(1.5), 0)
for f in ("sqrt", "exp", "log", "sin", "tanh", "atanh", "acosh", "fabs", "erf"):
    for x in (0.5, -2.0, 2.0, 1000.0):
        call(f"math.{f}", Weak(x))
for op in ("neg", "pos", "invert", "abs"):
    call(f"operator.{op}", Weak(-3))
    for t in ("bool", "i8", "u8", "f32"):
        call(f"operator.{op}", values(t))
call("builtins.divmod", np.array([7.0, -7.0]), 2)
call("builtins.divmod", Weak(7), Weak(-2))
call("builtins.abs", np.float32(-2))

# where, clip, cast, nan_to_num, round
for x, y in itertools.product(("bool", "i8", "u8", "i64", "u64", "f16", "f32"), repeat=2):
    call("numpy.where", np.array([True, False]), np.ones(2, NP[x]), np.zeros(2, NP[y]))
for w in (2, 300, 2.5, True):
    for t in ("bool", "i8", "f32"):
        call("numpy.where", np.array([1.5, 0]), np.ones(2, NP[t]), w)
call("numpy.where", True, 1, 2)
call("numpy.where", np.array([np.nan, 0]), 1, 2.0)
call("numpy.where", np.array([[True], [False]]), np.arange(3), np.arange(3.0))
for t in ("i8", "u8", "f16", "f32", "f64", "bool"):
    v = values(t)
    for lo, hi in ((0, 2), (-1, 300), (None, 1), (1, None), (0, 2.5), (2, 1), (None, None)):
        call("numpy.clip", v, lo, hi)
        call("ndarray.clip", v, lo, hi)
call("numpy.clip", np.array([1.0, np.nan, 3]), np.nan, 2)
call("numpy.clip", np.float32(3), 0, 1)
for x, y in itertools.product(ALL, ALL):
    v = values(x)
    if x in FLOATS:
        v = v[np.isfinite(v.astype("f8")) & (np.abs(v.astype("f8")) < 100)]
        if y.startswith("u"):
            v = v[v >= 0]
    call("ndarray.astype", v, np.dtype(NP[y]))
wide = np.array([65504, 65519, 65520, 1e5, 2**-24, 2**-25, 3 * 2**-26, 2049, 2051, 1e-40, 0.1, np.nan], "f8")
call("ndarray.astype", wide, np.dtype("f2"))
call("ndarray.astype", wide.astype("f4"), np.dtype("f2"))
call("ndarray.astype", np.array([2**24 + 1, 2**53 + 1, -(2**63), 65519, 65520]), np.dtype("f4"))
call("ndarray.astype", np.array([2**24 + 1, 2**53 + 1, 2**63, 65519]), np.dtype("f2"))
call("ndarray.astype", np.array([2**64 - 1, 2**63 + 1025], "u8"), np.dtype("f8"))
call("ndarray.astype", np.array([2**64 - 1, 2**40 + 2**16 + 1], "u8"), np.dtype("f4"))
for t in [*FLOATS, "i32"]:
    call("numpy.nan_to_num", values(t))
call("numpy.nan_to_num", np.array([np.nan, np.inf, -np.inf]), True, 1.0, 2.0, -3)
for t in ("f32", "f64", "f16", "i32", "bool", "u8"):
    for d in (0, 1, 2, -1):
        if t in FLOATS:
            v = np.array([0.5, 1.5, 2.55, -0.04, 15, 25, -1.25], NP[t])
        else:
            v = np.array([15, 25, 3]).astype(NP[t])
        call("numpy.round", v, d)
call("numpy.round", np.float32(2.5), 0)
call("ndarray.round", np.array(2.5), 0)
call("numpy.conjugate", np.array([True]))

# ---- reductions -------------------------------------------------------------------------------------
cube = np.arange(24).reshape(2, 3, 4)
AXES = [MISSING, None, 0, 1, -1, (0, 2), (), (0, 1, 2), 3, (0, 0)]
for name in ("sum", "prod", "min", "max", "any", "all", "mean"):
    for axis in AXES:
        call(f"numpy.{name}", cube, axis, names=["axis"])
        call(f"ndarray.{name}", cube.astype("f4") / 8, axis, names=["axis"])
    for t in ALL:
        v = np.ones((2, 3), NP[t])
        call(f"numpy.{name}", v)
        if name in ("min", "any"):
            call(f"numpy.{name}", v, 0, MISSING, True, names=["axis", "out", "keepdims"])
    call(f"numpy.{name}", np.zeros(0, "f4"))
    call(f"numpy.{name}", np.zeros((0, 3), "f4"), 1)
    call(f"numpy.{name}", np.zeros((0, 3), "f4"), 0)
    call(f"numpy.{name}", np.array([1.0, np.nan, -2]))
    call(f"numpy.{name}", np.float32(3))
    call(f"numpy.{name}", np.asfortranarray(cube.astype("f4")), 2)
for name in ("sum", "prod", "mean", "var", "std"):
    for d in ("float32", "float64", "int64", "float16"):
        if name in ("var", "std") and d == "int64":
            continue
        call(f"numpy.{name}", np.array([[1, 2], [3, 4]], "i2"), 0, np.dtype(d), names=["axis", "dtype"])
for name in ("var", "std"):
    for axis in AXES[:6]:
        call(
            f"numpy.{name}",
            cube.astype("f8"),
            axis,
            MISSING,
            MISSING,
            0,
            names=["axis", "dtype", "out", "ddof"],
        )
        call(
            f"numpy.{name}",
            cube.astype("f8"),
            axis,
            MISSING,
            MISSING,
            1,
            True,
            names=["axis", "dtype", "out", "ddof", "keepdims"],
        )
    for t in ALL:
        call(f"numpy.{name}", np.array([1, 0, 1], NP[t]))
    call(
        f"numpy.{name}", np.array([1.5]), MISSING, MISSING, MISSING, 1, names=["axis", "dtype", "out", "ddof"]
    )
for name in ("argmax", "argmin"):
    for axis in (MISSING, None, 0, 1, -1, 3):
        call(f"numpy.{name}", np.array([[3, 1, 3], [0, 5, 5]]), axis, names=["axis"])
    call(f"numpy.{name}", np.array([1.0, np.nan, 3, np.nan]))
    call(f"numpy.{name}", np.array([True, False]))
    call(f"numpy.{name}", np.zeros(0))
    call(f"numpy.{name}", np.float32(2))
    call(f"numpy.{name}", np.array([[3, 1], [0, 5]]), 0, MISSING, True, names=["axis", "out", "keepdims"])
call("numpy.ptp", cube, 1)
call("numpy.ptp", np.array([True, False]))
call("numpy.count_nonzero", np.array([[0, 1], [2, 0]]), 0)
call("numpy.average", cube, 1)
call("numpy.nansum", np.array([1.0, np.nan]))
call("scipy.special.softmax", np.array([[1.0, 2], [3, -700]]), 1)
call("scipy.special.log_softmax", np.array([[1.0, 2], [3, -700]]), 1)
call("scipy.special.softmax", np.array([1, 2, 3]))
call("numpy.linalg.norm", np.array([[3.0, 4], [6, 8]]))
call("numpy.linalg.norm", np.array([[3.0, 4], [6, -8]]), None, 1)
call("numpy.linalg.norm", np.array([[3, 4], [6, -8]]), 1, 1)
call("numpy.linalg.norm", np.array([3.0, -4]), float("inf"))

# ---- movement ---------------------------------------------------------------------------------------
flat, box = np.arange(6), np.arange(24).reshape(2, 3, 4)
for shape in ((2, 3), (3, 2), (-1,), (-1, 2), (6, 1, 1), (4,), (-1, -1), (-1, 4), (4, -1), (), -1, 6):
    call("numpy.reshape", flat, shape)
call("ndarray.reshape", box, (4, 6))
call("ndarray.reshape", np.zeros((0, 3), "f4"), (0, 5))
for v in (box, np.asfortranarray(box)):
    call("ndarray.T", v)
    call("ndarray.mT", v)
    call("ndarray.ravel", v)
    call("ndarray.flatten", v)
    call("ndarray.copy", v)
    call("numpy.copy", v)
    call("numpy.add", v, 1)
    call("numpy.add", v, box)
    call("numpy.add", v, np.asfortranarray(box))
    call("numpy.zeros_like", v)
    call("ndarray.astype", v, np.dtype("f4"))
    call("numpy.concatenate", [v, v], 1)
    call("numpy.sum", v, 1)
    call("numpy.where", v > 3, v, 0)
call("ndarray.mT", flat)
for axes in (None, (0, 2, 1), (-1, 0, 1), (0, 0, 1), (0, 1), (0, 1, 5)):
    call("numpy.transpose", box, axes)
call("numpy.swapaxes", box, 0, -1)
call("numpy.swapaxes", box, 0, 3)
call("numpy.moveaxis", box, 0, -1)
call("numpy.moveaxis", box, (0, 1), (-1, 0))
call("numpy.moveaxis", box, (0, 0), (1, 2))
call("numpy.moveaxis", box, 0, (1, 2))
for axis in (0, -1, (0, 2), 5, (0, 0)):
    call("numpy.expand_dims", flat, axis)
for axis in (None, 0, 2, (0, 2), 1, 7):
    call("numpy.squeeze", np.ones((1, 3, 1)), axis)
call("numpy.clip", np.ones(1, "i1"), np.ones(1, "u1"), np.ones(1, "f2"))
for shape in ((2, 6), (6,), (2, 4), (1, 2, 6), (), 6):
    call("numpy.broadcast_to", flat, shape)
call("numpy.add", np.zeros((2, 3)), np.zeros((2, 4)))
call("numpy.add", np.zeros((2, 1)), np.zeros((1, 3)))
call("numpy.flip", box)
call("numpy.flip", box, 1)
call("numpy.flip", box, (0, -1))
call("numpy.fliplr", box)
call("numpy.flipud", flat)
call("numpy.fliplr", flat)
INDICES = [
    0,
    -1,
    3,
    -4,
    7,
    slice(None),
    slice(1, None),
    slice(None, -1),
    slice(None, None, 2),
    slice(5, 2),
    slice(None, None, -1),
    slice(-2, None, -1),
    slice(10, None, -3),
    slice(-10, 10),
    slice(3, 1, -1),
    slice(1, 100, 2),
    slice(None, None, 0),
    (0, 1, 2),
    (0, 1, 2, 3),
    (slice(None), 1),
    (Ellipsis, 1),
    (1, Ellipsis),
    (None, 1, Ellipsis, None),
    None,
    Ellipsis,
    (),
    (slice(1), slice(None, None, -1), -1),
    (0, 5),
    (Ellipsis, Ellipsis),
    1.5,
    (1, slice(2, None), None, slice(1, -1)),
    (0, Ellipsis, 0, 1),
]
for i in INDICES:
    call("operator.getitem", box, i)
    if not isinstance(i, tuple) or len(i) <= 1:
        call("operator.getitem", flat, i)
for i in (Weak(1), Weak(-1), Weak(6), Weak(-7), (Weak(0),), slice(Weak(1), Weak(4)), slice(Weak(-2), None)):
    real = slice(strip(i.start), strip(i.stop)) if isinstance(i, slice) else strip(i)
    try:
        out = spell_result(flat[real])
    except IndexError as e:
        out = f"!IndexError: {e}"
    index = (
        ("[" + ":".join(spell(p) for p in (i.start, i.stop, None)) + "]")
        if isinstance(i, slice)
        else spell(i)
    )
    line = f"operator.getitem {spell(flat)} {index} -> {out}"
    lines.append(line)
call("operator.getitem", np.float32(2), 0)
call("operator.getitem", np.array(2.0), ())
call("operator.getitem", np.array(2.0), Ellipsis)
two = np.arange(4).reshape(2, 2)
for axis in (MISSING, 0, 1, -1, None, 2):
    call("numpy.concatenate", [two, two + 10], axis, names=["axis"])
call("numpy.concatenate", [two, np.zeros((2, 3))], 1)
call("numpy.concatenate", [two, np.zeros((2, 3))], 0)
call("numpy.concatenate", [two, flat])
call("numpy.concatenate", [])
call("numpy.concatenate", [np.float32(1)])
call("numpy.concatenate", [two.astype("i1"), two.astype("u1"), two.astype("f2")])
for axis in (0, 1, -1, 3):
    call("numpy.stack", [two, two + 10], axis)
call("numpy.stack", [two, flat])
for name in ("hstack", "vstack", "dstack", "column_stack"):
    call(f"numpy.{name}", [flat, flat + 10])
    call(f"numpy.{name}", [two, two + 10])
call("numpy.split", flat, 3)
call("numpy.split", flat, 4)
call("numpy.split", flat, [1, 4])
call("numpy.split", two, 2, 1)
call("numpy.array_split", flat, 4)
call("numpy.hsplit", box, 3)
call("numpy.vsplit", flat, 2)
for shift, axis in ((1, None), (-2, 0), (7, 0), (0, 0), (Weak(2), 0)):
    call("numpy.roll", flat, shift, axis)
call("numpy.roll", box, 1, 2)
call("numpy.roll", box, 5, None)
call("numpy.repeat", two, 2)
call("numpy.repeat", two, 2, 1)
call("numpy.tile", two, 2)
call("numpy.tile", two, (2, 1, 3))
for name in ("shape", "ndim", "size", "nbytes", "itemsize"):
    call(f"ndarray.{name}", box)

# ---- creation ---------------------------------------------------------------------------------------
for name in ("zeros", "ones"):
    call(f"numpy.{name}", (2, 3))
    call(f"numpy.{name}", 3, np.dtype("i2"))
    call(f"numpy.{name}", ())
call("numpy.zeros", -1)
call("numpy.full", (2,), 7)
call("numpy.full", (2,), 2.5)
call("numpy.full", (2,), 300, np.dtype("u1"))
call("numpy.full", (2, 3), np.arange(3))
call("numpy.full_like", np.zeros(2, "f4"), 3)
call("numpy.ones_like", np.zeros((2, 2), "i1"), np.dtype("f4"))
for a in (
    (5,),
    (2, 7),
    (7, 2),
    (7, 2, -2),
    (0, 10, 3),
    (0.0, 1.0, 0.25),
    (1.0, 0.0, -0.3),
    (5.5,),
    (0, 1, 0),
    (1, 2, 0.1),
    (-3, 3, 1.5),
):
    call("numpy.arange", *a)
call("numpy.arange", 0, 5, 1, np.dtype("f4"))
call("numpy.arange", 0.5, 3.0, 0.3, np.dtype("f4"))
call("numpy.arange", Weak(4))
for a in ((3,), (2, 3), (3, 3, 1), (3, 2, -1)):
    call("numpy.eye", *a)
    call("numpy.tri", *a)
call("numpy.identity", 2, np.dtype("i1"))
for k in (0, 1, -1):
    call("numpy.tril", box, k)
    call("numpy.triu", two, k)
call("numpy.linspace", 0, 1, 5)
call("numpy.linspace", 0, 1, 4, False)
call("numpy.linspace", 2.0, -1.0, 3)
call("numpy.linspace", 0, 1, 1)
call("numpy.linspace", 0, 10, 4, True, False, np.dtype("i4"), names=["endpoint", "retstep", "dtype"])
call("numpy.array", [[1, 2], [3, 4]])
call("numpy.array", [1, 2.5, True])
call("numpy.array", [True, 2])
call("numpy.array", [])
call("numpy.array", [1, 2], np.dtype("f4"))
call("numpy.array", [[1], [2, 3]])
call("numpy.array", 3)
call("numpy.asarray", np.float32(3))
for t in ("uint8", "float32", "float16", "int64"):
    call(f"numpy.{t}", np.array([1.5, 2.5]))
    call(f"numpy.{t}", np.float64(2.5))
    call(f"numpy.{t}", 300)
    call(f"numpy.{t}", Weak(3))
call("builtins.float", np.float32(2.5))
call("builtins.int", np.float32(-2.5))
call("builtins.int", np.float32("nan"))
call("builtins.bool", np.int8(2))
call("ndarray.item", np.array([[3]], "i4"))
call("ndarray.item", np.array([3, 4], "i4"))

# ---- contractions -----------------------------------------------------------------------------------
MATRICES = [
    np.arange(3.0),
    np.arange(6.0).reshape(2, 3),
    np.arange(12.0).reshape(3, 4),
    np.arange(12.0).reshape(2, 2, 3),
    np.arange(24.0).reshape(2, 3, 4),
    np.arange(4.0),
    np.array(2.0),
]
for a, b in itertools.product(MATRICES, MATRICES):
    call("operator.matmul", a, b)
    call("numpy.dot", a, b)
    call("numpy.inner", a, b)
for t in ALL:
    v = np.array([[1, 1], [0, 1]], NP[t])
    call("numpy.matmul", v, v)
call("numpy.matmul", np.full((1, 2), 100, "i1"), np.full((2, 1), 100, "i1"))
call("numpy.matmul", two.astype("f4"), two.astype("i4"))
call("numpy.matmul", two, 2)
call("numpy.outer", flat, two)
call("numpy.vdot", two, two)
call("numpy.vdot", two, flat)
call("numpy.tensordot", box, box, ([0, 2], [0, 2]))
call("numpy.tensordot", box.reshape(2, 12), np.arange(12.0), 1)
call("ndarray.dot", two, two)

path = pathlib.Path(__file__).with_name("expectations.txt")
path.write_text("".join(line + "\n" for line in lines if line))
print(len(lines), "calls,", path.stat().st_size // 1024, "KiB, NumPy", np.__version__)
