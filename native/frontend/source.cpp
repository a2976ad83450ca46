// Source of a function: the slice of lines from co_firstlineno to the end of the logical line of the
// last instruction, compiled inside a frame that makes its free variables free again:
//
//     def _(k):               <- only if there are free variables (and `class C:` for mangled names)
//         def f(x):           <- the slice, with its own indentation
//             return x + k
//
// The code object of that must equal the function's own.
#include "frontend/source.h"

#include <algorithm>
#include <cstdio>

#include "frontend/errors.h"

namespace cuvil::frontend {
namespace {

constexpr long kOnlyAst = 0x400;         // PyCF_ONLY_AST
constexpr long kFutureMask = 0x1ff0000;  // CO_FUTURE_* in Python 3.10 to 3.13
constexpr const char* kAbsentRemedy =
    "define the function in a file (or notebook cell) that is still there, unchanged since import";

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    size_t stop = end > begin && text[end - 1] == '\r' ? end - 1 : end;
    lines.push_back(text.substr(begin, stop - begin) + "\n");
    begin = end + 1;
  }
  return lines;
}

// Lines of `<stdin>`, notebook cells and doctests: what linecache knows, if it is loaded.
std::vector<std::string> lines_of_linecache(const std::string& file) {
  std::vector<std::string> lines;
  PyRef linecache = loaded_module("linecache");
  if (!linecache) return lines;
  PyRef getlines = attr_or_null(linecache.get(), CUVIL_NAME("getlines"));
  PyRef name = to_str(file);
  PyRef list = getlines
                   ? PyRef::steal(PyObject_CallFunctionObjArgs(getlines.get(), name.get(), nullptr))
                   : PyRef();
  if (!list || !PyList_Check(list.get())) {
    forgive();
    return lines;
  }
  for (Py_ssize_t i = 0; i < PyList_Size(list.get()); ++i)
    lines.push_back(to_string(PyList_GetItem(list.get(), i)));
  return lines;
}

// Not by a stream, whose locales take longer to set up than a file to read.
std::optional<std::string> read_file(const std::string& path) {
  std::FILE* f = std::fopen(path.c_str(), "rb");
  if (!f) return std::nullopt;
  std::string text;
  char part[1 << 14];
  for (size_t n; (n = std::fread(part, 1, sizeof part, f)) > 0;) text.append(part, n);
  const bool whole = !std::ferror(f);
  std::fclose(f);
  if (!whole) return std::nullopt;
  return text;
}

std::vector<std::string> lines_of(const std::string& file) {
  if (file.empty() || file[0] == '<') return lines_of_linecache(file);
  std::optional<std::string> text = read_file(file);
  return text ? split_lines(*text) : lines_of_linecache(file);
}

// Walks over Python text and knows whether a line break ends a logical line.
class LineScanner {
 public:
  // Consumes one line; true if the logical line ends with it.
  bool ends_with(const std::string& s) {
    size_t i = 0;
    bool continued = false;
    while (i < s.size()) {
      char c = s[i];
      if (quote_) {
        if (c == '\\') {
          i += 2;
          continue;
        }
        if (c == quote_) {
          if (!triple_) {
            quote_ = 0;
          } else if (s.compare(i, 3, std::string(3, quote_)) == 0) {
            quote_ = 0;
            i += 3;
            continue;
          }
        }
        ++i;
        continue;
      }
      if (c == '#') break;
      if (c == '\'' || c == '"') {
        quote_ = c;
        triple_ = s.compare(i, 3, std::string(3, c)) == 0;
        i += triple_ ? 3 : 1;
        continue;
      }
      if (c == '(' || c == '[' || c == '{') ++depth_;
      if (c == ')' || c == ']' || c == '}') --depth_;
      if (c == '\\' && i + 1 < s.size() && s[i + 1] == '\n') continued = true;
      ++i;
    }
    if (quote_ && !triple_) quote_ = 0;  // a broken string ends with its line
    return !quote_ && depth_ <= 0 && !continued;
  }

 private:
  char quote_ = 0;
  bool triple_ = false;
  int depth_ = 0;
};

