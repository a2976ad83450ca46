// Hand-made schedule programs, compiled and run with a minimal Services table.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "artifact/abi.h"
#include "backend/generate.h"

namespace cuvil::backend::testing {

using schedule::BufferId;

// A strided array of the test, with its own memory.
struct Array {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape, strides;  // strides in bytes
  int64_t offset = 0;                   // of the first element in `memory`
  std::vector<uint8_t> memory;

  uint8_t* data() { return memory.data() + offset; }
  int64_t count() const;
  // Element by its number in C order.
  uint8_t* at(int64_t flat);
  double number(int64_t flat);       // f16 and bool too
  void set(int64_t flat, double v);  // converted with a C cast
};

// layout: a permutation of axes from slow to fast; negative[i]: axis i runs backwards; gap: elements are
// that many item sizes apart on the fastest axis.
Array make_array(DType t, std::vector<int64_t> shape, std::vector<int> order = {},
                 std::vector<bool> negative = {}, int64_t gap = 1);
void fill_random(Array& a, uint32_t seed, double low = -4, double high = 4);

uint16_t half_from_double(double v);
double double_from_half(uint16_t h);

class Runner {
 public:
  Runner();
  ir::Graph graph;
  schedule::Program program;
  std::vector<int64_t> scalars;
  std::vector<int64_t> symbols;  // values, by symbol
  std::string cpu;               // "" for the host

  ir::Dim dim(int64_t v) { return graph.dims.constant(v); }
  ir::Dim symbol(const std::string& name, int64_t value,
                 artifact::Symbol::Kind kind = artifact::Symbol::Kind::kShape);
  ir::Shape shape(const std::vector<int64_t>& v);

  BufferId argument(Array& a);
  BufferId result(DType t, ir::Shape shape);  // C order; emits its AllocResult
  BufferId arena(DType t, ir::Shape shape);   // C order, planned statically
  BufferId constant(DType t, std::vector<int64_t> shape, std::vector<uint8_t> bytes);

  // How a kernel with these axes reads a buffer: axes[i] is the buffer's axis that kernel axis i walks
  // (-1: none, stride 0).
  schedule::BufferAccess access(BufferId b, std::vector<int> axes);
  // Broadcasts to the right, as NumPy does.
  schedule::BufferAccess broadcast(BufferId b, size_t rank);

  schedule::Kernel kernel(schedule::Kernel::Kind kind, ir::Shape extents);
  void add(schedule::Statement s) { program.body.push_back(std::move(s)); }
  template <class T> void push(T s) { add(schedule::Statement{std::move(s)}); }

  // 0, or what the entry returned; compile errors fail the test, and so does an interpreter that does not
  // give the same bits.
  int32_t run();
  Code& compile();
  Array& output(size_t i = 0) { return results[i]; }

  std::vector<Array> results;
  std::vector<uint32_t> raised;
  int64_t payload[4] = {};
  int parallel_calls = 0, polls = 0;
  int64_t pieces = 0;
  int64_t split = 0;  // pieces of parallel_for; 0: one of size grain each
  std::function<int32_t(uint32_t site, const CuvilArray* operands, uint32_t n)> host;

 private:
  friend struct RunnerServices;
  int32_t call_with(const std::function<int32_t(const CuvilServices*, CuvilCall*)>& entry);
  static void expect_same(Array& interpreted, Array& compiled, const std::string& what);
  std::vector<Array*> arguments_;
  std::vector<uint8_t> arena_;
  std::vector<std::unique_ptr<uint8_t[]>> scratch_;
  std::unique_ptr<Code> code_;
  uint32_t result_count_ = 0;
};

// Levels on which every test runs: x86-64-v2, x86-64-v3 and the host, as far as the host can run them.
const std::vector<std::string>& cpu_levels();

}  // namespace cuvil::backend::testing
