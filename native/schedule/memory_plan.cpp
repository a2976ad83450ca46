// Static offsets in one arena for buffers of constant size. Called by lower.cpp.
//
//   offset
//     192 |        [ t2 ]             Each rectangle is a buffer: its lifetime by its size. First fit: the
//     128 |  [   t0    ]              lowest 64-byte aligned offset at which nothing alive is in the way,
//      64 |  [   t0    ][  t3  ]      in a few orders (size, lifetime, start); the lowest arena wins.
//       0 +--[t1]------[ t4 ]-----> time
#include <algorithm>
#include <functional>
#include <numeric>

#include "schedule/lower.h"

namespace cuvil::schedule {

namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kPictureColumns = 96;

int64_t align(int64_t v) { return (v + kAlignment - 1) / kAlignment * kAlignment; }

struct Extent {
  size_t buffer;
  int64_t bytes;
  int32_t start, end;
};

bool overlap(const Extent& a, const Extent& b) { return a.start < b.end && b.start < a.end; }

// Offsets in the order given; the height of the arena.
int64_t first_fit(const std::vector<Extent>& blocks, const std::vector<size_t>& order,
                  std::vector<int64_t>* offsets) {
  offsets->assign(blocks.size(), -1);
  int64_t height = 0;
  std::vector<size_t> placed;  // by offset
  for (size_t i : order) {
    int64_t at = 0;
    for (size_t j : placed) {
      if (!overlap(blocks[i], blocks[j])) continue;
      if (at + blocks[i].bytes <= (*offsets)[j]) break;
      at = std::max(at, align((*offsets)[j] + blocks[j].bytes));
    }
    (*offsets)[i] = at;
    height = std::max(height, at + blocks[i].bytes);
    auto above =
        std::find_if(placed.begin(), placed.end(), [&](size_t j) { return (*offsets)[j] > at; });
    placed.insert(above, i);
  }
  return height;
}

int64_t most_alive(const std::vector<Extent>& blocks) {
  int64_t most = 0;
  for (const Extent& at : blocks) {  // the sum is largest at some start
    int64_t sum = 0;
    for (const Extent& b : blocks)
      if (b.start <= at.start && at.start < b.end) sum += b.bytes;
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

void plan_memory(Program& p) {
  const ir::Graph& g = *p.graph;
  std::vector<Extent> blocks;
  MemoryPlan plan;
  for (size_t i = 0; i < p.buffers.size(); ++i) {
    Buffer& b = p.buffers[i];
    const int64_t bytes = g.dims.example(b.bytes).value_or(0);
    if (b.scope == MemoryScope::kArena || b.scope == MemoryScope::kResult)
      plan.largest_activation_bytes = std::max(plan.largest_activation_bytes, bytes);
    if (b.scope != MemoryScope::kArena || b.start == b.end) continue;
    if (auto size = g.dims.as_constant(b.bytes)) blocks.push_back({i, *size, b.start, b.end});
  }
  for (const ir::Input& in : g.inputs) {
    if (!in.captured) continue;
    const ir::Type& t = g.type(in.value);
    int64_t bytes = size_of(t.dtype);
    for (ir::Dim d : t.shape) bytes *= g.dims.example(d).value_or(0);
    plan.weight_bytes += bytes;
  }

  std::vector<size_t> order(blocks.size());
  auto length = [&](size_t i) { return blocks[i].end - blocks[i].start; };
  const std::function<bool(size_t, size_t)> orders[] = {
      [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; },
      [&](size_t a, size_t b) { return blocks[a].bytes * length(a) > blocks[b].bytes * length(b); },
      [&](size_t a, size_t b) { return length(a) > length(b); },
      [&](size_t a, size_t b) { return blocks[a].start < blocks[b].start; },
  };
  int64_t best = -1;
  for (const auto& less : orders) {
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), less);
    std::vector<int64_t> offsets;
    int64_t height = first_fit(blocks, order, &offsets);
    if (best >= 0 && height >= best) continue;
    best = height;
    for (size_t i = 0; i < blocks.size(); ++i) p.buffers[blocks[i].buffer].offset = offsets[i];
  }
  plan.arena_bytes = std::max<int64_t>(best, 0);
  plan.lower_bound_bytes = most_alive(blocks);
  p.memory = plan;
}

std::string draw_memory(const Program& p) {
  std::vector<int64_t> levels;
  int32_t last = 0;
  for (const Buffer& b : p.buffers) {
    if (b.scope != MemoryScope::kArena || b.offset < 0 || b.start == b.end) continue;
    const int64_t bytes = p.graph->dims.as_constant(b.bytes).value_or(0);
    if (bytes == 0) continue;
    levels.push_back(b.offset);
    levels.push_back(b.offset + bytes);
    last = std::max(last, b.end);
  }
  std::sort(levels.begin(), levels.end());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  if (levels.size() < 2) return {};
  const int32_t cell =
      static_cast<int32_t>(std::max<int64_t>(1, std::min<int64_t>(8, kPictureColumns / last)));
  std::string out;
  for (size_t row = levels.size() - 1; row-- > 0;) {
    std::string line(static_cast<size_t>(last) * cell, ' ');
    for (const Buffer& b : p.buffers) {
      if (b.scope != MemoryScope::kArena || b.offset < 0 || b.start == b.end) continue;
      const int64_t bytes = p.graph->dims.as_constant(b.bytes).value_or(0);
      if (levels[row] < b.offset || levels[row] >= b.offset + bytes) continue;
      size_t from = static_cast<size_t>(b.start) * cell, to = static_cast<size_t>(b.end) * cell;
      for (size_t c = from; c < to; ++c) line[c] = '=';
      for (size_t c = 0; c < b.name.size() && from + c + 1 < to; ++c) line[from + c] = b.name[c];
      if (to - from > 1) line[to - 1] = '|';
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    std::string label = std::to_string(levels[row]);
    out += std::string(label.size() < 9 ? 9 - label.size() : 0, ' ') + label + " |" + line + "\n";
  }
  out += "          +" + std::string(static_cast<size_t>(last) * cell, '-') + "> position\n";
  return out;
}

}  // namespace cuvil::schedule
