// Objects to rows by identity, rows' parameter lists, and which rows return views.
#include "frontend/resolve.h"

#include <algorithm>
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

// Under the name that the object itself has in NumPy 1.
const ops::DialectRow* row_named(std::string_view dotted) {
  if (dotted == "numpy.round_") dotted = "numpy.round";
  return ops::find_row(dotted);
}

bool names_object(std::string_view row) {
  return row.find('.') != std::string_view::npos && !row.starts_with("ndarray.");
}

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

std::string own_name(PyObject* callable, std::span<const std::string> places,
                     const compiler::HostTools& tools, bool (*known)(std::string_view)) {
  PyRef attribute = attr_or_null(callable, CUVIL_NAME("__name__"));
  const std::string name = to_string(attribute.get());
  if (name.empty()) return {};
  for (const std::string& place : places) {
    const std::string dotted = place + "." + name;
    if (!known(dotted) || find_object(dotted).get() != callable) continue;
    std::string qualified = place + ":" + name;
    if (tools.is_original(callable, qualified.c_str())) return qualified;
  }
  return {};
}

const ops::DialectRow* row_of(PyObject* callable, const compiler::HostTools& tools,
                              std::string* qualified) {
  struct Known {
    const ops::DialectRow* row;
    std::string qualified;
  };
  static std::unordered_map<PyObject*, Known> all;
  static const std::vector<std::string> places = [] {
    std::vector<std::string> out;
    for (const ops::DialectRow* row : ops::all_rows()) {
      if (!names_object(row->name)) continue;
      std::string place(row->name.substr(0, row->name.rfind('.')));
      if (std::find(out.begin(), out.end(), place) == out.end()) out.push_back(place);
    }
    return out;
  }();
  auto it = all.find(callable);
  if (it == all.end()) {
    std::string name = own_name(callable, places, tools, [](std::string_view dotted) {
      return row_named(dotted) != nullptr;
    });
    if (name.empty()) return nullptr;
    std::string dotted = name;
    dotted[dotted.find(':')] = '.';
    Py_INCREF(callable);  // kept for ever: identity must not be reused
    it = all.emplace(callable, Known{row_named(dotted), std::move(name)}).first;
  }
  *qualified = it->second.qualified;
  return it->second.row;
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
