// See harness.h.
#include "harness.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cmath>
#include <random>
#include <tuple>

#include "backend/machine.h"
#include "interpret/interpret.h"

namespace cuvil::backend::testing {

uint16_t half_from_double(double v) {
  _Float16 h = static_cast<_Float16>(v);
  uint16_t u;
  memcpy(&u, &h, 2);
  return u;
}

double double_from_half(uint16_t u) {
  _Float16 h;
  memcpy(&h, &u, 2);
  return static_cast<double>(h);
}

int64_t Array::count() const {
  int64_t n = 1;
  for (int64_t s : shape) n *= s;
  return n;
}

uint8_t* Array::at(int64_t flat) {
  int64_t byte = 0;
  for (size_t i = shape.size(); i-- > 0;) {
    byte += flat % shape[i] * strides[i];
    flat /= shape[i];
  }
  return data() + byte;
}

namespace {
template <class T> double read(const uint8_t* p) {
  T v;
  memcpy(&v, p, sizeof v);
  return static_cast<double>(v);
}
template <class T> void write(uint8_t* p, double v) {
  T x = static_cast<T>(v);
  memcpy(p, &x, sizeof x);
}
}  // namespace

double Array::number(int64_t flat) {
  const uint8_t* p = at(flat);
  switch (dtype) {
    case DType::kBool: return *p;
    case DType::kI8: return read<int8_t>(p);
    case DType::kI16: return read<int16_t>(p);
    case DType::kI32: return read<int32_t>(p);
    case DType::kI64: return read<int64_t>(p);
    case DType::kU8: return read<uint8_t>(p);
    case DType::kU16: return read<uint16_t>(p);
    case DType::kU32: return read<uint32_t>(p);
    case DType::kU64: return read<uint64_t>(p);
    case DType::kF16: return double_from_half(static_cast<uint16_t>(read<uint16_t>(p)));
    case DType::kF32: return read<float>(p);
    default: return read<double>(p);
  }
}

void Array::set(int64_t flat, double v) {
  uint8_t* p = at(flat);
  switch (dtype) {
    case DType::kBool: *p = v != 0; break;
    case DType::kI8: write<int8_t>(p, v); break;
    case DType::kI16: write<int16_t>(p, v); break;
    case DType::kI32: write<int32_t>(p, v); break;
    case DType::kI64: write<int64_t>(p, v); break;
    case DType::kU8: write<uint8_t>(p, v); break;
    case DType::kU16: write<uint16_t>(p, v); break;
    case DType::kU32: write<uint32_t>(p, v); break;
    case DType::kU64: write<uint64_t>(p, v); break;
    case DType::kF16: {
      uint16_t h = half_from_double(v);
      memcpy(p, &h, 2);
      break;
    }
    case DType::kF32: write<float>(p, v); break;
    default: write<double>(p, v); break;
  }
}

Array make_array(DType t, std::vector<int64_t> shape, std::vector<int> order,
                 std::vector<bool> negative, int64_t gap) {
  Array a;
  a.dtype = t;
  a.shape = shape;
  a.strides.resize(shape.size());
  if (order.empty())
    for (size_t i = 0; i < shape.size(); ++i) order.push_back(static_cast<int>(i));
  int64_t step = size_of(t) * gap;
  for (size_t i = order.size(); i-- > 0;) {
    a.strides[order[i]] = step;
    step *= shape[order[i]];
  }
  a.memory.assign(static_cast<size_t>(std::max<int64_t>(step, size_of(t))) + 64, 0);
  for (size_t i = 0; i < negative.size(); ++i) {
    if (!negative[i] || shape[i] == 0) continue;
    a.offset += (shape[i] - 1) * a.strides[i];
    a.strides[i] = -a.strides[i];
  }
  return a;
}

void fill_random(Array& a, uint32_t seed, double low, double high) {
  std::mt19937 g(seed);
  std::uniform_real_distribution<double> d(low, high);
  for (int64_t i = 0; i < a.count(); ++i) {
    double v = d(g);
    if (is_unsigned(a.dtype)) v = std::abs(v);
    if (is_bool(a.dtype)) v = v > 0;
    a.set(i, v);
  }
}

// ---- Services ------------------------------------------------------------------------------------

struct RunnerServices {
  static Runner& of(CuvilCall* c) { return *static_cast<Runner*>(c->host); }