// The last line any instruction of the code (or of code nested in it) stands on.
long last_line(PyObject* code) {
  long last = 0;
  PyRef method = attr_or_null(code, CUVIL_NAME("co_lines"));
  PyRef lines = method ? PyRef::steal(PyObject_CallNoArgs(method.get())) : PyRef();
  PyRef it = lines ? PyRef::steal(PyObject_GetIter(lines.get())) : PyRef();
  while (it) {
    PyRef entry = PyRef::steal(PyIter_Next(it.get()));
    if (!entry) break;
    PyObject* line = PyTuple_GetItem(entry.get(), 2);
    if (line && PyLong_Check(line)) last = std::max(last, PyLong_AsLong(line));
  }
  forgive();
  PyRef consts = attr_or_null(code, CUVIL_NAME("co_consts"));
  for (Py_ssize_t i = 0; consts && i < PyTuple_Size(consts.get()); ++i) {
    PyObject* c = PyTuple_GetItem(consts.get(), i);
    if (Py_TYPE(c) == Py_TYPE(code)) last = std::max(last, last_line(c));
  }
  return last;
}

long int_of(PyObject* o, PyObject* name) {
  PyRef v = attr_or_null(o, name);
  return v && PyLong_Check(v.get()) ? PyLong_AsLong(v.get()) : 0;
}

bool same_code(PyObject* a, PyObject* b);

bool same_const(PyObject* a, PyObject* b) {
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyObject_HasAttrString(a, "co_code")) return same_code(a, b);
  PyRef ra = PyRef::steal(PyObject_Repr(a)), rb = PyRef::steal(PyObject_Repr(b));
  int equal = ra && rb ? PyObject_RichCompareBool(ra.get(), rb.get(), Py_EQ) : 0;
  forgive();
  return equal == 1;
}

// Same bytecode, names and constants; file and lines do not matter.
bool same_code(PyObject* a, PyObject* b) {
  static const char* const kFields[] = {"co_code",     "co_names",          "co_varnames",
                                        "co_freevars", "co_cellvars",       "co_argcount",
                                        "co_name",     "co_kwonlyargcount", "co_posonlyargcount"};
  for (const char* field : kFields) {
    PyRef x = PyRef::steal(PyObject_GetAttrString(a, field));
    PyRef y = PyRef::steal(PyObject_GetAttrString(b, field));
    if (!x || !y || PyObject_RichCompareBool(x.get(), y.get(), Py_EQ) != 1) {
      forgive();
      return false;
    }
  }
  PyRef ca = CUVIL_ATTR(a, "co_consts"), cb = CUVIL_ATTR(b, "co_consts");
  if (!ca || !cb || PyTuple_Size(ca.get()) != PyTuple_Size(cb.get())) return false;
  for (Py_ssize_t i = 0; i < PyTuple_Size(ca.get()); ++i)
    if (!same_const(PyTuple_GetItem(ca.get(), i), PyTuple_GetItem(cb.get(), i))) return false;
  return true;
}

// Column of the first instruction that has one in its own first lines; -1 before Python 3.11.
struct Place {
  long line = 0, column = -1;
};
Place first_place(PyObject* code) {
  Place best;
  PyRef method = attr_or_null(code, CUVIL_NAME("co_positions"));
  PyRef positions = method ? PyRef::steal(PyObject_CallNoArgs(method.get())) : PyRef();
  PyRef it = positions ? PyRef::steal(PyObject_GetIter(positions.get())) : PyRef();
  while (it) {
    PyRef p = PyRef::steal(PyIter_Next(it.get()));
    if (!p) break;
    PyObject* line = PyTuple_GetItem(p.get(), 0);
    PyObject* column = PyTuple_GetItem(p.get(), 2);
    if (!line || !column || !PyLong_Check(line) || !PyLong_Check(column)) continue;
    Place here{PyLong_AsLong(line), PyLong_AsLong(column)};
    // RESUME has an empty range at column 0 of the first line: real instructions end further on.
    PyObject* end = PyTuple_GetItem(p.get(), 3);
    if (end && PyLong_Check(end) && PyLong_AsLong(end) == 0) continue;
    best = here;
    break;
  }
  forgive();
  return best;
}

