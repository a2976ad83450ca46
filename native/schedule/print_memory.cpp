// print_memory_plan: the text that cuvil.MemoryPlan reads. Lines `key = value`, one line a buffer
// (`buffer name size start end offset scope`; a size or offset known only at run time is -1), and a
// picture (lines that begin with spaces).
//
//   arena_bytes = 128
//   lower_bound_bytes = 128
//   weight_bytes = 0
//   largest_activation_bytes = 64
//   scratch_bytes = 0
//   buffer %3 64 1 3 0 arena
#include "schedule/lower.h"

namespace cuvil::schedule {

std::string print_memory_plan(const Program& p) {
  static constexpr const char* kScopes[] = {"argument", "scalar", "host",
                                            "result",   "arena",  "constant"};
  const MemoryPlan& m = p.memory;
  std::string out;
  auto field = [&](const char* key, int64_t v) {
    out += std::string(key) + " = " + std::to_string(v) + "\n";
  };
  field("arena_bytes", m.arena_bytes);
  field("lower_bound_bytes", m.lower_bound_bytes);
  field("weight_bytes", m.weight_bytes);
  field("largest_activation_bytes", m.largest_activation_bytes);
  field("scratch_bytes", m.scratch_bytes);
  for (const Buffer& b : p.buffers) {
    if (b.start == b.end) continue;
    int64_t size = p.graph->dims.as_constant(b.bytes).value_or(-1);
    out += "buffer " + b.name + " " + std::to_string(size) + " " + std::to_string(b.start) + " " +
           std::to_string(b.end) + " " + std::to_string(b.offset) + " " +
           kScopes[static_cast<size_t>(b.scope)] + "\n";
  }
  return out + draw_memory(p);
}

}  // namespace cuvil::schedule
