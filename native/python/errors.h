// Errors as values become Python exceptions here.
#pragma once

#include "artifact/format.h"
#include "python/py.h"

namespace cuvil::python {

// The class of an error; NULL with the indicator set if it cannot be imported.
PyRef exception_class(ErrorClass c);

// Sets the indicator. An error of class kPython leaves it as it is.
void raise(const Error& e);

// The exception of a site that fired: its text with the payload filled in, and a traceback frame at
// the line of the user's code. `function` is the plain function whose code holds the site.
void raise_site(const artifact::Site& site, const int64_t payload[4], PyObject* function);

// Adds a traceback frame at `loc` to the exception that is set.
void add_traceback(const artifact::CodeLoc& loc, PyObject* function);

// Where an instruction lies now. line 0: unknown.
SourceLoc resolve(const artifact::CodeLoc& loc, PyObject* function);

// One CuvilPerformanceWarning. False with the indicator set if warnings are errors.
bool warn_performance(const std::string& text);

}  // namespace cuvil::python
