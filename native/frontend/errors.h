// Error to exception, with the chain of inlined calls. Used by trace.cpp and compiler/entry.cpp.
#pragma once

#include <span>
#include <string>

#include "frontend/py.h"
#include "support/error.h"

namespace cuvil::frontend {

// Takes the pending exception out of the indicator, for the error of class kPython that is returned in its
// place: what runs until raise_error would clear it.
void keep_exception();
// Forgets an exception whose error was handled.
void drop_exception();

std::string format_error(const Error& e, std::span<PyObject* const> codes,
                         std::span<const SourceLoc> trail);
// Sets Python's error indicator. `trail`: call sites, outermost first.
void raise_error(const Error& e, std::span<PyObject* const> codes,
                 std::span<const SourceLoc> trail);

}  // namespace cuvil::frontend
