// Calls of dialect rows compared with what NumPy gave (expectations.txt, made by make_expectations.py):
// dtype, shape, memory order, scalar or array, every bit of every element, and the texts of errors.
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "evaluate.h"
#include "harness.h"
#include "ops/interpret.h"
#include "ops/layout.h"
#include "ops/promote.h"

namespace cuvil::ops::testing {
namespace {

std::vector<std::string> split(const std::string& s, char by) {
  // At depth 0 of brackets only.
  std::vector<std::string> out(1);
  int depth = 0;
  for (char c : s) {
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c == by && depth == 0)
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}
uint64_t hex(const std::string& s) {
  uint64_t v = 0;
  std::from_chars(s.data(), s.data() + s.size(), v, 16);
  return v;
}
int64_t decimal(const std::string& s) {
  int64_t v = 0;
  std::from_chars(s.data(), s.data() + s.size(), v, 10);
  return v;
}

struct Case {
  Harness h;
  Evaluator run{h.g};
  const std::map<std::string, std::string>& named;
  explicit Case(const std::map<std::string, std::string>& names) : named(names) {}

  static bool parse_array(const std::string& text, DType* t, Array* a, std::string* order) {
    size_t open = text.find('['), equal = text.find('=');
    if (open == text.npos || equal == text.npos || !parse_dtype(text.substr(0, open), t))
      return false;
    size_t close = text.find(']');
    for (const std::string& d : split(text.substr(open + 1, close - open - 1), ','))
      if (!d.empty()) a->shape.push_back(decimal(d));
    *order = text.substr(close + 1, equal - close - 1);
    for (const std::string& x : split(text.substr(equal + 1), ','))
      if (!x.empty()) a->bits.push_back(hex(x));
    return true;
  }

  ArgValue array(const std::string& text, bool fortran, bool scalar) {
    DType t;
    Array a;
    std::string order;
    EXPECT_TRUE(parse_array(text, &t, &a, &order)) << text;
    ir::Shape shape;
    for (int64_t n : a.shape) shape.push_back(h.b.dim(n));
    TensorArg x = h.input(t, shape, fortran ? artifact::Layout::kF : artifact::Layout::kC);
    x.scalar = scalar;
    run.values[x.value.id] = std::move(a);
    return x;
  }