  static void* alloc_result(CuvilCall* c, uint32_t index, const int64_t* shape) {
    Runner& r = of(c);
    if (r.results.size() <= index) r.results.resize(index + 1);
    for (const auto& s : r.program.body) {
      auto* alloc = std::get_if<schedule::AllocResult>(&s.v);
      if (alloc == nullptr || alloc->result != index) continue;
      const schedule::Buffer& b = r.program.buffer(alloc->buffer);
      r.results[index] = make_array(b.dtype, std::vector<int64_t>(shape, shape + b.shape.size()));
      memset(r.results[index].memory.data(), 0xcd, r.results[index].memory.size());
      return r.results[index].data();
    }
    return nullptr;
  }
  static int32_t view_result(CuvilCall*, uint32_t, uint32_t, int64_t, const int64_t*,
                             const int64_t*) {
    return 0;
  }
  static void* lease(CuvilCall* c, int64_t bytes, uint32_t) {
    auto& list = of(c).scratch_;
    list.emplace_back(new uint8_t[bytes + 64]);
    auto at = reinterpret_cast<uintptr_t>(list.back().get());
    return reinterpret_cast<void*>((at + 63) / 64 * 64);
  }
  // Pieces in reverse order: results must not depend on it. The error of the lowest iteration wins.
  static int32_t parallel_for(CuvilCall* c, CuvilBody body, void* context, int64_t n,
                              int64_t grain) {
    Runner& r = of(c);
    ++r.parallel_calls;
    int64_t size = r.split > 0 ? std::max(grain, (n + r.split - 1) / r.split) : grain;
    int32_t code = 0;
    for (int64_t begin = (n - 1) / size * size; begin >= 0; begin -= size) {
      ++r.pieces;
      int32_t got = body(c, context, begin, std::min(n, begin + size));
      if (got != 0) code = got;
    }
    return code;
  }
  static int32_t call_host(CuvilCall* c, uint32_t site, const CuvilArray* operands, uint32_t n) {
    return of(c).host(site, operands, n);
  }
  static int32_t poll(CuvilCall* c) {
    ++of(c).polls;
    return 0;
  }
  static int32_t raise(CuvilCall* c, uint32_t site) {
    of(c).raised.push_back(site);
    memcpy(of(c).payload, c->payload, sizeof c->payload);
    return static_cast<int32_t>(site) + 1;
  }
};

Runner::Runner() { program.graph = &graph; }

ir::Dim Runner::symbol(const std::string& name, int64_t value, artifact::Symbol::Kind kind) {
  ir::DimTable::SymbolInfo info;
  info.name = name;
  info.kind = kind;
  if (kind != artifact::Symbol::Kind::kInternal) info.example = value;
  ir::SymbolId id = graph.dims.add_symbol(info);
  symbols.resize(id.id + 1);
  symbols[id.id] = value;
  return graph.dims.symbol(id);
}

ir::Shape Runner::shape(const std::vector<int64_t>& v) {
  ir::Shape s;
  for (int64_t x : v) s.push_back(dim(x));
  return s;
}

namespace {

ir::Shape c_strides(ir::DimTable& dims, const ir::Shape& shape, DType t) {
  ir::Shape out(shape.size());
  ir::Dim step = dims.constant(size_of(t));
  for (size_t i = shape.size(); i-- > 0;) {
    out[i] = step;
    step = dims.mul(step, shape[i]);
  }
  return out;
}

}  // namespace

BufferId Runner::argument(Array& a) {
  schedule::Buffer b;
  b.scope = schedule::MemoryScope::kArgument;
  b.index = static_cast<uint32_t>(arguments_.size());
  b.dtype = a.dtype;
  b.shape = shape(a.shape);
  b.strides = shape(a.strides);
  arguments_.push_back(&a);
  program.buffers.push_back(b);
  return {static_cast<int32_t>(program.buffers.size()) - 1};
}

BufferId Runner::result(DType t, ir::Shape s) {
  schedule::Buffer b;
  b.scope = schedule::MemoryScope::kResult;
  b.index = result_count_++;
  b.dtype = t;
  b.strides = c_strides(graph.dims, s, t);
  b.shape = std::move(s);
  program.buffers.push_back(b);
  BufferId id{static_cast<int32_t>(program.buffers.size()) - 1};
  push(schedule::AllocResult{b.index, id});
  return id;
}

BufferId Runner::arena(DType t, ir::Shape s) {
  schedule::Buffer b;
  b.scope = schedule::MemoryScope::kArena;
  b.dtype = t;
  b.strides = c_strides(graph.dims, s, t);
  b.shape = s;
  b.bytes = graph.dims.mul(graph.dims.product(s), dim(size_of(t)));
  b.offset = program.memory.arena_bytes;
  program.memory.arena_bytes += (*graph.dims.as_constant(b.bytes) + 63) / 64 * 64;
  program.buffers.push_back(b);
  return {static_cast<int32_t>(program.buffers.size()) - 1};
}

BufferId Runner::constant(DType t, std::vector<int64_t> s, std::vector<uint8_t> bytes) {
  schedule::Buffer b;
  b.scope = schedule::MemoryScope::kConstant;
  b.dtype = t;
  b.shape = shape(s);
  b.strides = c_strides(graph.dims, b.shape, t);
  b.data = std::move(bytes);
  program.buffers.push_back(b);
  return {static_cast<int32_t>(program.buffers.size()) - 1};
}

schedule::BufferAccess Runner::access(BufferId id, std::vector<int> axes) {
  const schedule::Buffer& b = program.buffer(id);
  schedule::BufferAccess a{id, {dim(0), {}}, b.dtype};
  for (int x : axes) a.access.strides.push_back(x < 0 ? dim(0) : b.strides[x]);
  return a;
}

schedule::BufferAccess Runner::broadcast(BufferId id, size_t rank) {
  const schedule::Buffer& b = program.buffer(id);
  std::vector<int> axes(rank, -1);
  for (size_t i = 0; i < b.shape.size(); ++i) {
    bool one = graph.dims.is_constant(b.shape[i], 1);
    axes[rank - b.shape.size() + i] = one ? -1 : static_cast<int>(i);
  }
  return access(id, axes);
}

schedule::Kernel Runner::kernel(schedule::Kernel::Kind kind, ir::Shape extents) {
  schedule::Kernel k;
  k.kind = kind;
  k.name = "k" + std::to_string(program.body.size());
  k.extents = std::move(extents);
  return k;
}

Code& Runner::compile() {
  if (!code_) {
    CpuOptions options;
    options.cpu = cpu;
    options.want_llvm = getenv("CUVIL_TEST_LLVM") != nullptr;
    options.want_asm = getenv("CUVIL_TEST_ASM") != nullptr;
    auto made = generate_cpu(program, options);
    if (!made.ok()) ADD_FAILURE() << made.error().found;
    code_ = std::make_unique<Code>(made.ok() ? std::move(*made) : Code());
    if (options.want_llvm) fputs(code_->llvm_text.c_str(), stderr);
    if (options.want_asm) fputs(code_->asm_text.c_str(), stderr);
  }
  return *code_;
}

int32_t Runner::run() {
  Code& code = compile();
  if (code.blob.empty()) return -1;
  size_t size = (code.blob.size() + 4095) / 4096 * 4096;
  void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(at, code.blob.data(), code.blob.size());
  mprotect(at, size, PROT_READ | PROT_EXEC);
  auto entry = reinterpret_cast<CuvilEntry>(static_cast<uint8_t*>(at) + code.entry_offset);

  auto all_memory = [&] {
    std::vector<std::vector<uint8_t>> out;
    for (Array* a : arguments_) out.push_back(a->memory);
    return out;
  };
  auto before = all_memory();
  symbols.resize(graph.dims.symbol_count());
  auto symbols_before = symbols;
  const int32_t got = call_with([&](auto* services, auto* call) { return entry(services, call); });
  munmap(at, size);
  if (host) return got;  // it may count its calls

  // The interpreter must do the same, bit by bit.
  auto after = all_memory();
  auto results_after = results;
  auto symbols_after = symbols;
  auto rest = std::tuple(raised, parallel_calls, polls, pieces, std::to_array(payload));
  results.clear();
  symbols = symbols_before;
  for (size_t i = 0; i < before.size(); ++i) arguments_[i]->memory = before[i];
  auto machine = machine_for(cpu);
  auto prepared = interpret::prepare(program, (*machine)->target);
  EXPECT_TRUE(prepared.ok() && prepared->code)
      << "not interpreted: " << program.body.size() << " statements";
  if (prepared.ok() && prepared->code) {
    const int32_t interpreted = call_with([&](auto* services, auto* call) {
      return interpret::run(*prepared->code, services, call);
    });
    EXPECT_EQ(interpreted, got);
    EXPECT_EQ(results.size(), results_after.size());
    for (size_t i = 0; got == 0 && i < std::min(results.size(), results_after.size()); ++i)
      expect_same(results[i], results_after[i], "result " + std::to_string(i));
    for (size_t i = 0; got == 0 && i < after.size(); ++i) {
      Array other = *arguments_[i];
      other.memory = after[i];
      expect_same(*arguments_[i], other, "argument " + std::to_string(i));
    }
  }
  for (size_t i = 0; i < after.size(); ++i) arguments_[i]->memory = after[i];
  results = std::move(results_after);
  symbols = std::move(symbols_after);
  std::array<int64_t, 4> numbers;
  std::tie(raised, parallel_calls, polls, pieces, numbers) = std::move(rest);
  std::copy(numbers.begin(), numbers.end(), payload);
  return got;
}

void Runner::expect_same(Array& interpreted, Array& compiled, const std::string& what) {
  if (interpreted.memory == compiled.memory) return;
  ASSERT_EQ(interpreted.shape, compiled.shape) << what;
  int shown = 0;
  for (int64_t i = 0; i < compiled.count() && shown < 3; ++i) {
    if (memcmp(interpreted.at(i), compiled.at(i), size_of(compiled.dtype)) == 0) continue;
    const double x = interpreted.number(i), y = compiled.number(i);
    if (std::isnan(x) && std::isnan(y)) continue;  // whichever NaN
    ADD_FAILURE() << what << " element " << i << ": interpreted " << x << ", compiled " << y;
    ++shown;
  }
}

int32_t Runner::call_with(const std::function<int32_t(const CuvilServices*, CuvilCall*)>& entry) {
  CuvilServices services{};
  services.size = sizeof services;
  services.version = CUVIL_ABI_VERSION;
  services.alloc_result = RunnerServices::alloc_result;
  services.view_result = RunnerServices::view_result;
  services.lease_scratch = RunnerServices::lease;
  services.parallel_for = RunnerServices::parallel_for;
  services.call_host = RunnerServices::call_host;
  services.poll = RunnerServices::poll;
  services.raise = RunnerServices::raise;

  std::vector<CuvilArray> arrays(arguments_.size());
  for (size_t i = 0; i < arrays.size(); ++i)
    arrays[i] = {arguments_[i]->data(), arguments_[i]->shape.data(), arguments_[i]->strides.data(),
                 nullptr};
  arena_.assign(program.memory.arena_bytes + 64, 0xee);
  symbols.resize(graph.dims.symbol_count());
  CuvilCall call{};
  call.abi_version = CUVIL_ABI_VERSION;
  call.arrays = arrays.data();
  call.scalars = scalars.data();
  call.dims = symbols.data();
  auto arena = reinterpret_cast<uintptr_t>(arena_.data());
  call.arena = reinterpret_cast<void*>((arena + 63) / 64 * 64);
  call.services = &services;
  call.host = this;
  return entry(&services, &call);
}

const std::vector<std::string>& cpu_levels() {
  static const std::vector<std::string> levels = [] {
    std::vector<std::string> out{"x86-64-v2"};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) out.push_back("x86-64-v3");
    out.push_back("");
    return out;
  }();
  return levels;
}

}  // namespace cuvil::backend::testing
