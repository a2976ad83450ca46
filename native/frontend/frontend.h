// The frontend: a Python function and the signature of a call in, a CIR graph and what must hold for it out.
#pragma once

#include <memory>
#include <vector>

#include "compiler/entry.h"
#include "ir/graph.h"

namespace cuvil::frontend {

struct Traced {
  std::unique_ptr<ir::Graph> graph;
  // Filled: memory_only, call_shape, arguments, sources, guards, aliases, tree, constants, functions,
  // array_slots (inputs only), scalar_slots, results.form. Dims in specs are over graph->dims' symbols.
  artifact::Artifact facts;
  std::vector<PyObject*> identities;  // owned
  // For SourceLoc -> CodeLoc: the code objects of the walked functions; owned.
  std::vector<PyObject*> code_objects;
};

// Walks the function. On failure Python's error indicator is set (the designed exception) and the
// result is empty; `python_raises` (see compiler::Response) is set.
std::optional<Traced> trace(const compiler::Request& request, bool* python_raises);

// The instruction whose position is `loc`, for the site table.
artifact::CodeLoc code_loc(const Traced& t, const SourceLoc& loc);

// Raises `e` as its Python class, with file, line, caret and remedy.
void raise(const Error& e, std::span<PyObject* const> code_objects);

// Raises what interrupted the calls above (Ctrl-C, say) instead of whatever is raised. False: nothing has.
bool raise_interrupt();

}  // namespace cuvil::frontend
