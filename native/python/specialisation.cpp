// Loading, matching and running one artifact.
#include "python/specialisation.h"

#include <bit>
#include <cstring>

#include "python/classify.h"
#include "python/constants.h"
#include "python/dtypes.h"
#include "python/errors.h"
#include "python/overlap.h"
#include "python/results.h"
#include "runtime/perf_map.h"

namespace cuvil::python {

using artifact::AliasPredicate;
using artifact::ArgSpec;
using artifact::ArraySpec;
using artifact::Expr;
using artifact::ExprNode;
using artifact::Guard;
using artifact::Predicate;
using artifact::Symbol;

namespace {

constexpr size_t kScalarBytes = 16;  // the largest element
constexpr int64_t kNoDims[1] = {};

bool holds(const Predicate& p, std::span<const int64_t> symbols) {
  int64_t l = evaluate(p.lhs, symbols), r = evaluate(p.rhs, symbols);
  switch (p.op) {
    case Predicate::Op::kEq: return l == r;
    case Predicate::Op::kNe: return l != r;
    case Predicate::Op::kLt: return l < r;
    case Predicate::Op::kLe: return l <= r;
  }
  return false;
}

// The value of a NumPy scalar of element type `t`; false if it is of another type.
bool read_scalar(PyObject* o, DType t, PyTypeObject* usual, void* out) {
  if (Py_TYPE(o) != usual) {
    if (!PyArray_IsScalar(o, Generic)) return false;
    PyRef descr = PyRef::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromScalar(o)));
    if (!descr) {
      PyErr_Clear();
      return false;
    }
    auto* d = reinterpret_cast<PyArray_Descr*>(descr.get());
    if (Py_TYPE(o) != d->typeobj || dtype_of(d) != t) return false;  // another type, or a subclass
  }
  PyArray_ScalarAsCtype(o, out);
  return true;
}

bool same_strided(PyArrayObject* a, const ArraySpec& want) {
  ArraySpec have;
  stride_classes(a, &have);
  return have.stride_class == want.stride_class && have.order == want.order;
}

