// Objects to rows by identity, rows' parameter lists, and which rows return views.
#include "frontend/resolve.h"

#include <array>
#include <map>
#include <unordered_map>

namespace cuvil::frontend {
namespace {

// The object a dotted name stands for; nothing is imported, modules must be loaded already.
PyRef find_object(std::string_view dotted) {
  size_t dot = dotted.find('.');
  PyRef at = loaded_module(std::string(dotted.substr(0, dot)).c_str());
  while (at && dot != std::string_view::npos) {
    size_t next = dotted.find('.', dot + 1);
    PyRef part = to_str(dotted.substr(
        dot + 1, next == std::string_view::npos ? std::string_view::npos : next - dot - 1));
    at = attr_or_null(at.get(), part.get());
    dot = next;
  }
  return at;
}

bool names_object(std::string_view row) {
  return row.find('.') != std::string_view::npos && !row.starts_with("ndarray.");
}

// Filled as modules get loaded: rows of SciPy resolve once the user has imported it.
struct RowTable {
  std::unordered_map<PyObject*, const ops::DialectRow*> rows;
  std::vector<const ops::DialectRow*> pending;

  RowTable() {
    for (const ops::DialectRow* row : ops::all_rows())
      if (names_object(row->name)) pending.push_back(row);
  }
  void resolve() {
    std::erase_if(pending, [&](const ops::DialectRow* row) {
      PyRef o = find_object(row->name);
      if (!o) return false;
      rows.emplace(o.release(), row);  // kept for ever: identity must not be reused
      return true;
    });
  }
};

constexpr std::pair<std::string_view, Sharing> kViews[] = {
#define CUVIL_VIEW(name, sharing) {name, Sharing::sharing},
#include "frontend/views.def"
#undef CUVIL_VIEW
};

constexpr std::string_view kIntParameters[] = {
    "shape",   "newshape",    "axis",     "axes",
    "repeats", "reps",        "shift",    "indices_or_sections",
    "N",       "M",           "k",        "n",
    "source",  "destination", "decimals", "ddof",
    "axis1",   "axis2",       "offset",   "start",
    "stop",    "step",        "num"};

}  // namespace

const ops::DialectRow* row_of(PyObject* callable) {
  static RowTable table;
  auto it = table.rows.find(callable);
  if (it != table.rows.end()) return it->second;
  if (table.pending.empty()) return nullptr;
  table.resolve();
  it = table.rows.find(callable);
  return it == table.rows.end() ? nullptr : it->second;
}

std::string qualified_of(const ops::DialectRow& row) {
  std::string s(row.name);
  size_t dot = s.rfind('.');
  if (dot != std::string::npos) s[dot] = ':';
  return s;
}

const std::vector<Parameter>& parameters(const ops::DialectRow& row) {
  static std::map<const ops::DialectRow*, std::vector<Parameter>> parsed;
  auto [it, fresh] = parsed.try_emplace(&row);
  std::vector<Parameter>& out = it->second;
  if (!fresh) return out;
  std::string_view rest = row.params;
  auto kind = Parameter::Kind::kEither;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= rest.size(); ++i) {
    char c = i < rest.size() ? rest[i] : ',';
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c != ',' || depth) continue;
    std::string_view text = rest.substr(begin, i - begin);
    begin = i + 1;
    size_t first = text.find_first_not_of(' ');
    if (first == std::string_view::npos) continue;
    text = text.substr(first, text.find_last_not_of(' ') - first + 1);
    if (text == "/") {
      for (Parameter& p : out) p.kind = Parameter::Kind::kPositional;
    } else if (text == "*") {
      kind = Parameter::Kind::kKeyword;
    } else if (text[0] == '*') {
      out.push_back({Parameter::Kind::kVariadic, text.substr(1), true});
      kind = Parameter::Kind::kKeyword;
    } else {
      size_t eq = text.find('=');
      std::string_view name = text.substr(0, text.find_last_not_of(' ', eq - 1) + 1);
      if (eq == std::string_view::npos) name = text;
      out.push_back({kind, name, eq != std::string_view::npos});
    }
  }
  return out;
}

Sharing sharing_of(std::string_view row_name) {
  for (const auto& [name, sharing] : kViews)
    if (name == row_name) return sharing;
  return Sharing::kFresh;
}

bool wants_ints(std::string_view parameter) {
  for (std::string_view p : kIntParameters)
    if (p == parameter) return true;
  return false;
}

}  // namespace cuvil::frontend