PyRef compile(const std::string& text, PyObject* file, long flags) {
  static PyObject* const builtin = [] {
    PyRef b = PyRef::steal(PyImport_ImportModule("builtins"));
    return b ? PyObject_GetAttrString(b.get(), "compile") : nullptr;
  }();
  PyRef bytes =
      PyRef::steal(PyBytes_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
  PyRef args =
      PyRef::steal(Py_BuildValue("(OOsii)", bytes.get(), file, "exec", static_cast<int>(flags), 1));
  PyRef made;
  // The depth that the AST's constructors count is shared by all threads, so that a switch between
  // threads in the middle makes them fail with a SystemError: again then.
  for (int attempt = 0; attempt < 5 && args && builtin && !made; ++attempt) {
    forgive();
    made = PyRef::steal(PyObject_CallObject(builtin, args.get()));
    if (!made && !PyErr_ExceptionMatches(PyExc_SystemError)) break;
  }
  return made;
}

void collect_code(PyObject* code, const std::string& name, std::vector<PyRef>* out) {
  PyRef consts = attr_or_null(code, CUVIL_NAME("co_consts"));
  for (Py_ssize_t i = 0; consts && i < PyTuple_Size(consts.get()); ++i) {
    PyObject* c = PyTuple_GetItem(consts.get(), i);
    if (Py_TYPE(c) != Py_TYPE(code)) continue;
    PyRef n = attr_or_null(c, CUVIL_NAME("co_name"));
    if (n && to_string(n.get()) == name) out->push_back(PyRef::borrow(c));
    collect_code(c, name, out);
  }
}

// All FunctionDef nodes called `name` (or all Lambdas), in source order.
void collect_nodes(PyObject* node, const std::string& name, std::vector<Node>* out) {
  if (PyList_Check(node)) {
    for (Py_ssize_t i = 0; i < PyList_Size(node); ++i)
      collect_nodes(PyList_GetItem(node, i), name, out);
    return;
  }
  PyRef fields = attr_or_null(node, CUVIL_NAME("_fields"));
  if (!fields || !PyTuple_Check(fields.get())) return;
  Node n(PyRef::borrow(node));
  bool lambda = name == "<lambda>";
  if (lambda ? n.kind() == NodeKind::kLambda
             : n.kind() == NodeKind::kFunctionDef && n.text(CUVIL_NAME("name")) == name)
    out->push_back(n);
  for (Py_ssize_t i = 0; i < PyTuple_Size(fields.get()); ++i) {
    PyRef child = attr_or_null(node, PyTuple_GetItem(fields.get(), i));
    if (child && !PyUnicode_Check(child.get())) collect_nodes(child.get(), name, out);
  }
}

bool encloses(const Node& n, Place p) {
  SourceLoc l = n.loc();
  bool after = p.line > l.line || (p.line == l.line && p.column >= l.column);
  bool before = p.line < l.end_line || (p.line == l.end_line && p.column < l.end_column);
  return after && before;
}

// One text that may hold the function: its lines stand `offset` lines further down in the file.
struct Candidate {
  std::string text;
  long offset = 0;
};

// kOther: a function stands there, but with other code. kError: the indicator is set.
enum class Found { kYes, kNo, kOther, kError };

Found try_candidate(const Candidate& c, WalkedFunction& f, long flags) {
  PyRef file = to_str(f.file);
  PyRef tree = compile(c.text, file.get(), flags | kOnlyAst);
  PyRef module = tree ? compile(c.text, file.get(), flags) : PyRef();
  if (!module) {
    // No Python; anything else (memory, an interrupt) is not an answer.
    if (!PyErr_ExceptionMatches(PyExc_SyntaxError) && !PyErr_ExceptionMatches(PyExc_ValueError))
      return Found::kError;
    forgive();
    return Found::kNo;
  }
  PyRef co_name = attr_or_null(f.code.get(), CUVIL_NAME("co_name"));
  std::string name = to_string(co_name.get());
  std::vector<PyRef> codes;
  collect_code(module.get(), name, &codes);
  PyRef body = attr_or_null(tree.get(), CUVIL_NAME("body"));
  std::vector<Node> nodes;
  if (body) collect_nodes(body.get(), name, &nodes);

  long first = int_of(f.code.get(), CUVIL_NAME("co_firstlineno"));
  Place wanted = first_place(f.code.get());
  bool seen = false;
  for (size_t k = 0; k < codes.size(); ++k) {
    if (int_of(codes[k].get(), CUVIL_NAME("co_firstlineno")) + c.offset != first) continue;
    seen = true;
    if (!same_code(codes[k].get(), f.code.get())) continue;
    Place place = first_place(codes[k].get());
    if (name == "<lambda>" && place.column >= 0 && wanted.column >= 0 &&
        (place.line + c.offset != wanted.line || place.column != wanted.column))
      continue;  // an equal lambda elsewhere on the line
    // The node: by position where Python knows columns, else by order.
    Node best;
    for (const Node& n : nodes)
      if (place.column >= 0 && encloses(n, place) &&
          (!best.present() || encloses(best, Place{n.loc().line, n.loc().column})))
        best = n;
    if (!best.present() && nodes.size() == codes.size()) best = nodes[k];
    if (!best.present() && nodes.size() == 1) best = nodes[0];
    if (!best.present()) continue;
    f.node = best;
    f.line_offset = static_cast<int32_t>(c.offset);
    return Found::kYes;
  }
  return seen ? Found::kOther : Found::kNo;
}

std::string indentation(const std::string& line) {
  return line.substr(0, line.find_first_not_of(" \t"));
}

// "C" for the method C.f, "" if the function stands in no class.
std::string enclosing_class(PyObject* function) {
  PyRef q = attr_or_null(function, CUVIL_NAME("__qualname__"));
  std::string s = q ? to_string(q.get()) : std::string();
  size_t last = s.rfind('.');
  if (last == std::string::npos) return {};
  s.resize(last);
  size_t before = s.rfind('.');
  std::string c = before == std::string::npos ? s : s.substr(before + 1);
  return c == "<locals>" ? std::string() : c;
}

}  // namespace

