#include "python/dispatch.h"

#include <unistd.h>

#include <chrono>

#include "python/compile.h"
#include "python/disk_cache.h"
#include "python/errors.h"
#include "python/overlap.h"
#include "python/request.h"
#include "python/texts.h"
#include "runtime/cache.h"
#include "support/build_id.h"
#include "support/knobs.h"
#include "support/log.h"

namespace cuvil::python {

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

template <class Run> Tried try_all(State& s, const BoundArgs& bound, Run&& run) {
  Tried t;
  std::pair furthest(Mismatch::Stage::kNone, 0u);
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
    // How far it got: stages are listed in the order in which they are matched, arguments from left to
    // right.
    const bool argument = why.stage == Mismatch::Stage::kArgument;
    const std::pair reached(why.stage, argument ? why.index : 0);
    if (reached > furthest) {
      furthest = reached;
      const auto& a = e->specialisation->artifact();
      t.reason = mismatch_text(a, s.binder.names(a.call_shape), why);
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
  if (!directory || dump_wants(*knobs) || knobs->interpret == Knobs::Interpret::kAlways)
    return true;  // a dump needs a compile
  compiler::Request request;
  return make_request(s, bound, &request) &&
         load_cached(s, directory->directory, request.key, added);
}

enum class Flown : uint8_t { kCompiled, kWaited, kPlain, kPythonRaises, kError };

// Whether calls are interpreted until there is machine code.
bool interprets(const compiler::Job& job, const Knobs& knobs) {
  if (!job.interpretable() || knobs.interpret == Knobs::Interpret::kNever) return false;
  return knobs.interpret == Knobs::Interpret::kAlways || job.interpret_ms < job.compile_ms / 2;
}

// The specialisation of a traced function. NULL with the indicator set.
std::unique_ptr<Specialisation> specialise(const State& s, compiler::Response& response,
                                           std::vector<PyRef> identities, const Knobs& knobs,
                                           bool needs_texts, std::optional<CachePlace> place) {
  if (response.facts.memory_only) place.reset();
  if (!needs_texts && interprets(*response.job, knobs)) {
    auto code =
        std::make_shared<MachineCode>(std::move(response.job), function_name(s), std::move(place));
    auto made = Specialisation::load(std::move(response.facts), std::move(identities), code);
    if (made && knobs.interpret == Knobs::Interpret::kAuto) start_later(std::move(code));
    return made;
  }
  auto compiled = compile_now(*response.job);
  if (!compiled.ok()) {
    raise(compiled.error());
    return nullptr;
  }
  response.texts.merge(compiled->texts);
  std::move(compiled->stages.begin(), compiled->stages.end(), std::back_inserter(response.stages));
  auto made = Specialisation::load(std::move(compiled->artifact), std::move(identities));
  if (!made || !place) return made;
  auto written =
      runtime::write_cached(place->directory, response.facts.key, made->bytes(), place->most_bytes);
  if (!written.ok() && !give_up(place->directory, written.error())) return nullptr;
  return made;
}

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
  request.interpret = !request.want && knobs->interpret != Knobs::Interpret::kNever;
  compiler::Response response;
  PyRef code = s.code;
  bool ok = run_compiler(request, &response);
  std::vector<PyRef> identities;
  for (PyObject* o : response.identities) identities.push_back(PyRef::steal(o));
  if (!ok) return response.python_raises ? Flown::kPythonRaises : Flown::kError;
  auto place = cache_for(s, *knobs);
  if (place) ++runtime::cache_counters().misses;
  auto e = std::make_unique<Entry>();
  e->specialisation =
      specialise(s, response, std::move(identities), *knobs, request.want != 0, std::move(place));
  if (!e->specialisation) return Flown::kError;
  if (request.want && !dump(s, response.texts, knobs->dump_ir == Knobs::Dump::kAll))
    return Flown::kError;
  e->recipe = recipe_of(request);
  e->reason = std::move(reason);
  e->stages = std::move(response.stages);
  e->milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (knobs->log == Knobs::Level::kDebug)
    log_stages(
        function_name(s) + (e->specialisation->interpreted() ? ": interpreted" : ": compiled"),
        e->stages);
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
  StartLater machine_code;  // when the result is there
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
  StartLater machine_code;
  Found found = find_or_compile(s, bound, [](Frame*) {});
  if (!found.entry && !found.plain.empty())
    raise(make_error(
        ErrorClass::kUnsupported,
        function_name(s) + "() runs as plain Python for these arguments: " + found.plain));
  return found.entry;
}

bool look_up(State& s, const BoundArgs& bound) {
  bool added = false;
  return look_on_disk(s, bound, &added);
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
  request.interpret = false;
  bool ok = run_compiler(request, &response);
  for (PyObject* o : response.identities) Py_XDECREF(o);
  if (!ok) return false;
  if (want & (compiler::kWantLlvm | compiler::kWantAsm)) {
    auto compiled = compile_now(*response.job);
    if (!compiled.ok()) {
      raise(compiled.error());
      return false;
    }
    response.texts.merge(compiled->texts);
  }
  *out = std::move(response.texts);
  return true;
}

}  // namespace cuvil::python
