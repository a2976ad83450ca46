// The one door from the hot side into the compiler library: a request in; out, what is known about a
// specialisation and a job that makes its code.
// Both sides are built together (build ids are compared when the library is opened), so the
// structs may hold C++ types. Called with 3 MiB of stack or more, holding the GIL.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artifact/abi.h"
#include "artifact/format.h"

struct _object;
typedef _object PyObject;

namespace cuvil::compiler {

// One axis of an argument as the dispatcher wants it compiled.
struct AxisRequest {
  int64_t size = 0;       // its size in this call
  bool symbolic = false;  // never for sizes 0 and 1
  std::string symbol;     // name from the hint ("batch"); "" for an anonymous symbol
};

struct ArgRequest {
  std::string name;  // parameter name, "args[2]" for an element of *args
  artifact::ArgSpec::Kind kind = artifact::ArgSpec::Kind::kObject;
  artifact::ArraySpec array;       // kArray
  std::vector<AxisRequest> shape;  // kArray
  std::vector<int64_t> strides;    // kArray: bytes, in this call
  PyObject* object = nullptr;      // borrowed
};

// What the hot side does for the compiler, so that both classify and hash alike.
struct HostTools {
  // False if the object is not an array Cuvil takes (exactly ndarray or memmap, native dtype).
  bool (*classify_array)(PyObject* object, artifact::ArraySpec* spec, int64_t* shape,
                         int64_t* strides) = nullptr;
  // Hash of a code object: bytecode, names, constants by type and bits, nested code; no file, no lines.
  void (*hash_code)(PyObject* code, uint8_t out[16]) = nullptr;
  // Whether the object is what "module:name" says by its own account, and not another that was put there.
  bool (*is_original)(PyObject* object, const char* qualified) = nullptr;
  // The plain function behind a compiled one (borrowed), or NULL if `object` is none.
  PyObject* (*wrapped_function)(PyObject* object) = nullptr;
};

enum Want : uint32_t { kWantIr = 1, kWantLlvm = 2, kWantAsm = 4, kWantPasses = 8, kWantDot = 16 };

struct Request {
  PyObject* function = nullptr;  // the plain Python function; borrowed
  artifact::CallShape call_shape;
  std::vector<ArgRequest> arguments;
  std::vector<artifact::AliasPredicate>
      aliases;  // between arrays that may be written: as tested now
  std::array<uint8_t, 16> key{};
  std::string device = "cpu";  // "cpu", "cuda:0", "cuda:sm_90"
  std::string target_cpu;      // "" for the host
  const HostTools* tools = nullptr;
  uint32_t want = 0;      // texts to return besides the artifact
  bool interpret = true;  // make the job interpretable where that pays
};

// What making machine code gives.
struct Compiled {
  std::vector<uint8_t> artifact;
  std::map<std::string, std::string> texts;            // those that were wanted
  std::vector<std::pair<std::string, double>> stages;  // name, milliseconds
};

// A traced function on its way to machine code.
class Job {
 public:
  virtual ~Job() = default;
  // Whether interpret() can run it meanwhile; that is as an entry (artifact/abi.h), with the same bits.
  virtual bool interpretable() const = 0;
  virtual int32_t interpret(const CuvilServices* services, CuvilCall* call) const = 0;
  // Once, on any thread, without Python; jobs one after the other.
  virtual Result<Compiled> compile() = 0;

  // Estimates: of compile(), and of one call of interpret().
  double compile_ms = 0, interpret_ms = 0;
};

struct Response {
  bool ok = false;  // false: Python's error indicator is set
  // Not ok: plain Python raises as well, and by then has written to memory that the caller sees.
  bool python_raises = false;
  artifact::Artifact facts;  // all but the code
  std::unique_ptr<Job> job;
  std::vector<PyObject*> identities;         // owned; for guards of kind kIdentity
  std::map<std::string, std::string> texts;  // "ir", "dot", "ir.03.fuse", ...; the others: Compiled
  std::vector<std::pair<std::string, double>> stages;  // name, milliseconds
};

}  // namespace cuvil::compiler

extern "C" {
// The exported symbols of libcuvil_compiler.so.
__attribute__((visibility("default"))) const char* cuvil_compiler_build_id();
__attribute__((visibility("default"))) void cuvil_compile(const cuvil::compiler::Request* request,
                                                          cuvil::compiler::Response* response);
}