// What the target text asks for beyond x86-64-v2: the part after the second colon.
bool cpu_can_run(std::string_view target) {
#if defined(__x86_64__)
  size_t colon = target.rfind(':');
  if (colon == std::string_view::npos) return false;
  auto names = [&](std::string_view feature) {
    return target.substr(colon).find(feature) != std::string_view::npos;
  };
  if (names("avx512") &&
      !(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")))
    return false;
  if (names("avx2") && !__builtin_cpu_supports("avx2")) return false;
  if (names("fma") && !__builtin_cpu_supports("fma")) return false;
  return target.starts_with("x86_64:");
#else
  return target.starts_with("aarch64:");
#endif
}

}  // namespace

Frame::Frame(const Specialisation& s)
    : spec(s),
      memory(static_cast<std::byte*>(scratch.scratch().lease(s.layout_.total))),
      sources(reinterpret_cast<PyObject**>(memory + s.layout_.sources)) {
  const auto& l = s.layout_;
  if (!memory) {
    out_of_memory = true;
    return;
  }
  arrays = reinterpret_cast<CuvilArray*>(memory);
  results = reinterpret_cast<CuvilArray*>(memory + l.results);
  scalars = reinterpret_cast<int64_t*>(memory + l.scalars);
  dims = reinterpret_cast<int64_t*>(memory + l.dims);
  scalar_arguments = memory + l.scalar_arguments;
  scalar_results = memory + l.scalar_results;
  host_results = reinterpret_cast<PyObject**>(memory + l.host_results);
  arena = s.artifact_.arena_bytes ? memory + l.arena : nullptr;
  result_count = static_cast<uint32_t>(s.artifact_.results.size());
  std::memset(static_cast<void*>(results), 0, l.scalars - l.results);
  std::memset(static_cast<void*>(host_results), 0, l.arena - l.host_results);
}

Frame::~Frame() {
  if (!memory) return;
  for (uint32_t i = 0; i < result_count; ++i) Py_XDECREF(static_cast<PyObject*>(results[i].object));
  for (uint32_t i = 0; i < spec.artifact_.array_slots; ++i) Py_XDECREF(host_results[i]);
}

std::unique_ptr<Specialisation> Specialisation::check(artifact::Artifact a) {
  auto s = std::make_unique<Specialisation>();
  s->artifact_ = std::move(a);
  if (s->artifact_.device_image.empty() &&
      s->artifact_.min_services_size <= sizeof(CuvilServices) && cpu_can_run(s->artifact_.target))
    return s;
  raise(make_error(ErrorClass::kDevice,
                   "the artifact is for " + s->artifact_.target + ", which this machine is not",
                   "compile the function here"));
  return nullptr;
}

std::unique_ptr<Specialisation> Specialisation::load(std::vector<uint8_t> bytes,
                                                     std::vector<PyRef> identities) {
  auto read = artifact::read_artifact(bytes);
  if (!read.ok()) {
    raise(read.error());
    return nullptr;
  }
  auto s = check(std::move(*read));
  if (!s) return nullptr;
  auto code = runtime::load_code(artifact::blob_of(bytes));
  if (!code.ok()) {
    raise(code.error());
    return nullptr;
  }
  s->code_ = std::move(*code);
  s->entry_ = s->code_.entry(s->artifact_.entry_offset);
  runtime::note_in_perf_map(s->code_.base(), s->artifact_.code_symbols);
  s->bytes_ = std::move(bytes);
  if (!s->prepare(std::move(identities))) return nullptr;
  return s;
}

std::unique_ptr<Specialisation> Specialisation::load(artifact::Artifact facts,
                                                     std::vector<PyRef> identities,
                                                     std::shared_ptr<MachineCode> machine_code) {
  auto s = check(std::move(facts));
  if (!s) return nullptr;
  s->machine_code_ = std::move(machine_code);
  if (!s->prepare(std::move(identities))) return nullptr;
  return s;
}

bool Specialisation::adopt() const {
  MachineCode& made = *machine_code_;
  if (!made.done() || made.error) return false;  // without machine code it is interpreted for good
  code_ = std::move(made.code);
  entry_ = code_.entry(made.entry_offset);
  runtime::note_in_perf_map(code_.base(), made.symbols);
  bytes_ = std::move(made.artifact);
  stages_ = std::move(made.stages);
  machine_code_.reset();
  return true;
}

bool Specialisation::finish() const {
  if (!machine_code_) return true;
  std::shared_ptr<MachineCode> made = machine_code_;
  MachineCode::finish(made);
  if (!machine_code_ || adopt()) return true;
  raise(*made->error);
  return false;
}

void Specialisation::add_axes(uint32_t slot, const std::vector<Expr>& shape, uint32_t owner,
                              bool captured) {
  for (uint32_t axis = 0; axis < shape.size(); ++axis) {
    const ExprNode& n = shape[axis][0];
    bool constant = n.op == ExprNode::Op::kConst;
    axes_.push_back({slot, axis, constant ? -1 : static_cast<int32_t>(n.imm), constant ? n.imm : 0,
                     owner, captured});
  }
}

bool Specialisation::prepare(std::vector<PyRef> identities) {
  const auto& a = artifact_;
  uint32_t slot = 0, scalar = 0;
  auto array_test = [](const ArraySpec& spec, uint32_t s) -> ArrayTest {
    PyArray_Descr* d = descr_of(spec.dtype);
    return {&spec, d, d ? d->typeobj : nullptr, s};
  };
  for (uint32_t i = 0; i < a.arguments.size(); ++i) {
    const ArgSpec& s = a.arguments[i];
    ArgTest t{s.kind, 0, {}};
    switch (s.kind) {
      case ArgSpec::Kind::kArray:
        t.index = static_cast<uint32_t>(arrays_.size());
        arrays_.push_back(array_test(s.array, slot));
        add_axes(slot++, s.shape, i, false);
        break;
      case ArgSpec::Kind::kInt:
      case ArgSpec::Kind::kFloat: t.index = scalar++; break;
      case ArgSpec::Kind::kStatic:
        t.value = to_object(s.value);
        if (!t.value) return false;
        break;
      case ArgSpec::Kind::kObject: break;
    }
    arguments_.push_back(std::move(t));
  }
  for (uint32_t i = 0; i < a.guards.size(); ++i) {
    const Guard& g = a.guards[i];
    if (g.kind != Guard::Kind::kArray) continue;
    guard_arrays_.push_back({i, g.source, array_test(g.array, g.slot)});
    add_axes(g.slot, g.shape, i, true);
  }
  while (bound_symbols_ < a.symbols.size() &&
         a.symbols[bound_symbols_].kind != Symbol::Kind::kInternal)
    ++bound_symbols_;

  size_t at = sizeof(CuvilArray) * a.array_slots;
  auto place = [&at](size_t bytes) { return std::exchange(at, at + (bytes + 15) / 16 * 16); };
  layout_.results = place(sizeof(CuvilArray) * a.results.size());
  layout_.scalars = place(8 * a.scalar_slots);
  layout_.dims = place(8 * a.symbols.size());
  layout_.scalar_arguments = place(kScalarBytes * a.array_slots);
  layout_.scalar_results = place(kScalarBytes * a.results.size());
  layout_.sources = place(sizeof(PyObject*) * a.sources.size());
  layout_.host_results = place(sizeof(PyObject*) * a.array_slots);
  at = (at + 63) / 64 * 64;
  layout_.arena = at;
  layout_.total = at + static_cast<size_t>(a.arena_bytes);
  return captured_.prepare(a, std::move(identities)) && prepare_results();
}

bool Specialisation::prepare_results() {
  for (const auto& r : artifact_.results) {
    PyArray_Descr* d = descr_of(r.dtype);
    if (!d) {
      PyErr_SetString(PyExc_ValueError, "not a usable artifact: a result NumPy has no dtype for");
      return false;
    }
    result_descrs_.push_back(d);
  }
  for (const auto& node : artifact_.tree)
    returns_same_ = returns_same_ || node.kind == artifact::TreeNode::Kind::kSame;
  for (const auto& c : artifact_.constants) {
    constants_.push_back(to_object(c));
    if (!constants_.back()) return false;
  }
  for (const auto& site : artifact_.sites) {
    auto& values = host_constants_.emplace_back();
    for (const auto& argument : site.arguments) {
      bool constant = argument.kind == artifact::HostArgument::Kind::kConst;
      values.push_back(constant ? to_object(argument.value) : PyRef());
      if (constant && !values.back()) return false;
    }
  }
  return true;
}

inline bool Specialisation::match_array(const ArrayTest& t, PyObject* o, Frame* f) const {
  const ArraySpec& want = *t.spec;
  CuvilArray& out = f->arrays[t.slot];
  if (want.numpy_scalar) {
    std::byte* value = f->scalar_arguments + kScalarBytes * t.slot;
    if (!read_scalar(o, want.dtype, t.scalar_type, value)) return false;
    out = {value, kNoDims, kNoDims, o};
    return true;
  }
  if (Py_TYPE(o) != &PyArray_Type && !is_plain_array(o)) return false;
  auto* a = reinterpret_cast<PyArrayObject*>(o);
  if (PyArray_NDIM(a) != want.rank) return false;
  if (PyArray_DESCR(a) != t.descr && dtype_of(PyArray_DESCR(a)) != want.dtype) return false;
  if (PyArray_ISWRITEABLE(a) != want.writeable || layout_of(a) != want.layout) return false;
  if (want.layout == artifact::Layout::kStrided) {
    if (!same_strided(a, want) || is_aligned(a, size_of(want.dtype)) != want.aligned) return false;
  } else {
    // Contiguous: only the data can be misaligned.
    auto below = static_cast<uintptr_t>(size_of(want.dtype) - 1);
    if (((reinterpret_cast<uintptr_t>(PyArray_DATA(a)) & below) == 0) != want.aligned) return false;
  }
  static_assert(sizeof(npy_intp) == sizeof(int64_t));
  out = {PyArray_DATA(a), reinterpret_cast<const int64_t*>(PyArray_DIMS(a)),
         reinterpret_cast<const int64_t*>(PyArray_STRIDES(a)), o};
  return true;
}

inline bool Specialisation::match_argument(const ArgTest& t, PyObject* o, Frame* f) const {
  switch (t.kind) {
    case ArgSpec::Kind::kArray: return match_array(arrays_[t.index], o, f);
    case ArgSpec::Kind::kInt: {
      if (!PyLong_CheckExact(o)) return false;
      int overflow = 0;
      f->scalars[t.index] = PyLong_AsLongLongAndOverflow(o, &overflow);
      return overflow == 0;
    }
    case ArgSpec::Kind::kFloat:
      if (!PyFloat_CheckExact(o)) return false;
      f->scalars[t.index] = std::bit_cast<int64_t>(PyFloat_AS_DOUBLE(o));
      return true;
    case ArgSpec::Kind::kStatic: return same_value(o, t.value.get());
    case ArgSpec::Kind::kObject: return true;
  }
  return false;
}

Specialisation::Match Specialisation::match_captured(Frame* f, Mismatch* why) const {
  if (!captured_.evaluate(f->function, f->args, &f->sources)) return Match::kError;
  for (uint32_t k = 0; k < artifact_.guards.size(); ++k) {
    auto check = captured_.check(k, f->sources[artifact_.guards[k].source]);
    if (check == Captured::Check::kHolds) continue;
    *why = {Mismatch::Stage::kGuard, k, 0};
    return check == Captured::Check::kError ? Match::kError : Match::kNo;
  }
  for (const GuardArray& g : guard_arrays_) {
    PyObject* o = f->sources[g.source];
    if (o && match_array(g.test, o, f)) continue;
    *why = {Mismatch::Stage::kGuard, g.guard, 0};
    return Match::kNo;
  }
  return Match::kYes;
}

bool Specialisation::match_symbols(Frame* f, Mismatch* why) const {
  for (size_t i = 0; i < bound_symbols_; ++i) {
    const Symbol& s = artifact_.symbols[i];
    f->dims[i] = s.kind == Symbol::Kind::kScalar  ? f->scalars[s.array]
                 : s.kind == Symbol::Kind::kShape ? f->arrays[s.array].shape[s.axis]
                                                  : f->arrays[s.array].strides[s.axis];
  }
  for (const AxisTest& t : axes_) {
    int64_t have = f->arrays[t.slot].shape[t.axis];
    // A symbolic axis stands for sizes of at least 2: broadcasting was decided when compiling.
    if (t.symbol < 0 ? have == t.value : have == f->dims[t.symbol] && have >= 2) continue;
    *why = {t.captured ? Mismatch::Stage::kGuard : Mismatch::Stage::kAxis, t.owner, t.axis};
    return false;
  }
  std::span<const int64_t> symbols(f->dims, bound_symbols_);
  for (uint32_t i = 0; i < artifact_.predicates.size(); ++i) {
    if (holds(artifact_.predicates[i], symbols)) continue;
    *why = {Mismatch::Stage::kPredicate, i, 0};
    return false;
  }
  return true;
}

Specialisation::Match Specialisation::match_aliases(Frame* f, Mismatch* why) const {
  auto spec_of = [&](uint32_t slot) -> const ArraySpec& {
    for (const ArrayTest& t : arrays_)
      if (t.slot == slot) return *t.spec;
    for (const GuardArray& g : guard_arrays_)
      if (g.test.slot == slot) return *g.test.spec;
    return *arrays_[0].spec;  // not reached: the reader checks that slots are filled
  };
  for (uint32_t i = 0; i < artifact_.aliases.size(); ++i) {
    const AliasPredicate& p = artifact_.aliases[i];
    const ArraySpec &a = spec_of(p.a), &b = spec_of(p.b);
    Overlap o = overlap_of(f->arrays[p.a], size_of(a.dtype), a.rank, f->arrays[p.b],
                           size_of(b.dtype), b.rank);
    // The same bytes under another dtype, or read-only: no code is made for that.
    if (o == Overlap::kSame && !(a == b)) o = Overlap::kMayOverlap;
    bool same = p.relation == AliasPredicate::Relation::kSame;
    if (o == (same ? Overlap::kSame : Overlap::kDisjoint)) continue;
    *why = {Mismatch::Stage::kAlias, i, static_cast<uint32_t>(o)};
    return Match::kNo;
  }
  return Match::kYes;
}

Specialisation::Match Specialisation::match(const Binder& binder, const BoundArgs& args, Frame* f,
                                            Mismatch* why) const {
  if (f->out_of_memory) {
    raise(make_error(ErrorClass::kOutOfMemory,
                     "no memory for " + std::to_string(layout_.total) + " bytes of intermediates"));
    return Match::kError;
  }
  f->args = args.values;
  if (args.count != arguments_.size() || !binder.matches(artifact_.call_shape, args)) {
    *why = {Mismatch::Stage::kCallShape, 0, 0};
    return Match::kNo;
  }
  for (uint32_t i = 0; i < arguments_.size(); ++i) {
    if (match_argument(arguments_[i], args.values[i], f)) continue;
    *why = {Mismatch::Stage::kArgument, i, 0};
    return Match::kNo;
  }
  if (Match m = match_captured(f, why); m != Match::kYes) return m;
  if (!match_symbols(f, why)) return Match::kNo;
  return artifact_.aliases.empty() ? Match::kYes : match_aliases(f, why);
}

PyObject* Specialisation::walked_function(const Frame& f, uint32_t i) const {
  int32_t source = artifact_.functions[i];
  PyObject* o = source < 0 ? f.function : f.sources[static_cast<size_t>(source)];
  return o && PyFunction_Check(o) ? o : nullptr;
}

PyObject* Specialisation::run(Frame* f) const {
  CuvilCall call{.abi_version = CUVIL_ABI_VERSION,
                 .arrays = f->arrays,
                 .scalars = f->scalars,
                 .dims = f->dims,
                 .results = f->results,
                 .arena = f->arena,
                 .services = runtime::services(),
                 .host = static_cast<runtime::CallState*>(f)};
  int32_t code;
  if (machine_code_ && !adopt()) [[unlikely]] {
    const std::shared_ptr<MachineCode> keep = machine_code_;  // another thread may adopt meanwhile
    if (artifact_.releases_gil) f->released = PyEval_SaveThread();
    code = keep->job().interpret(call.services, &call);
  } else {
    if (artifact_.releases_gil) f->released = PyEval_SaveThread();
    code = entry_(call.services, &call);
  }
  if (f->released) PyEval_RestoreThread(std::exchange(f->released, nullptr));
  ++calls;
  if (code == 0) [[likely]]
    return build_result(*f);

  auto failure = f->failure.load();
  if (code != CUVIL_SITE_PYTHON && static_cast<size_t>(code - 1) < artifact_.sites.size()) {
    const auto& site = artifact_.sites[static_cast<size_t>(code - 1)];
    raise_site(site, call.payload, walked_function(*f, site.loc.function));
  } else if (failure == runtime::CallState::Failure::kOutOfMemory) {
    raise(make_error(
        ErrorClass::kOutOfMemory,
        "no memory for " + std::to_string(f->failed_bytes.load()) + " bytes of intermediates",
        "work on smaller arrays, or free memory first"));
  } else if (!PyErr_Occurred()) {
    raise(make_error(ErrorClass::kInternal,
                     "compiled code failed without saying why (code " + std::to_string(code) + ")",
                     "please report this with the function and its arguments"));
  }
  return nullptr;
}

std::string Specialisation::signature(const std::vector<std::string>& names) const {
  std::string out;
  for (size_t i = 0; i < artifact_.arguments.size(); ++i) {
    const ArgSpec& s = artifact_.arguments[i];
    if (i) out += ", ";
    if (i < names.size()) out += names[i] + ": ";
    switch (s.kind) {
      case ArgSpec::Kind::kArray: {
        out += info(s.array.dtype).numpy_name;
        if (s.array.numpy_scalar) break;
        out += "[";
        for (size_t k = 0; k < s.shape.size(); ++k) {
          const ExprNode& n = s.shape[k][0];
          if (k) out += ", ";
          out += (n.op == ExprNode::Op::kConst ? "" : "s") + std::to_string(n.imm);
        }
        out += "]";
        if (s.array.layout == artifact::Layout::kF) out += " F";
        if (s.array.layout == artifact::Layout::kStrided) out += " strided";
        if (!s.array.aligned) out += " misaligned";
        if (!s.array.writeable) out += " read-only";
        break;
      }
      case ArgSpec::Kind::kInt: out += "int"; break;
      case ArgSpec::Kind::kFloat: out += "float"; break;
      case ArgSpec::Kind::kStatic: out += short_repr(arguments_[i].value.get()); break;
      case ArgSpec::Kind::kObject: out += "object"; break;
    }
  }
  return out;
}

int Specialisation::traverse(visitproc visit, void* arg) const {
  for (const ArgTest& t : arguments_) Py_VISIT(t.value.get());
  return captured_.traverse(visit, arg);
}

}  // namespace cuvil::python
