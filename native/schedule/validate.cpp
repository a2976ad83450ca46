// Checks a finished program without trusting how it was made: memory, bounds of accesses, tapes.
// Called in debug builds, by the text tool and by tests.
#include <algorithm>

#include "schedule/lower.h"

namespace cuvil::schedule {

namespace {

class Validator {
 public:
  explicit Validator(const Program& p) : p_(p), dims_(p.graph->dims) {}

  cuvil::Result<> run() {
    made_.assign(p_.buffers.size(), false);
    for (size_t i = 0; i < p_.buffers.size(); ++i) {
      MemoryScope s = p_.buffers[i].scope;
      made_[i] =
          s == MemoryScope::kArgument || s == MemoryScope::kScalar || s == MemoryScope::kConstant;
    }
    CUVIL_CHECK(block(p_.body));
    return memory();
  }

 private:
  Error bad(std::string what) const {
    return make_error(ErrorClass::kInternal, "the schedule is inconsistent: " + what);
  }

  // ---- statements: memory exists before it is used, positions run as lifetimes say
  cuvil::Result<> block(const Block& b) {
    for (const Statement& s : b) {
      CUVIL_CHECK(std::visit([&](const auto& x) { return statement(x); }, s.v));
      ++position_;
    }
    return Ok{};
  }
  cuvil::Result<> use(BufferId id, bool writes) {
    if (id.id < 0 || static_cast<size_t>(id.id) >= p_.buffers.size()) return bad("no such buffer");
    const Buffer& b = p_.buffer(id);
    if (writes && (b.scope == MemoryScope::kConstant || b.scope == MemoryScope::kScalar))
      return bad("a write to constant memory " + b.name);
    const bool by_itself = b.scope == MemoryScope::kArena && dims_.as_constant(b.bytes);
    if (!made_[id.id] && !(writes && by_itself) && !(by_itself && b.start < position_))
      return bad(b.name + " is used before it is made");
    made_[id.id] = true;
    if (position_ < b.start || position_ >= b.end)
      return bad(b.name + " is used outside of its lifetime");
    return Ok{};
  }

  // A constant access stays within its buffer.
  cuvil::Result<> access(BufferId id, const ops::Access& a, const ir::Shape& extents, DType dtype) {
    const Buffer& b = p_.buffer(id);
    if (a.strides.size() != extents.size()) return bad("an access of another rank to " + b.name);
    if (b.scope == MemoryScope::kArgument || b.scope == MemoryScope::kHost) return Ok{};
    auto size = dims_.as_constant(b.bytes), offset = dims_.as_constant(a.offset);
    if (!size || !offset) return Ok{};
    int64_t lo = *offset, hi = *offset + size_of(dtype);
    for (size_t k = 0; k < extents.size(); ++k) {
      auto extent = dims_.as_constant(extents[k]), stride = dims_.as_constant(a.strides[k]);
      if (extent == 0) return Ok{};
      if (!extent || !stride) return Ok{};
      int64_t reach = (*extent - 1) * *stride;
      (reach < 0 ? lo : hi) += reach;
    }
    if (lo < 0 || hi > *size) return bad("an access outside of " + b.name);
    return Ok{};
  }

  cuvil::Result<> tape(const ops::Tape& t, const Kernel& k, bool epilogue) {
    for (size_t i = 0; i < t.insts.size(); ++i) {
      const ops::Inst& x = t.insts[i];
      for (ops::Ref r : {x.a, x.b, x.c})
        if (r.valid() && static_cast<size_t>(r.id) >= i)
          return bad("a tape refers to what follows");
      if (x.prim == ops::Prim::kLoad && (x.imm >= k.loads.size() || k.loads[x.imm].dtype != x.type))
        return bad("a tape loads what the kernel does not read");
      if (x.prim == ops::Prim::kIndex && x.imm >= k.extents.size())
        return bad("an index of no axis");
      if (x.prim == ops::Prim::kAccumulator &&
          (!epilogue || (k.kind == Kernel::Kind::kReduce && x.imm >= k.reductions.size())))
        return bad("an accumulator that is none");
    }
    return Ok{};
  }

