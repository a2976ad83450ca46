// Machine code that is made on a thread of its own, while a specialisation is interpreted.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/entry.h"
#include "python/py.h"
#include "runtime/loader.h"
#include "support/log.h"

namespace cuvil::python {

// Where the artifact is kept for later processes.
struct CachePlace {
  std::string directory;
  int64_t most_bytes = 0;
};

class MachineCode {
 public:
  MachineCode(std::unique_ptr<compiler::Job> job, std::string name, std::optional<CachePlace> place)
      : job_(std::move(job)), name_(std::move(name)), place_(std::move(place)), log_(log_level()) {}

  // Hands the job to the worker, once.
  static void start(const std::shared_ptr<MachineCode>& self);
  // start(), and returns when it is done. Holding the GIL, which others get meanwhile.
  static void finish(const std::shared_ptr<MachineCode>& self);

  const compiler::Job& job() const { return *job_; }
  bool done() const { return done_.load(std::memory_order_acquire); }

  // Once done: either an error, or the others.
  std::optional<Error> error;
  std::vector<uint8_t> artifact;
  runtime::LoadedCode code;
  uint64_t entry_offset = 0;
  std::vector<artifact::CodeSymbol> symbols;
  std::vector<std::pair<std::string, double>> stages;

 private:
  void make();

  std::unique_ptr<compiler::Job> job_;
  std::string name_;
  std::optional<CachePlace> place_;
  Knobs::Level log_;      // the environment is not read on another thread
  int started_in_ = 0;    // the process; under the GIL
  uint64_t number_ = 0;   // of those submitted there
  std::atomic<bool> done_{false};
};

// Puts off start() to the end of the outermost scope of a thread, when its caller has its result.
class StartLater {
 public:
  StartLater();
  ~StartLater();
  StartLater(const StartLater&) = delete;
  StartLater& operator=(const StartLater&) = delete;
};
void start_later(std::shared_ptr<MachineCode> code);

// Waits for all machine code that is being made by now, and warns of what could not be kept. Holding the GIL, which
// others get meanwhile. False with the indicator set: interrupted, or a warning that is an error.
bool settle();
// settle(), and no machine code is made until runtime::resume_worker().
bool before_fork();

// On the calling thread's behalf, at once: for callers that need machine code now. Holding the GIL.
Result<compiler::Compiled> compile_now(compiler::Job& job);

}  // namespace cuvil::python
