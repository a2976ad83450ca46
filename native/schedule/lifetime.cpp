// When each buffer is needed: half-open intervals of statement positions. Called by lower.cpp.
//
//   position   0    1    2    3    4    5
//              k0  for   k1   k2  end   k3
//   t0         [====================)        made before the loop, read in it: lives through it
//   t1                   [=========)         made and used within an iteration
//   t2                                  [    made after it
#include <algorithm>

#include "schedule/lower.h"

namespace cuvil::schedule {

namespace {

class Lifetimes {
 public:
  explicit Lifetimes(Program& p)
      : p_(p), seen_(p.buffers.size(), false), depth_(p.buffers.size(), 0) {}

  void run() {
    walk(p_.body);
    for (size_t i = 0; i < p_.buffers.size(); ++i)
      if (!seen_[i]) p_.buffers[i].start = p_.buffers[i].end = 0;
  }

 private:
  void walk(const Block& b) {
    for (const Statement& s : b) {
      std::visit([&](const auto& x) { statement(x); }, s.v);
      ++position_;
    }
  }

  void touch(BufferId id) {
    if (!id.valid()) return;
    Buffer& b = p_.buffer(id);
    if (!seen_[id.id]) {
      seen_[id.id] = true;
      depth_[id.id] = loops_.size();
      b.start = position_;
      b.end = position_ + 1;
    }
    b.end = std::max(b.end, position_ + 1);
    // Needed again in the next iteration of every loop that it was made outside of.
    if (depth_[id.id] < loops_.size()) loops_[depth_[id.id]].push_back(id);
  }

  void statement(const Kernel& k) {
    for (const BufferAccess& l : k.loads) touch(l.buffer);
    for (const Store& s : k.stores) touch(s.to.buffer);
  }
  void statement(const AllocResult& a) { touch(a.buffer); }
  void statement(const ViewResult&) {}
  void statement(const Lease& l) { touch(l.buffer); }
  void statement(const CopyBuffer& c) {
    touch(c.from);
    touch(c.to);
  }
  void statement(const BindDim& b) { touch(b.scalar); }
  void statement(const Check&) {}
  void statement(const HostCall& h) {
    for (const HostOperand& o : h.operands) touch(o.buffer);
  }
  void statement(const For& f) {
    loops_.emplace_back();
    ++position_;
    walk(*f.body);
    for (BufferId id : loops_.back()) {
      Buffer& b = p_.buffer(id);
      b.end = std::max(b.end, position_ + 1);
    }
    loops_.pop_back();
  }

  Program& p_;
  int32_t position_ = 0;
  std::vector<bool> seen_;
  std::vector<size_t> depth_;                 // loops around the first touch
  std::vector<std::vector<BufferId>> loops_;  // buffers from outside, by open loop
};

}  // namespace

void find_lifetimes(Program& p) { Lifetimes(p).run(); }

}  // namespace cuvil::schedule