  ArgValue parse(const std::string& s) {
    if (s[0] == '$') return parse(named.at(s));
    if (s == "k") return ArgValue::Missing{};
    if (s == "n") return kNone;
    if (s == "e") return ArgValue::Ellipsis{};
    if (s.starts_with("i:")) return decimal(s.substr(2));
    if (s.starts_with("b:")) return s[2] == '1';
    if (s.starts_with("f:")) return std::bit_cast<double>(hex(s.substr(2)));
    if (s.starts_with("t:")) return s.substr(2);
    if (s.starts_with("wi:"))
      return h.run_time_int("i" + std::to_string(h.g.dims.symbol_count()), decimal(s.substr(3)));
    if (s.starts_with("wf:")) {
      ir::ValueId v = ir::add_scalar_input(h.g, static_cast<uint32_t>(h.g.inputs.size()),
                                           "f" + std::to_string(h.g.inputs.size()));
      run.values[v.id] = {{}, {hex(s.substr(3))}};
      return TensorArg{v, Weak::kFloat, true};
    }
    if (s.starts_with("d:")) {
      DType t = DType::kF64;
      EXPECT_TRUE(parse_dtype(s.substr(2), &t)) << s;
      return t;
    }
    if (s.starts_with("s:")) {
      std::string text = s.substr(2);
      text.insert(text.find('='), "[]");
      return array(text, false, true);
    }
    if (s.starts_with("F:")) return array(s.substr(2), true, false);
    if (s[0] == '(') {
      ArgList items;
      std::string inner = s.substr(1, s.size() - 2);
      if (!inner.empty())
        for (const std::string& x : split(inner, ';')) items.push_back(parse(x));
      return ArgValue::list(std::move(items));
    }
    if (s[0] == '[') {
      // Parts may hold colons of their own ("i:5"): they begin with a tag.
      std::vector<ArgValue> parts;
      std::string inner = s.substr(1, s.size() - 2);
      for (size_t at = 0; at < inner.size();) {
        size_t end = inner[at] == 'n' ? at + 1 : inner.find(':', inner.find(':', at) + 1);
        if (end == inner.npos) end = inner.size();
        parts.push_back(parse(inner.substr(at, end - at)));
        at = end + 1;
      }
      return slice(parts.at(0), parts.at(1), parts.at(2));
    }
    return array(s, false, false);
  }
};

// Distance in units in the last place; NaNs are all alike.
uint64_t distance(DType t, uint64_t a, uint64_t b) {
  if (a == b) return 0;
  if (!is_float(t)) return UINT64_MAX;
  double x = float_value(t, a), y = float_value(t, b);
  if (std::isnan(x) && std::isnan(y)) return 0;
  if (std::isnan(x) || std::isnan(y) || std::isinf(x) || std::isinf(y)) return UINT64_MAX;
  if (x == 0 && y == 0) return UINT64_MAX;  // zeros of different signs
  const uint64_t sign = uint64_t{1} << (size_of(t) * 8 - 1);
  auto key = [&](uint64_t v) { return v & sign ? sign - (v & ~sign) : sign + v; };
  uint64_t p = key(a), q = key(b);
  return p > q ? p - q : q - p;
}

// How far a value may be from NumPy's: 0, except where elementary functions or sums are in it.
uint64_t tolerance(std::string_view row, DType t) {
  static const std::set<std::string_view> kInexact = {
      "exp",   "exp2",      "expm1",       "log",     "log2",        "log10",  "log1p",
      "sin",   "cos",       "tan",         "arcsin",  "arccos",      "arctan", "sinh",
      "cosh",  "tanh",      "arcsinh",     "arccosh", "arctanh",     "cbrt",   "arctan2",
      "hypot", "logaddexp", "logaddexp2",  "erf",     "erfc",        "expit",  "sinc",
      "power", "pow",       "float_power", "softmax", "log_softmax", "norm",   "var",
      "std",   "mean",      "sqrt",        "atanh",   "acosh"};
  return kInexact.contains(row.substr(row.rfind('.') + 1)) ? (t == DType::kF16 ? 1 : 4) : 0;
}

std::string compare(Case& c, std::string_view row, const ArgValue& got, std::string want) {
  if (!want.empty() && want[0] == '$') want = c.named.at(want);
  if (want.starts_with("(")) {
    const auto* list = got.get<std::shared_ptr<ArgList>>();
    if (!list) return "not a list but " + c.h.show(got);
    std::string inner = want.substr(1, want.size() - 2);
    std::vector<std::string> items;
    if (!inner.empty()) items = split(inner, ';');
    if (items.size() != (*list)->size()) return std::to_string((*list)->size()) + " items";
    for (size_t k = 0; k < items.size(); ++k)
      if (std::string e = compare(c, row, (**list)[k], items[k]); !e.empty())
        return "item " + std::to_string(k) + ": " + e;
    return {};
  }
  const auto* t = got.get<TensorArg>();
  if (!t) {
    // A static or run-time Python number.
    if (const auto* d = got.get<ir::Dim>()) {
      auto v = c.h.g.dims.example(*d);
      return v && want == "i:" + std::to_string(*v) ? "" : "dim " + c.h.show(got);
    }
    if (const auto* v = got.get<int64_t>())
      return want == "i:" + std::to_string(*v) ? "" : std::to_string(*v);
    if (const auto* v = got.get<bool>()) return want == (*v ? "b:1" : "b:0") ? "" : c.h.show(got);
    return "unexpected kind " + c.h.show(got);
  }
  const ir::Type type = c.h.b.type(t->value);
  Array expected;
  DType dtype = DType::kF64;
  std::string order;
  bool scalar = false;
  Weak weak = Weak::kNo;
  if (want.starts_with("s:")) {
    want = want.substr(2);
    want.insert(want.find('='), "[]");
    scalar = true;
  }
  if (want.starts_with("f:") || want.starts_with("i:") || want.starts_with("b:")) {
    weak = want[0] == 'f' ? Weak::kFloat : want[0] == 'i' ? Weak::kInt : Weak::kBool;
    dtype = want[0] == 'f' ? DType::kF64 : want[0] == 'i' ? DType::kI64 : DType::kBool;
    expected.bits = {want[0] == 'f' ? hex(want.substr(2))
                                    : static_cast<uint64_t>(decimal(want.substr(2)))};
  } else if (!Case::parse_array(want, &dtype, &expected, &order)) {
    return "unreadable expectation";
  }
  if (type.dtype != dtype) return "dtype " + std::string(info(type.dtype).name);
  if (t->weak != weak) return "weakness";
  if (weak == Weak::kNo && t->scalar != scalar) return t->scalar ? "a scalar" : "an array";
  const Array& a = c.run.at(t->value);
  if (a.shape != expected.shape) return "shape " + c.h.show(got);
  if (a.bits.size() != expected.bits.size()) return "element count";
  for (size_t k = 0; k < a.bits.size(); ++k) {
    if (distance(dtype, a.bits[k], expected.bits[k]) <= tolerance(row, dtype)) continue;
    char text[160];
    std::snprintf(text, sizeof text, "element %zu is %llx (%g), not %llx (%g)", k,
                  static_cast<unsigned long long>(a.bits[k]),
                  is_float(dtype) ? float_value(dtype, a.bits[k]) : 0.0,
                  static_cast<unsigned long long>(expected.bits[k]),
                  is_float(dtype) ? float_value(dtype, expected.bits[k]) : 0.0);
    return text;
  }
  std::string made;
  for (uint8_t axis : layout_order(c.h.g, t->value))
    if (a.shape[axis] != 1) made += static_cast<char>('0' + axis);
  if (std::is_sorted(made.begin(), made.end()) || a.bits.empty()) made.clear();
  std::string wanted = order.empty() ? "" : order.substr(1);
  if (made != wanted) return "memory order '" + made + "', not '" + wanted + "'";
  return {};
}

// "TypeError: text", with the classes of ours that NumPy's users catch as NumPy's.
std::string error_text(std::string_view cls, const std::string& found) {
  std::string name(cls.substr(cls.rfind('.') + 1));
  if (name == "ShapeError") name = "ValueError";
  if (name == "DTypeError") name = "TypeError";
  return name + ": " + found;
}

// Texts are NumPy's; where ours says more or NumPy's depends on the version, the beginning counts.
bool same_error(const std::string& got, const std::string& want) {
  static const char* kBeginnings[] = {"ValueError: setting an array element with a sequence",
                                      "IndexError: only integers, slices"};
  for (const char* b : kBeginnings)
    if (want.starts_with(b) && got.starts_with(b)) return true;
  return got == want;
}

TEST(Expectations, AllRowsGiveWhatNumPyGives) {
  std::ifstream file(std::string(CUVIL_TESTS_DIR) + "/native/ops/expectations.txt");
  ASSERT_TRUE(file) << "expectations.txt is missing";
  std::map<std::string, std::string> named;
  std::string line;
  size_t calls = 0, failures = 0;
  while (std::getline(file, line)) {
    if (line[0] == '$') {
      size_t space = line.find(' ');
      named[line.substr(0, space)] = line.substr(space + 1);
      continue;
    }
    const size_t arrow = line.find(" -> ");
    std::vector<std::string> words = split(line.substr(0, arrow), ' ');
    const std::string want = line.substr(arrow + 4);
    Case c(named);
    std::vector<ArgValue> args;
    for (size_t k = 1; k < words.size(); ++k) args.push_back(c.parse(words[k]));
    Result<ArgValue> r = c.h.call(words[0], args);
    std::string wrong;
    if (r.ok()) {
      c.run.run();
      if (c.run.raised) {
        size_t colon = c.run.raised->find(": ");
        std::string e = error_text(c.run.raised->substr(0, colon), c.run.raised->substr(colon + 2));
        if (want[0] != '!' || !same_error(e, want.substr(1))) wrong = "raises " + e;
      } else if (want[0] == '!') {
        wrong = "no error but " + c.h.show(*r);
      } else {
        wrong = compare(c, words[0], *r, want);
        if (wrong.empty() && !ir::verify(c.h.g).ok()) wrong = ir::verify(c.h.g).error().found;
      }
    } else {
      std::string e = error_text(python_class_name(r.error().cls), r.error().found);
      if (want[0] != '!' || !same_error(e, want.substr(1))) wrong = e;
    }
    ++calls;
    if (wrong.empty()) continue;
    if (++failures <= 60) ADD_FAILURE() << line.substr(0, 300) << "\n  got: " << wrong;
  }
  EXPECT_EQ(failures, 0u);
  EXPECT_GT(calls, 3000u);
}

}  // namespace
}  // namespace cuvil::ops::testing