  cuvil::Result<> statement(const Kernel& k) {
    CUVIL_CHECK(tape(k.tape, k, false));
    CUVIL_CHECK(tape(k.epilogue, k, true));
    const bool map = k.kind == Kernel::Kind::kMap;
    if (k.stores.empty() && !k.may_raise) return bad(k.name + " stores nothing");
    if (k.kind == Kernel::Kind::kMatMul &&
        (k.extents.size() < 3 || !k.lhs.valid() || !k.rhs.valid()))
      return bad(k.name + " is no matmul");
    const size_t kept = map                               ? k.extents.size()
                        : k.kind == Kernel::Kind::kReduce ? k.kept
                                                          : k.extents.size() - 1;
    for (const BufferAccess& l : k.loads) {
      CUVIL_CHECK(use(l.buffer, false));
      CUVIL_CHECK(access(l.buffer, l.access, k.extents, l.dtype));
    }
    for (const ops::Inst& x : k.epilogue.insts)
      if (x.prim == ops::Prim::kLoad)
        for (size_t a = kept; a < k.extents.size(); ++a)
          if (!dims_.is_constant(k.loads[x.imm].access.strides[a], 0))
            return bad("an epilogue's load moves along a reduced axis");
    for (const Store& s : k.stores) {
      const ops::Tape& t = map ? k.tape : k.epilogue;
      if (!s.value.valid() || static_cast<size_t>(s.value.id) >= t.insts.size())
        return bad("a store of no value");
      if (t.type(s.value) != s.to.dtype) return bad(k.name + " stores another dtype");
      CUVIL_CHECK(use(s.to.buffer, true));
      CUVIL_CHECK(access(s.to.buffer, s.to.access, k.extents, s.to.dtype));
      for (size_t a = 0; a < k.extents.size(); ++a) {
        bool zero = dims_.is_constant(s.to.access.strides[a], 0);
        auto extent = dims_.as_constant(k.extents[a]);
        if (a < kept && zero && extent.value_or(0) > 1)
          return bad(k.name + " stores many elements in one place");
        if (a >= kept && !zero) return bad(k.name + " stores along a reduced axis");
      }
    }
    return Ok{};
  }
  cuvil::Result<> statement(const AllocResult& a) {
    made_[a.buffer.id] = true;
    return use(a.buffer, true);
  }
  cuvil::Result<> statement(const Lease& l) {
    made_[l.buffer.id] = true;
    return use(l.buffer, true);
  }
  cuvil::Result<> statement(const ViewResult& v) {
    if (v.shape.size() != v.access.strides.size()) return bad("a view of another rank");
    return Ok{};
  }
  cuvil::Result<> statement(const CopyBuffer& c) {
    CUVIL_CHECK(use(c.from, false));
    return use(c.to, true);
  }
  cuvil::Result<> statement(const BindDim& b) { return use(b.scalar, false); }
  cuvil::Result<> statement(const Check& c) {
    if (c.site >= p_.sites.size()) return bad("a check without site");
    return Ok{};
  }
  cuvil::Result<> statement(const HostCall& h) {
    if (h.site >= p_.sites.size()) return bad("a host call without site");
    for (const HostOperand& o : h.operands) CUVIL_CHECK(use(o.buffer, false));
    for (size_t i = 0; i < p_.buffers.size(); ++i)
      for (const artifact::HostResult& r : p_.sites[h.site].results)
        if (p_.buffers[i].scope == MemoryScope::kHost && p_.buffers[i].index == r.slot)
          made_[i] = true;
    return Ok{};
  }
  cuvil::Result<> statement(const For& f) {
    ++position_;
    return block(*f.body);
  }

  // ---- the arena
  cuvil::Result<> memory() const {
    struct Placed {
      const Buffer* buffer;
      int64_t bytes;
    };
    std::vector<Placed> placed;
    for (const Buffer& b : p_.buffers) {
      if (b.scope != MemoryScope::kArena || b.start == b.end) continue;
      auto bytes = dims_.as_constant(b.bytes);
      if (!bytes) {
        if (b.offset >= 0) return bad(b.name + " has an offset, but no constant size");
        continue;
      }
      if (b.offset < 0 || b.offset % 64 != 0) return bad(b.name + " is not aligned");
      if (b.offset + *bytes > p_.memory.arena_bytes) return bad(b.name + " leaves the arena");
      for (const Placed& o : placed) {
        bool in_time = b.start < o.buffer->end && o.buffer->start < b.end;
        bool in_space =
            b.offset < o.buffer->offset + o.bytes && o.buffer->offset < b.offset + *bytes;
        if (in_time && in_space) return bad(b.name + " and " + o.buffer->name + " overlap");
      }
      placed.push_back({&b, *bytes});
    }
    if (p_.memory.arena_bytes < p_.memory.lower_bound_bytes)
      return bad("the arena is smaller than its lower bound");
    return Ok{};
  }

  const Program& p_;
  const ir::DimTable& dims_;
  std::vector<bool> made_;
  int32_t position_ = 0;
};

}  // namespace

cuvil::Result<> validate_plan(const Program& p) { return Validator(p).run(); }

}  // namespace cuvil::schedule
