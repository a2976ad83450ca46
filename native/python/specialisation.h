// One loaded artifact: does it fit a call, and running it.
//
//   BoundArgs --match--> Frame (array slots, scalars, symbols, sources) --run--> entry --> result
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "artifact/format.h"
#include "python/bind.h"
#include "python/machine_code.h"
#include "python/sources.h"
#include "runtime/scratch.h"
#include "runtime/services.h"

namespace cuvil::python {

class Specialisation;

// The state of one call, on the stack of the caller and in its scratch.
struct Frame : runtime::CallState {
  explicit Frame(const Specialisation& spec);
  ~Frame();

  const Specialisation& spec;
  runtime::ScratchScope scratch;
  std::byte* memory;  // one lease: the tables below, then the arena
  PyObject* function = nullptr;
  PyObject* const* args = nullptr;
  CuvilArray* arrays;
  CuvilArray* results;
  int64_t* scalars;
  int64_t* dims;
  std::byte* scalar_arguments;  // 16 bytes an array slot, for NumPy scalars
  std::byte* scalar_results;    // 16 bytes a result, for results that are no arrays
  SourceValues sources;
  PyObject** host_results;  // owned, by array slot
  void* arena;
  PyThreadState* released = nullptr;  // while the GIL is not held
  bool out_of_memory = false;
};

// Takes the GIL back inside a service, on the thread that made the call.
class WithGil {
 public:
  explicit WithGil(Frame& f) : frame_(f), back_(f.released != nullptr) {
    if (back_) PyEval_RestoreThread(std::exchange(f.released, nullptr));
  }
  ~WithGil() {
    if (back_) frame_.released = PyEval_SaveThread();
  }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  Frame& frame_;
  bool back_;
};

// Why a specialisation does not fit.
struct Mismatch {
  // In the order in which they are matched.
  enum class Stage : uint8_t { kNone, kCallShape, kArgument, kGuard, kAxis, kPredicate, kAlias };
  Stage stage = Stage::kNone;
  uint32_t index = 0;  // argument, guard, predicate or alias
  uint32_t axis = 0;   // kAxis; kAlias: the Overlap found
};

class Specialisation {
 public:
  enum class Match : uint8_t { kYes, kNo, kError };

  // Loads what read_artifact accepted. NULL with the indicator set.
  static std::unique_ptr<Specialisation> load(std::vector<uint8_t> bytes,
                                              std::vector<PyRef> identities);

  // One that is interpreted until its machine code is there.
  static std::unique_ptr<Specialisation> load(artifact::Artifact facts,
                                              std::vector<PyRef> identities,
                                              std::shared_ptr<MachineCode> machine_code);

  // Does it fit? Fills `f` on the way, which is then ready for run(). kError: the indicator is set.
  Match match(const Binder& binder, const BoundArgs& args, Frame* f, Mismatch* why) const;
  // The result, or NULL with the indicator set.
  PyObject* run(Frame* f) const;

  const artifact::Artifact& artifact() const { return artifact_; }
  // The result holds one tuple, list or dict in several places.
  bool returns_same() const { return returns_same_; }
  // Of the artifact; empty as long as it is interpreted.
  const std::vector<uint8_t>& bytes() const { return bytes_; }
  bool interpreted() const { return machine_code_ && !adopt(); }
  // Waits for its machine code, if it is interpreted. False with the indicator set.
  bool finish() const;
  const std::vector<std::pair<std::string, double>>& machine_code_stages() const { return stages_; }
  PyArray_Descr* result_descr(uint32_t i) const { return result_descrs_[i]; }
  PyObject* constant(uint32_t i) const { return constants_[i].get(); }
  PyObject* host_constant(uint32_t site, size_t k) const { return host_constants_[site][k].get(); }
  // The function whose code is `Artifact::functions[i]`, in this call; borrowed, may be NULL.
  PyObject* walked_function(const Frame& f, uint32_t i) const;
  // "x: float32[1, 128], n: int"
  std::string signature(const std::vector<std::string>& names) const;
  int traverse(visitproc visit, void* arg) const;

  mutable uint64_t calls = 0;

 private:
  friend struct Frame;

  // One array slot as the caller must find it.
  struct ArrayTest {
    const artifact::ArraySpec* spec;
    PyArray_Descr* descr;
    PyTypeObject* scalar_type;
    uint32_t slot;
  };
  // One axis of a caller-bound array: equals `value`, or the symbol.
  struct AxisTest {
    uint32_t slot, axis;
    int32_t symbol;  // -1: a constant
    int64_t value;
    uint32_t owner;  // argument or guard, for Mismatch
    bool captured;
  };
  struct ArgTest {
    artifact::ArgSpec::Kind kind;
    uint32_t index;  // array test, scalar slot
    PyRef value;     // kStatic
  };
  struct GuardArray {
    uint32_t guard, source;
    ArrayTest test;
  };
  struct Layout {
    size_t results, scalars, dims, scalar_arguments, scalar_results, sources, host_results, arena,
        total;
  };

  static std::unique_ptr<Specialisation> check(artifact::Artifact a);
  bool prepare(std::vector<PyRef> identities);
  // Takes over machine code that is there by now. Under the GIL.
  bool adopt() const;
  bool prepare_results();
  void add_axes(uint32_t slot, const std::vector<artifact::Expr>& shape, uint32_t owner,
                bool captured);
  bool match_array(const ArrayTest& t, PyObject* o, Frame* f) const;
  bool match_argument(const ArgTest& t, PyObject* o, Frame* f) const;
  Match match_captured(Frame* f, Mismatch* why) const;
  bool match_symbols(Frame* f, Mismatch* why) const;
  Match match_aliases(Frame* f, Mismatch* why) const;

  artifact::Artifact artifact_;
  // Changed once, by adopt().
  mutable std::vector<uint8_t> bytes_;
  mutable runtime::LoadedCode code_;
  mutable CuvilEntry entry_ = nullptr;
  mutable std::shared_ptr<MachineCode> machine_code_;
  mutable std::vector<std::pair<std::string, double>> stages_;
  std::vector<ArgTest> arguments_;
  std::vector<ArrayTest> arrays_;
  std::vector<AxisTest> axes_;
  Captured captured_;
  std::vector<GuardArray> guard_arrays_;
  size_t bound_symbols_ = 0;
  std::vector<PyArray_Descr*> result_descrs_;  // builtin: never freed
  std::vector<PyRef> constants_;
  std::vector<std::vector<PyRef>> host_constants_;
  Layout layout_{};
  bool returns_same_ = false;
};

}  // namespace cuvil::python
