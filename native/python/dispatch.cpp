#include "python/dispatch.h"

#include <unistd.h>

#include <chrono>

#include "python/compile.h"
#include "python/constants.h"
#include "python/disk_cache.h"
#include "python/errors.h"
#include "python/overlap.h"
#include "python/request.h"
#include "runtime/cache.h"
#include "support/build_id.h"
#include "support/knobs.h"

namespace cuvil::python {

using artifact::ArgSpec;
using artifact::Guard;
using artifact::Source;
using Match = Specialisation::Match;

namespace {

PyObject* run_plain(State& s, const RawCall& raw) {
  return PyObject_Vectorcall(s.function.get(), raw.args, raw.nargsf, raw.kwnames);
}

std::string function_name(const State& s) {
  PyRef name = attr_or_null(s.function.get(), CUVIL_NAME("__qualname__"));
  return to_string(name.get());
}

// False with the indicator set if warnings are errors.
bool warn_plain(State& s, const std::string& why) {
  if (std::exchange(s.warned, true)) return true;
  return warn_performance(function_name(s) + "() runs as plain Python for these arguments: " + why);
}

std::string path(const artifact::Artifact& a, int32_t i) {
  if (i < 0) return {};
  const Source& s = a.sources[static_cast<size_t>(i)];
  std::string parent = path(a, s.parent);
  switch (s.kind) {
    case Source::Kind::kArgument:
      return s.name.empty() ? "argument " + std::to_string(s.index) : s.name;
    case Source::Kind::kGlobal: return s.name;
    case Source::Kind::kClosure:
      return s.name.empty() ? "closure cell " + std::to_string(s.index) : s.name;
    case Source::Kind::kDefault: return "default " + std::to_string(s.index);
    case Source::Kind::kKwDefault: return "default of " + s.name;
    case Source::Kind::kAttribute: return parent + "." + s.name;
    case Source::Kind::kItem: {
      PyRef key = to_object(s.key);
      if (!key) PyErr_Clear();
      return parent + "[" + (key ? short_repr(key.get()) : "?") + "]";
    }
    case Source::Kind::kType: return "type(" + parent + ")";
    case Source::Kind::kWrapped: return parent + ".__wrapped__";
    case Source::Kind::kMethodFunction: return parent + ".__func__";
    case Source::Kind::kMethodSelf: return parent + ".__self__";
  }
  return {};
}

std::string guard_text(const artifact::Artifact& a, const Guard& g) {
  std::string what = path(a, static_cast<int32_t>(g.source));
  switch (g.kind) {
    case Guard::Kind::kValue: {
      PyRef v = to_object(g.value);
      if (!v) PyErr_Clear();
      return what + " == " + (v ? short_repr(v.get()) : "?");
    }
    case Guard::Kind::kQualified: return what + " is " + g.value.text;
    case Guard::Kind::kCode: return what + " has the code it had";
    case Guard::Kind::kArray:
      return what + " is an array of " + std::string(info(g.array.dtype).numpy_name) + " with " +
             std::to_string(g.array.rank) + " axes";
    case Guard::Kind::kLength: return "len(" + what + ") == " + std::to_string(g.value.integer);
    case Guard::Kind::kIdentity: return what + " is the same object";
    case Guard::Kind::kMissing: return what + " does not exist";
  }
  return {};
}

// "x.shape[0]", "n": what the caller binds a symbol to.
std::string symbol_text(const artifact::Artifact& a, const std::vector<std::string>& names,
                        size_t index) {
  const artifact::Symbol& symbol = a.symbols[index];
  const bool scalar = symbol.kind == artifact::Symbol::Kind::kScalar;
  uint32_t arrays = 0, scalars = 0;
  std::string what;
  for (size_t i = 0; i < a.arguments.size() && what.empty(); ++i) {
    const ArgSpec::Kind kind = a.arguments[i].kind;
    const bool number = kind == ArgSpec::Kind::kInt || kind == ArgSpec::Kind::kFloat;
    if (scalar && number && scalars++ == symbol.array) what = names[i];
    if (!scalar && kind == ArgSpec::Kind::kArray && arrays++ == symbol.array) what = names[i];
  }
  for (const Guard& g : a.guards)
    if (!scalar && what.empty() && g.kind == Guard::Kind::kArray && g.slot == symbol.array)
      what = path(a, static_cast<int32_t>(g.source));
  if (scalar || what.empty()) return what.empty() ? "?" : what;
  const char* of = symbol.kind == artifact::Symbol::Kind::kShape ? ".shape[" : ".strides[";
  return what + of + std::to_string(symbol.axis) + "]";
}

// As Python would write it.
std::string expr_text(const artifact::Artifact& a, const std::vector<std::string>& names,
                      const artifact::Expr& e) {
  using Op = artifact::ExprNode::Op;
  struct Part {
    std::string text;
    bool atom;
  };
  std::vector<Part> stack;
  for (const artifact::ExprNode& n : e) {
    if (n.op == Op::kConst) {
      stack.push_back({std::to_string(n.imm), n.imm >= 0});
      continue;
    }
    if (n.op == Op::kSymbol) {
      stack.push_back({symbol_text(a, names, static_cast<size_t>(n.imm)), true});
      continue;
    }
    Part r = std::move(stack.back());
    stack.pop_back();
    Part l = std::move(stack.back());
    stack.pop_back();
    if (n.op == Op::kMin || n.op == Op::kMax) {
      stack.push_back({(n.op == Op::kMin ? "min(" : "max(") + l.text + ", " + r.text + ")", true});
      continue;
    }
    const char* sign = n.op == Op::kAdd        ? " + "
                       : n.op == Op::kMul      ? "*"
                       : n.op == Op::kFloorDiv ? " // "
                                               : " % ";
    auto wrapped = [&](const Part& p) {
      return p.atom || n.op == Op::kAdd ? p.text : "(" + p.text + ")";
    };
    stack.push_back({wrapped(l) + sign + wrapped(r), n.op == Op::kMul && l.atom && r.atom});
  }
  return stack.empty() ? "?" : stack.back().text;
}

std::string predicate_text(const artifact::Artifact& a, const std::vector<std::string>& names,
                           const artifact::Predicate& p) {
  static constexpr const char* kSigns[] = {" == ", " != ", " < ", " <= "};
  return expr_text(a, names, p.lhs) + kSigns[static_cast<size_t>(p.op)] +
         expr_text(a, names, p.rhs);
}

std::string describe(const State& s, const artifact::Artifact& a, const Mismatch& why) {
  auto names = s.binder.names(a.call_shape);
  auto name = [&](uint32_t i) { return i < names.size() ? names[i] : std::string("?"); };
  switch (why.stage) {
    case Mismatch::Stage::kNone: return "";
    case Mismatch::Stage::kCallShape: return "another number of arguments in *args or **kwargs";
    case Mismatch::Stage::kArgument:
      return "argument '" + name(why.index) + "' is of another kind, dtype, rank, layout or value";
    case Mismatch::Stage::kAxis:
      return "axis " + std::to_string(why.axis) + " of '" + name(why.index) + "' has another size";
    case Mismatch::Stage::kGuard: return "no longer true: " + guard_text(a, a.guards[why.index]);
    case Mismatch::Stage::kPredicate:
      return "no longer true: " + predicate_text(a, names, a.predicates[why.index]);
    case Mismatch::Stage::kAlias: return "arrays overlap in another way";
  }
  return "";
}

// A cached specialisation that is used for the first time: counted, and texts of it can be had.
bool take_cached(State& s, const BoundArgs& bound, Entry& e) {
  if (!e.cached || e.recipe) return true;
  ++runtime::cache_counters().hits;
  compiler::Request request;
  if (!make_request(s, bound, &request)) return false;
  follow_artifact(e.specialisation->artifact(), &request);
  e.recipe = recipe_of(request);
  return true;
}

// The result of trying all specialisations.
struct Tried {
  Entry* entry = nullptr;  // fits
  bool error = false;      // the indicator is set
  bool overlap = false;    // one would fit but for arrays that overlap
  std::string reason;      // why the one that fits best does not; of equals, the latest
};

// How far a specialisation got in being matched.
int progress(const Mismatch& m) {
  switch (m.stage) {
    case Mismatch::Stage::kNone: return 0;
    case Mismatch::Stage::kCallShape: return 1;
    case Mismatch::Stage::kArgument: return 2;
    case Mismatch::Stage::kGuard: return 3;
    case Mismatch::Stage::kAxis: return 4;
    case Mismatch::Stage::kPredicate: return 5;
    case Mismatch::Stage::kAlias: return 6;
  }
  return 0;
}

template <class Run> Tried try_all(State& s, const BoundArgs& bound, Run&& run) {
  Tried t;
  int furthest = 0;
  // By index: user code that guards run may add specialisations.
  for (size_t i = s.entries.size(); i-- > 0;) {
    if (i >= s.entries.size()) continue;
    Entry* e = s.entries[i].get();
    Frame f(*e->specialisation);
    f.function = s.function.get();
    Mismatch why;
    Match m = e->specialisation->match(s.binder, bound, &f, &why);
    if (m == Match::kYes) {
      if (!take_cached(s, bound, *e)) {
        t.error = true;
        return t;
      }
      t.entry = e;
      s.last = e->specialisation.get();
      s.last_entry = e;
      run(&f);
      return t;
    }
    if (m == Match::kError) {
      t.error = true;
      return t;
    }
    t.overlap = t.overlap || (why.stage == Mismatch::Stage::kAlias &&
                              why.axis == static_cast<uint32_t>(Overlap::kMayOverlap));
    // Arguments are matched from left to right.
    const bool argument = why.stage == Mismatch::Stage::kArgument;
    const int reached = progress(why) * 1000 + (argument ? static_cast<int>(why.index) : 0);
    if (reached > furthest) {
      furthest = reached;
      t.reason = describe(s, e->specialisation->artifact(), why);
    }
  }
  return t;
}

// Writes the texts that CUVIL_DUMP_IR asks for. False with the indicator set.
bool dump(const State& s, const std::map<std::string, std::string>& texts, bool all) {
  PyRef write = imported("cuvil._dump", "write");
  PyRef dict = PyRef::steal(PyDict_New());
  if (!write || !dict) return false;
  for (const auto& [name, text] : texts) {
    PyRef value = to_str(text);
    if (!value || PyDict_SetItemString(dict.get(), name.c_str(), value.get()) < 0) return false;
  }
  PyRef name = to_str(function_name(s));
  return static_cast<bool>(PyRef::steal(PyObject_CallFunctionObjArgs(
      write.get(), dict.get(), name.get(), all ? Py_True : Py_False, nullptr)));
}

uint32_t dump_wants(const Knobs& k) {
  if (k.dump_ir == Knobs::Dump::kGraph) return compiler::kWantDot;
  if (k.dump_ir == Knobs::Dump::kNothing) return 0;
  return compiler::kWantDot | compiler::kWantIr | compiler::kWantLlvm | compiler::kWantAsm |
         compiler::kWantPasses;
}

// Looks on disk for specialisations of this call's kind. False with the indicator set.
bool look_on_disk(State& s, const BoundArgs& bound, bool* added) {
  *added = false;
  auto knobs = read_knobs();
  if (!knobs.ok()) {
    raise(knobs.error());
    return false;
  }
  auto directory = cache_for(s, *knobs);
  if (!directory || dump_wants(*knobs)) return true;  // a dump needs a compile
  compiler::Request request;
  return make_request(s, bound, &request) && load_cached(s, *directory, request.key, added);
}

enum class Flown : uint8_t { kCompiled, kWaited, kPlain, kPythonRaises, kError };

// Compiles for this call and appends the specialisation. kError and kPythonRaises: the indicator is set.
Flown compile(State& s, const BoundArgs& bound, std::string reason) {
  auto start = std::chrono::steady_clock::now();
  auto knobs = read_knobs();
  if (!knobs.ok()) {
    raise(knobs.error());
    return Flown::kError;
  }
  compiler::Request request;
  if (!make_request(s, bound, &request)) return Flown::kError;
  request.want = dump_wants(*knobs);
  compiler::Response response;
  PyRef code = s.code;
  bool ok = run_compiler(request, &response);
  std::vector<PyRef> identities;
  for (PyObject* o : response.identities) identities.push_back(PyRef::steal(o));
  if (!ok) return response.python_raises ? Flown::kPythonRaises : Flown::kError;
  if (request.want && !dump(s, response.texts, knobs->dump_ir == Knobs::Dump::kAll))
    return Flown::kError;
  auto e = std::make_unique<Entry>();
  e->specialisation = Specialisation::load(std::move(response.artifact), std::move(identities));
  if (!e->specialisation) return Flown::kError;
  e->recipe = recipe_of(request);
  e->reason = std::move(reason);
  e->stages = std::move(response.stages);
  e->milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (auto directory = cache_for(s, *knobs)) {
    ++runtime::cache_counters().misses;
    if (!keep_cached(*directory, e->specialisation->artifact(), e->specialisation->bytes(), *knobs))
      return Flown::kError;
  }
  bool current = code.get() == s.code.get();  // else the function's code was replaced meanwhile
  (current ? s.entries : s.retired).push_back(std::move(e));
  return Flown::kCompiled;
}

// One compile a function at a time: who misses meanwhile waits and looks again.
Flown compile_once(State& s, const BoundArgs& bound, std::string reason) {
  if (s.flight && s.flight->pid == getpid()) {
    if (on_compile_thread()) return Flown::kPlain;  // waiting here could be waiting for oneself
    std::shared_ptr<Flight> flight = s.flight;
    Py_BEGIN_ALLOW_THREADS std::unique_lock lock(flight->mutex);
    flight->landed.wait(lock, [&] { return flight->done; });
    Py_END_ALLOW_THREADS return Flown::kWaited;
  }
  auto flight = std::make_shared<Flight>();
  flight->pid = getpid();
  s.flight = flight;
  Flown result = compile(s, bound, std::move(reason));
  s.flight = nullptr;
  {
    std::lock_guard lock(flight->mutex);
    flight->done = true;
  }
  flight->landed.notify_all();
  return result;
}

struct Found {
  Entry* entry = nullptr;
  std::string plain;  // why the call runs as plain Python instead; empty: error, indicator set
  bool python_raises = false;  // the error: see compiler::Response
};

// Tries, compiles, tries again. `run` is called with the frame of the specialisation that fits.
template <class Run> Found find_or_compile(State& s, const BoundArgs& bound, Run&& run) {
  for (bool compiled = false, looked = false;;) {
    Tried t = try_all(s, bound, run);
    if (t.entry || t.error) return {t.entry, {}};
    if (t.overlap)
      return {nullptr, "arrays that it writes to overlap others; pass copies, or the same view"};
    if (!std::exchange(looked, true)) {
      bool added = false;
      if (!look_on_disk(s, bound, &added)) return {};
      if (added) continue;
    }
    if (compiled) {
      ++s.unstable;
      return {nullptr,
              "what it reads from outside changes while it is compiled (" + t.reason + ")"};
    }
    if (s.entries.size() >= State::kMaxEntries || s.unstable >= 3)
      return {nullptr,
              "it has been compiled for too many different arguments; "
              "give sizes that vary a name in shape_hint"};
    std::string reason = s.entries.empty() ? "first call" : t.reason;
    switch (compile_once(s, bound, reason)) {
      case Flown::kCompiled: compiled = true; break;
      case Flown::kWaited: break;
      case Flown::kPlain: return {nullptr, "it is called while it is being compiled"};
      case Flown::kPythonRaises: return {nullptr, {}, true};
      case Flown::kError: return {};
    }
  }
}

}  // namespace

PyObject* call_slow(State& s, const BoundArgs& bound, const RawCall& raw) {
  PyObject* result = nullptr;
  Found found = find_or_compile(s, bound, [&](Frame* f) { result = f->spec.run(f); });
  if (found.python_raises) {
    PyErr_Clear();
    return run_plain(s, raw);
  }
  if (found.entry || found.plain.empty()) return result;
  return warn_plain(s, found.plain) ? run_plain(s, raw) : nullptr;
}

Entry* prepare_call(State& s, const BoundArgs& bound) {
  Found found = find_or_compile(s, bound, [](Frame*) {});
  if (!found.entry && !found.plain.empty())
    raise(make_error(
        ErrorClass::kUnsupported,
        function_name(s) + "() runs as plain Python for these arguments: " + found.plain));
  return found.entry;
}

bool add_artifact(State& s, std::vector<uint8_t> bytes) {
  auto e = std::make_unique<Entry>();
  e->specialisation = Specialisation::load(std::move(bytes), {});
  if (!e->specialisation) return false;
  const auto& a = e->specialisation->artifact();
  if (a.build_id != build_id() || a.key != key_of(s, a.arguments)) {
    raise(make_error(ErrorClass::kCache,
                     "the artifact was made for another function, other options or another build",
                     "compile " + function_name(s) + "() again"));
    return false;
  }
  e->reason = "loaded from bytes";
  s.entries.push_back(std::move(e));
  return true;
}

bool texts_of(State& s, const Entry& e, const BoundArgs* given, uint32_t want,
              std::map<std::string, std::string>* out) {
  if (!e.recipe) {
    raise(make_error(ErrorClass::kUnsupported,
                     "this specialisation was loaded from bytes, which hold no such text",
                     "compile the function in this process"));
    return false;
  }
  std::vector<PyRef> hold;
  compiler::Request request;
  if (!request_again(s, *e.recipe, given, &hold, &request)) return false;
  request.want = want;
  request.key = e.specialisation->artifact().key;
  compiler::Response response;
  bool ok = run_compiler(request, &response);
  for (PyObject* o : response.identities) Py_XDECREF(o);
  *out = std::move(response.texts);
  return ok;
}

std::vector<std::string> guard_texts(const artifact::Artifact& a,
                                     const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const artifact::Predicate& p : a.predicates) out.push_back(predicate_text(a, names, p));
  for (const Guard& g : a.guards) out.push_back(guard_text(a, g));
  return out;
}

}  // namespace cuvil::python
