// docs/operations.md is written from the registry: CUVIL_UPDATE=1 writes it, else it must be as it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "ops/op.h"
#include "support/dtype.h"

namespace cuvil::ops::testing {
namespace {

std::string dtypes(const OpInfo& op) {
  std::string_view loops = op.loops;
  if (loops.starts_with('-') || loops.starts_with('!')) loops.remove_prefix(1);
  if (loops.empty()) return "";
  bool boolean = false, integer = false, floating = false;
  for (int t = 0; t <= static_cast<int>(DType::kF64); ++t) {
    const DTypeInfo& d = info(static_cast<DType>(t));
    if (loops.find(d.numpy_char) == loops.npos) continue;
    (d.kind == 'b' ? boolean : d.kind == 'f' ? floating : integer) = true;
  }
  std::string text;
  for (auto [has, name] : {std::pair(boolean, "bool"), {integer, "integers"}, {floating, "floats"}})
    if (has) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

constexpr std::string_view kUfuncOptions =
    ", /, out=None, *, where=True, casting='same_kind', order='K', dtype=None, subok=True";

std::string cell(std::string_view text) {
  std::string out;
  for (char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string document() {
  struct Group {
    const char *prefix, *title;
  };
  static constexpr Group kGroups[] = {
      {"numpy.", "Functions of NumPy"},
      {"ndarray.", "Methods and properties of arrays"},
      {"operator.", "Operators, and the functions of `operator`"},
      {"math.", "Functions of `math`, on Python numbers known at run time"},
      {"scipy.", "Functions of SciPy, once the program has imported it"},
      {"builtins.", "Built-in functions on arrays"},
  };
  std::ostringstream out;
  out << "# Operations\n\n"
         "Written from the op registry by `CUVIL_UPDATE=1 build/dev/tests/test_ops`; a test "
         "compares.\n"
         "\"Computed in\" names the kinds of dtype that an elementwise function computes in: bool, "
         "int8 to\n"
         "uint64, float16 to float64. Other operands are converted to the first of these that "
         "holds them, as\n"
         "NumPy does; such functions also take `dtype=`. Parameters that are given a value which "
         "is not compiled (`out=`, `where=`) are refused\n"
         "with a message that says what to write instead.\n";
  size_t listed = 0;
  for (const Group& group : kGroups) {
    std::map<std::string, const DialectRow*> rows;
    for (const DialectRow* row : all_rows())
      if (row->name.starts_with(group.prefix)) rows.emplace(row->name, row);
    if (rows.empty()) continue;
    listed += rows.size();
    out << "\n## " << group.title << "\n\n| | computed in | |\n|---|---|---|\n";
    for (const auto& [name, row] : rows) {
      const OpInfo* op = row->op.empty() ? nullptr : find_op(row->op);
      out << "| `" << cell(name);
      std::string_view params = row->params;
      if (params.ends_with(kUfuncOptions)) params.remove_suffix(kUfuncOptions.size());
      if (!row->is_property) out << "(" << cell(params) << ")";
      out << "` | " << (op ? dtypes(*op) : "") << " | " << (op ? cell(op->doc) : "") << " |\n";
    }
  }
  EXPECT_EQ(listed, all_rows().size()) << "rows of a prefix that has no section";
  return out.str();
}

TEST(OperationsDoc, IsWrittenFromTheRegistry) {
  const std::string path = std::string(CUVIL_TESTS_DIR) + "/../docs/operations.md";
  const std::string want = document();
  if (std::getenv("CUVIL_UPDATE")) std::ofstream(path) << want;
  std::stringstream got;
  got << std::ifstream(path).rdbuf();
  EXPECT_EQ(got.str(), want)
      << "write it anew: CUVIL_UPDATE=1 test_ops --gtest_filter=OperationsDoc.*";
}

}  // namespace
}  // namespace cuvil::ops::testing
