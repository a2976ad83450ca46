// What a specialisation relies on, and why one does not fit, as users read it. For dispatch and
// cuvil.explain(). `names`: of the arguments.
#pragma once

#include <string>
#include <vector>

#include "python/specialisation.h"

namespace cuvil::python {

// "n == 3", "WEIGHTS is an array of float32 with 1 axes": one a predicate, one a guard.
std::vector<std::string> guard_texts(const artifact::Artifact& a,
                                     const std::vector<std::string>& names);

std::string mismatch_text(const artifact::Artifact& a, const std::vector<std::string>& names,
                          const Mismatch& why);

}  // namespace cuvil::python
