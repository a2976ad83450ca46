// Finds the source of a function and proves that it is the source of the code that runs.
// Called by the interpreter for the compiled function and for every helper that it walks.
#pragma once

#include <memory>
#include <string>

#include "frontend/ast.h"

namespace cuvil::frontend {

// A Python function whose body is walked.
struct WalkedFunction {
  PyRef function;  // the plain function
  PyRef code;
  PyRef globals;
  std::string name;  // __name__, for messages
  std::string file;
  uint32_t index = 0;       // position in Artifact::functions and Traced::code_objects
  int32_t source = -1;      // its artifact::Source; -1: the compiled function
  Node node;                // FunctionDef or Lambda
  int32_t line_offset = 0;  // line in the file = node's line + line_offset
};

// cloudpickle forgets which file a function is from: its code gets the name back if a compiled function
// came with that file (cuvil/_pickle.py). False with the indicator set.
bool recall_file(PyObject* function);

// Fills file, node and line_offset from code. UnsupportedError if there is no source, or if it
// compiles to other code than the function's.
Result<> find_source(WalkedFunction& f);

// The text of line `line` (1-based) of a file as Python reads it; "" if it is not to be had.
std::string source_line(const std::string& file, int32_t line);

}  // namespace cuvil::frontend
