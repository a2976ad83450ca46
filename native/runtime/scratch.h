// Memory that lives for one call or one parallel body: a bump allocator per thread, kept between calls.
//
//   chunk 0   |arena of the call |lease |lease |      free      |
//             ^ mark of the call                ^ top
//
// Arenas and thread leases come from here; a call remembers the top before it starts and goes back
// to it when it ends, so calls nest (a host call may call a compiled function). At most kKeep bytes stay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace cuvil::runtime {

class Scratch {
 public:
  static constexpr size_t kAlignment = 64;
  static constexpr size_t kKeep = size_t{64} << 20;

  struct Mark {
    size_t chunk = 0, used = 0;
  };

  // The calling thread's.
  static Scratch& mine();

  Mark mark() const { return top_; }
  void release(Mark m) {
    top_ = m;
    if (m.chunk == 0 && m.used == 0 && kept_ > kKeep) trim();
  }
  // 64-byte aligned; nullptr if there is no memory. Size 0 is valid.
  void* lease(size_t bytes) {
    size_t need = (bytes + kAlignment - 1) & ~(kAlignment - 1);
    if (need < bytes) return nullptr;
    if (top_.chunk < chunks_.size() && need <= chunks_[top_.chunk].size - top_.used) {
      void* out = chunks_[top_.chunk].data.get() + top_.used;
      top_.used += need;
      return out;
    }
    return lease_from_next_chunk(need);
  }
  size_t kept_bytes() const { return kept_; }

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  struct Chunk {
    std::unique_ptr<std::byte, Free> data;
    size_t size = 0;
  };
  void* lease_from_next_chunk(size_t need);
  void trim();

  std::vector<Chunk> chunks_;
  Mark top_;
  size_t kept_ = 0;
};

// Goes back to the mark at the end of a scope.
class ScratchScope {
 public:
  ScratchScope() : scratch_(Scratch::mine()), mark_(scratch_.mark()) {}
  ~ScratchScope() { scratch_.release(mark_); }
  ScratchScope(const ScratchScope&) = delete;
  ScratchScope& operator=(const ScratchScope&) = delete;
  Scratch& scratch() { return scratch_; }

 private:
  Scratch& scratch_;
  Scratch::Mark mark_;
};

}  // namespace cuvil::runtime
