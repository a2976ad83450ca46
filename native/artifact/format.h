// The artifact: everything one specialisation needs to run without the compiler.
// Built by compiler/, serialised by writer.cpp, read by the hot side (reader.cpp), checked by both.
//
// File bytes (all little-endian, offsets from the start of the file):
//
//     0  +-----------------------+
//        | FileHeader (128 B)    |  magic, format, sizes, checksum, build id
//   128  +-----------------------+
//        | metadata              |  the tables below, in declaration order (see writer.cpp)
//        +-----------------------+  <- 64-byte aligned
//        | blob: text, constants |  position independent; entry at blob + entry_offset
//        +-----------------------+
//        | device image          |  cubin; empty on CPU
//        +-----------------------+
//
// Metadata is a sequence of length-prefixed tables; a reader rejects a file whose tables do not
// fit, whose indices are out of range, or whose checksum differs (Result, never a crash).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "support/dtype.h"
#include "support/error.h"

namespace cuvil::artifact {

inline constexpr uint32_t kFormatVersion = 3;
inline constexpr size_t kMaxRank = 16;
inline constexpr uint64_t kKeySeed = 0x6375'7669'6c2d'6b65;       // key hashes
inline constexpr uint64_t kChecksumSeed = 0x6375'7669'6c2d'636b;  // file checksums: another seed
inline constexpr size_t kBlobAlignment = 64;

// ---- Constants of Python, as they occur in guards, static arguments and results -------------
struct Const {
  enum class Kind : uint8_t {
    kNone,
    kEllipsis,
    kNotImplemented,
    kBool,
    kInt,      // integer (int64)
    kBigInt,   // text: hexadecimal digits, "-0x1f"
    kFloat,    // real (bits compare: -0.0 is not 0.0, NaN equals NaN)
    kComplex,  // real, imag
    kStr,
    kBytes,  // text
    kTuple,
    kFrozenSet,    // items
    kSlice,        // items: start, stop, step
    kRange,        // items: start, stop, step
    kDType,        // text: NumPy's dtype.str, e.g. "<f4"
    kNumpyScalar,  // text: dtype.str, then raw bytes
    kQualified,    // text: "module:qualname", an importable object
  };
  Kind kind = Kind::kNone;
  int64_t integer = 0;
  double real = 0, imag = 0;
  std::string text;
  std::vector<Const> items;
  bool operator==(const Const&) const;  // floats by bits
};

// ---- Symbols and expressions over them -------------------------------------------------------
// A symbol is an int64 in CuvilCall::dims. The caller binds the ones with a source of its own
// (kShape, kStride, kScalar); generated code binds the others.
struct Symbol {
  enum class Kind : uint8_t { kShape, kStride, kScalar, kInternal };
  Kind kind = Kind::kInternal;
  uint32_t array = 0;  // kShape, kStride: array slot; kScalar: scalar slot
  uint32_t axis = 0;
};

// Postfix: push constants and symbols, apply operators to the two topmost.
struct ExprNode {
  enum class Op : uint8_t { kConst, kSymbol, kAdd, kMul, kFloorDiv, kMod, kMin, kMax };
  Op op = Op::kConst;
  int64_t imm = 0;  // kConst: value; kSymbol: index
};
using Expr = std::vector<ExprNode>;
// Value of an expression; symbols[i] for symbol i. Division by zero gives 0 (never traps).
int64_t evaluate(const Expr& e, std::span<const int64_t> symbols);

// A condition on caller-bound symbols that this specialisation was made under.
struct Predicate {
  enum class Op : uint8_t { kEq, kNe, kLt, kLe };
  Op op = Op::kEq;
  Expr lhs, rhs;
};

// ---- Arguments -------------------------------------------------------------------------------
// Stride class of an axis. An axis of size 1 counts as kZero.
enum class StrideClass : uint8_t { kZero = 0, kUnit = 1, kOther = 2 };
enum class Layout : uint8_t { kC, kF, kStrided };  // kC also for everything 0-d, 1-element or empty

// What is fixed about an array at compile time, besides its dims.
struct ArraySpec {
  DType dtype = DType::kF32;
  uint8_t rank = 0;
  Layout layout = Layout::kC;
  bool aligned = true;  // data and strides are multiples of the item size
  bool writeable = true;
  bool numpy_scalar = false;  // a np.generic, copied into a 0-d buffer by the caller
  std::array<StrideClass, kMaxRank> stride_class{};  // kStrided only
  std::array<uint8_t, kMaxRank>
      order{};  // kStrided only: axes from slow to fast by |stride|, stable
  bool operator==(const ArraySpec&) const = default;
};

struct ArgSpec {
  enum class Kind : uint8_t {
    kArray,   // run-time array in the next array slot
    kInt,     // run-time Python int (fits int64), next scalar slot
    kFloat,   // run-time Python float, next scalar slot
    kStatic,  // equals `value`
    kObject,  // anything else: only what the guards say about it is known
  };
  Kind kind = Kind::kObject;
  ArraySpec array;
  std::vector<Expr> shape;  // kArray: one per axis; a constant or a symbol
  Const value;              // kStatic
};

// How the bound argument vector was formed: positional parameters, then the elements of *args,
// keyword-only parameters, then the values of **kwargs in the order of `keyword_names`.
struct CallShape {
  uint32_t varargs = 0;
  std::vector<std::string> keyword_names;
  bool operator==(const CallShape&) const = default;
};

// ---- Captured state: where a value outside the function comes from ---------------------------
// Sources form a forest; a parent precedes its children. They are evaluated once per call.
struct Source {
  enum class Kind : uint8_t {
    kArgument,   // bound argument `index`
    kGlobal,     // name in the globals of function `parent` (-1: the compiled one), else builtins
    kClosure,    // contents of closure cell `index` of function `parent` (-1: the compiled one)
    kDefault,    // __defaults__[index] of function `parent`
    kKwDefault,  // __kwdefaults__[name] of function `parent`
    kAttribute,  // getattr(parent, name)
    kItem,       // parent[key]
    kType,       // type(parent)
    kWrapped,    // the plain function of a compiled function
    kMethodFunction,  // parent.__func__ of a bound method
    kMethodSelf,      // parent.__self__
  };
  Kind kind = Kind::kArgument;
  int32_t parent = -1;
  uint32_t index = 0;
  std::string name;
  Const key;
};

struct Guard {
  enum class Kind : uint8_t {
    kValue,      // type and bits equal `value`
    kQualified,  // is the object named value.text
    kCode,       // a Python function whose code hash is `hash`
    kArray,      // an array with `array` and `shape`; it fills array slot `slot`
    kLength,     // a `container` whose len() equals value.integer
    kIdentity,   // is Response::identities[slot]; memory only
    kMissing,    // evaluating the source fails (no such attribute or key)
    kKeys,       // a `container` whose iteration gives the items of the tuple `value`, in order
  };
  // Of exactly that class, but for kAnyTuple: a named tuple, say.
  enum class Container : uint8_t { kAnyTuple, kTuple, kList, kDict, kSet, kFrozenSet };
  Kind kind = Kind::kValue;
  uint32_t source = 0;
  Const value;
  std::array<uint8_t, 16> hash{};
  ArraySpec array;
  std::vector<Expr> shape;
  uint32_t slot = 0;
  Container container = Container::kAnyTuple;
};

// For arrays written to: how two array slots may overlap. Tested at the call.
struct AliasPredicate {
  enum class Relation : uint8_t { kDisjoint, kSame };
  uint32_t a = 0, b = 0;
  Relation relation = Relation::kDisjoint;
};

// ---- Results ---------------------------------------------------------------------------------
struct ResultSpec {
  enum class Form : uint8_t { kArray, kNumpyScalar, kPyInt, kPyFloat, kPyBool };
  DType dtype = DType::kF32;
  uint8_t rank = 0;
  Form form = Form::kArray;
  bool view = false;  // made by view_result, else by alloc_result
  bool readonly = false;
  std::array<uint8_t, kMaxRank> order{};  // memory order of a fresh array, slow to fast
};

// The tree of the return value, in prefix order.
struct TreeNode {
  enum class Kind : uint8_t {
    kTuple,
    kList,    // `count` subtrees follow
    kDict,    // `count` subtrees follow; their keys are constants[index .. index + count)
    kCall,    // `count` subtrees follow: positional arguments of source `index` (named tuple type)
    kResult,  // result `index`
    kSource,  // the object of source `index`, itself
    kConst,   // constants[index]
    kExpr,    // Python int: exprs[index]
    kSame,    // the tuple, list or dict that node `index` of the tree has made
  };
  Kind kind = Kind::kConst;
  uint32_t index = 0;
  uint32_t count = 0;
};

// ---- Sites: errors, warnings and host calls ----------------------------------------------------
// Where in the user's code. `function` indexes Artifact::functions; the instruction is resolved
// through co_positions() when an error is raised, so that edited comments don't make it lie.
struct CodeLoc {
  uint32_t function = 0;
  int32_t instruction = -1;  // index in code units (2 bytes); -1: unknown, use line
  int32_t line = 0;          // as compiled, relative to the function's first line
};

struct HostArgument {
  enum class Kind : uint8_t { kOperand, kConst };
  Kind kind = Kind::kOperand;
  uint32_t index = 0;  // operand
  DType dtype = DType::kF32;
  uint8_t rank = 0;
  bool numpy_scalar = false;
  std::string keyword;  // "" for positional
  Const value;
};

struct HostResult {
  uint32_t slot = 0;  // array slot
  DType dtype = DType::kF32;
  uint8_t rank = 0;
  std::vector<Expr> shape;  // must hold, else InternalError; over symbols bound so far
};

struct Site {
  ErrorClass cls = ErrorClass::kInternal;
  std::string message;  // {0}..{3}: payload numbers
  std::string remedy;
  CodeLoc loc;
  // Host calls only:
  bool is_host_call = false;
  int32_t callable = -1;  // source
  std::vector<HostArgument> arguments;
  std::vector<HostResult> results;
};

// A function within the blob, for profilers.
struct CodeSymbol {
  std::string name;  // "mlp::k0_matmul_maximum"
  uint64_t offset = 0, size = 0;
};

// ---- The whole -----------------------------------------------------------------------------------
struct Artifact {
  std::array<uint8_t, 16> key{};  // K1 of the directory it belongs to
  std::string build_id;
  std::string target;  // "x86_64:sapphirerapids:+avx512f,..."
  uint32_t min_services_size = 0;
  bool memory_only = false;   // some guard cannot be checked in another process
  bool releases_gil = false;  // the work estimate exceeds 10 us
  uint64_t cost_ns = 0;

