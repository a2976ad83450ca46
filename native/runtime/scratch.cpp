#include "runtime/scratch.h"

#include <algorithm>
#include <cstdlib>

namespace cuvil::runtime {

void Scratch::Free::operator()(std::byte* p) const { std::free(p); }

Scratch& Scratch::mine() {
  thread_local Scratch scratch;
  return scratch;
}

void* Scratch::lease_from_next_chunk(size_t need) {
  constexpr size_t kSmallest = size_t{64} << 10;
  size_t next = chunks_.empty() ? 0 : top_.chunk + 1;
  // Chunks above the top are free: one that is too small makes room for one that fits.
  if (next < chunks_.size() && chunks_[next].size < need) {
    for (size_t i = next; i < chunks_.size(); ++i) kept_ -= chunks_[i].size;
    chunks_.resize(next);
  }
  if (next == chunks_.size()) {
    size_t size = std::max(need, kSmallest);
    auto* data = static_cast<std::byte*>(std::aligned_alloc(kAlignment, size));
    if (!data) return nullptr;
    chunks_.push_back({std::unique_ptr<std::byte, Free>(data), size});
    kept_ += size;
  }
  top_ = {next, need};
  return chunks_[next].data.get();
}

void Scratch::trim() {
  chunks_.clear();
  kept_ = 0;
}

}  // namespace cuvil::runtime
