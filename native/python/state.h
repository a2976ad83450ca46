// What a compiled function knows: the plain function, its options, its specialisations.
// Touched only with the GIL held.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "artifact/hash.h"
#include "compiler/entry.h"
#include "python/specialisation.h"

namespace cuvil::python {

// One axis of a shape hint.
struct AxisHint {
  int64_t size = -1;   // -1: any
  std::string symbol;  // "" for an anonymous one
};

struct ArgHint {
  std::vector<AxisHint> axes;
  std::optional<DType> dtype;
};

struct Options {
  std::map<std::string, ArgHint> hints;
  std::string device = "cpu";
  std::string target_cpu;
  bool cache = true;
};

// What is kept of an argument so that the compiler can be asked again, when a text is wanted: of an
// array what it looked like, of a list, tuple or dict the same for its items; objects weakly.
struct Kept {
  enum class Kind : uint8_t { kGone, kObject, kWeak, kArray, kTuple, kList, kDict };
  Kind kind = Kind::kGone;
  PyRef object;  // kObject: itself; kWeak: the reference; kTuple: the class
  std::optional<compiler::ArgRequest> array;
  std::vector<PyRef> keys;
  std::vector<Kept> items;

  int traverse(visitproc visit, void* arg) const;
};

struct Recipe {
  artifact::CallShape call_shape;
  std::vector<compiler::ArgRequest> arguments;  // without objects
  std::vector<Kept> kept;                       // none of arrays, which `arguments` describe
  std::vector<artifact::AliasPredicate> aliases;
};

struct Entry {
  std::unique_ptr<Specialisation> specialisation;
  std::optional<Recipe> recipe;  // none: loaded from bytes, or from the cache and not used yet
  bool cached = false;           // found in the cache on disk
  std::string reason;            // why it was made
  double milliseconds = 0;       // of the compile, thread and loading included
  std::vector<std::pair<std::string, double>> stages;
};

// A compile that is going on: others that miss on the same function wait for it.
struct Flight {
  std::mutex mutex;
  std::condition_variable landed;
  bool done = false;
  int pid = 0;
};

class State {
 public:
  static constexpr size_t kMaxEntries = 64;

  PyRef function;
  Options options;
  PyRef hints, keywords;  // the options as dicts, to make another one when it is unpickled
  Binder binder;
  PyRef code;  // the code object that all of the below is about
  artifact::Hash code_hash{};
  std::vector<std::unique_ptr<Entry>> entries;
  std::vector<std::unique_ptr<Entry>> retired;  // of earlier code; calls may still be in them
  std::vector<artifact::Hash> looked_up;        // keys whose files in the cache were read
  Specialisation* last = nullptr;
  Entry* last_entry = nullptr;
  std::shared_ptr<Flight> flight;
  bool disabled = false;  // CUVIL_DISABLE
  bool warned = false;    // of calls that run as plain Python
  int unstable = 0;       // compiles that did not fit the call that they were made for

  // Reads function.__code__, at first and when it was replaced. False with the indicator set.
  bool read_code();
  bool code_is_current() const { return PyFunction_GET_CODE(function.get()) == code.get(); }
  int traverse(visitproc visit, void* arg) const;
};

}  // namespace cuvil::python