bool recall_file(PyObject* function) {
  PyRef known = loaded_module("cuvil._pickle");
  PyRef code = attr_or_null(function, CUVIL_NAME("__code__"));
  PyRef file = code ? attr_or_null(code.get(), CUVIL_NAME("co_filename")) : PyRef();
  if (!known || !file || to_string(file.get()) != "<dynamic-code>") return true;
  return bool(PyRef::steal(PyObject_CallMethod(known.get(), "recall_file", "O", function)));
}

Result<> find_source(WalkedFunction& f) {
  PyRef file = attr_or_null(f.code.get(), CUVIL_NAME("co_filename"));
  f.file = file ? to_string(file.get()) : std::string();
  const long first = int_of(f.code.get(), CUVIL_NAME("co_firstlineno"));
  const long flags = int_of(f.code.get(), CUVIL_NAME("co_flags")) & kFutureMask;
  const std::string what = "function `" + f.name + "`";
  SourceLoc loc{f.index, static_cast<int32_t>(first), 0, 0, 0};

  std::vector<std::string> lines = lines_of(f.file);
  if (first < 1 || static_cast<size_t>(first) > lines.size())
    return make_error(ErrorClass::kUnsupported,
                      "the source of " + what + " was not found (" + f.file + ")", kAbsentRemedy,
                      SourceLoc{f.index, 0, 0, 0, 0});

  // The slice.
  const long last = std::max(first, last_line(f.code.get()));
  LineScanner scanner;
  std::string slice;
  for (long k = first; static_cast<size_t>(k) <= lines.size(); ++k) {
    slice += lines[static_cast<size_t>(k - 1)];
    if (scanner.ends_with(lines[static_cast<size_t>(k - 1)]) && k >= last) break;
  }
  std::string indent = indentation(lines[static_cast<size_t>(first - 1)]);
  std::string cls = enclosing_class(f.function.get());
  std::string free_variables;
  PyRef freevars = attr_or_null(f.code.get(), CUVIL_NAME("co_freevars"));
  for (Py_ssize_t i = 0; freevars && i < PyTuple_Size(freevars.get()); ++i) {
    std::string name = to_string(PyTuple_GetItem(freevars.get(), i));
    if (name == "__class__" && !cls.empty()) continue;  // made by the class itself
    free_variables += (free_variables.empty() ? "" : ",") + name;
  }

  Candidate c;
  long wrapped = 0;
  if (!indent.empty()) {
    if (!free_variables.empty()) {
      c.text += "def _(" + free_variables + "):\n";
      ++wrapped;
    }
    bool room = wrapped == 0 || indent.size() > 1 || indent[0] == '\t';
    if (!cls.empty() && room) {
      c.text += (wrapped ? " class " : "class ") + cls + ":\n";
      ++wrapped;
    } else if (!wrapped) {
      c.text += "if 1:\n";
      ++wrapped;
    }
  }
  c.text += slice;
  c.offset = first - 1 - wrapped;
  Found found = try_candidate(c, f, flags);
  if (found == Found::kNo || found == Found::kOther) {
    // A lambda in the middle of a statement, an `else:` before it, odd indentation: the whole file.
    Candidate whole;
    for (const std::string& l : lines) whole.text += l;
    Found again = try_candidate(whole, f, flags);
    if (again != Found::kNo) found = again;
  }
  if (found == Found::kYes) return Ok{};
  if (found == Found::kError) {
    keep_exception();
    return make_error(ErrorClass::kPython, {}, {}, loc);
  }
  return make_error(ErrorClass::kUnsupported,
                    "the source of " + what + " in " + f.file +
                        " does not match the code that runs (was the file changed since import?)",
                    kAbsentRemedy, loc);
}

std::string source_line(const std::string& file, int32_t line) {
  if (line < 1) return {};
  std::vector<std::string> lines = lines_of(file);
  if (static_cast<size_t>(line) > lines.size()) return {};
  std::string s = lines[static_cast<size_t>(line - 1)];
  while (!s.empty() && (s.back() == '\n' || s.back() == '\r')) s.pop_back();
  return s;
}

}  // namespace cuvil::frontend
