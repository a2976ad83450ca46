// Runs a graph on the host, element by element: bodies through interpret(), everything else by the
// definition of the op. Slow, plain, and independent of views, schedule and codegen.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ops/op.h"

namespace cuvil::ops::testing {

struct Array {
  std::vector<int64_t> shape;
  std::vector<uint64_t> bits;  // C order
};

class Evaluator {
 public:
  explicit Evaluator(ir::Graph& g) : g_(g) {}
  // Values of parameters; everything else follows.
  std::map<int32_t, Array> values;
  // Set when an op raised: class and text.
  std::optional<std::string> raised;

  // Runs all ops of the root region in order, so that checks fire where they stand.
  void run();
  const Array& at(ir::ValueId v) { return values.at(v.id); }

 private:
  int64_t dim(ir::Dim d);
  std::vector<int64_t> sizes(const ir::Shape& s);
  Array pointwise(const ir::Op& op);
  Array movement(const ir::Op& op);
  Array reduce(const ir::Op& op);
  Array matmul(const ir::Op& op);

  ir::Graph& g_;
  std::map<int32_t, int64_t> bound_;  // internal symbols
};

}  // namespace cuvil::ops::testing