  CallShape call_shape;
  std::vector<ArgSpec> arguments;
  std::vector<Symbol> symbols;  // caller-bound ones first
  std::vector<Predicate> predicates;
  std::vector<AliasPredicate> aliases;
  std::vector<Source> sources;
  std::vector<Guard> guards;
  uint32_t array_slots = 0;  // arguments, captures, host results
  uint32_t scalar_slots = 0;

  std::vector<ResultSpec> results;
  std::vector<TreeNode> tree;
  std::vector<Const> constants;
  std::vector<Expr> exprs;

  std::vector<int32_t> functions;  // [0] is -1: the compiled function; then sources of inlined ones
  std::vector<Site> sites;

  int64_t arena_bytes = 0;    // leased by the caller before entry; 64-byte aligned
  std::string schedule_text;  // CIR-like text of kernels, parsed by cuvil.Schedule
  std::string memory_text;    // the memory plan, parsed by cuvil.MemoryPlan

  uint64_t entry_offset = 0;  // into blob
  std::vector<CodeSymbol> code_symbols;
  std::vector<uint8_t>
      blob;  // writer input; the reader leaves it empty and gives blob_span instead
  std::vector<uint8_t> device_image;
};

// 128 bytes at offset 0.
struct FileHeader {
  std::array<char, 8> magic;  // "CUVILART"
  uint32_t format_version;
  uint32_t abi_version;
  uint64_t file_size;
  uint64_t metadata_offset, metadata_size;
  uint64_t blob_offset, blob_size;
  uint64_t entry_offset;  // from the start of the file
  uint64_t device_offset, device_size;
  std::array<uint8_t, 16> checksum;  // XXH3-128 of all bytes after the header
  std::array<uint8_t, 16> build_hash;
  std::array<uint8_t, 16> reserved;
};
static_assert(sizeof(FileHeader) == 128);

std::vector<uint8_t> write_artifact(const Artifact& a);
// Whether a file of so many bytes may start so.
Result<> check_header(const FileHeader& h, uint64_t size);
// Checks everything (size, magic, versions, checksum, ranges); the blob stays in `bytes`.
Result<Artifact> read_artifact(std::span<const uint8_t> bytes);
// Where the blob lies in bytes that read_artifact accepted.
std::span<const uint8_t> blob_of(std::span<const uint8_t> bytes);

}  // namespace cuvil::artifact
