// Expressions over symbols, and equality of constants.
#include <algorithm>
#include <bit>

#include "artifact/validate.h"

namespace cuvil::artifact {
namespace {

// Wraps on overflow, as the generated code does.
int64_t apply(ExprNode::Op op, int64_t a, int64_t b) {
  auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (op) {
    case ExprNode::Op::kAdd: return static_cast<int64_t>(ua + ub);
    case ExprNode::Op::kMul: return static_cast<int64_t>(ua * ub);
    case ExprNode::Op::kFloorDiv:
      if (b == 0) return 0;
      if (b == -1) return static_cast<int64_t>(0 - ua);
      return a / b - ((a % b != 0) && ((a % b < 0) != (b < 0)));
    case ExprNode::Op::kMod: {
      if (b == 0 || b == -1) return 0;
      int64_t r = a % b;
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    case ExprNode::Op::kMin: return std::min(a, b);
    case ExprNode::Op::kMax: return std::max(a, b);
    case ExprNode::Op::kConst:
    case ExprNode::Op::kSymbol: break;
  }
  return 0;
}

}  // namespace

int64_t evaluate(const Expr& e, std::span<const int64_t> symbols) {
  int64_t stack[kMaxExprDepth];
  size_t n = 0;
  for (const ExprNode& node : e) {
    if (node.op == ExprNode::Op::kConst || node.op == ExprNode::Op::kSymbol) {
      if (n == kMaxExprDepth) return 0;
      bool constant = node.op == ExprNode::Op::kConst;
      auto index = static_cast<size_t>(node.imm);
      stack[n++] = constant ? node.imm : index < symbols.size() ? symbols[index] : 0;
    } else {
      if (n < 2) return 0;
      --n;
      stack[n - 1] = apply(node.op, stack[n - 1], stack[n]);
    }
  }
  return n == 1 ? stack[0] : 0;
}

bool Const::operator==(const Const& o) const {
  return kind == o.kind && integer == o.integer &&
         std::bit_cast<uint64_t>(real) == std::bit_cast<uint64_t>(o.real) &&
         std::bit_cast<uint64_t>(imag) == std::bit_cast<uint64_t>(o.imag) && text == o.text &&
         items == o.items;
}

}  // namespace cuvil::artifact
