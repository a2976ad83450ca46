// Results: arrays that generated code asks for, and the tree of the return value.
#pragma once

#include "python/specialisation.h"

namespace cuvil::python {

// The services alloc_result and view_result.
void* alloc_result(CuvilCall* call, uint32_t index, const int64_t* shape);
int32_t view_result(CuvilCall* call, uint32_t index, uint32_t base, int64_t offset,
                    const int64_t* shape, const int64_t* strides);

// The return value once the entry has returned 0; NULL with the indicator set.
PyObject* build_result(Frame& f);

inline Frame& frame_of(CuvilCall* call) {
  return static_cast<Frame&>(*static_cast<runtime::CallState*>(call->host));
}

}  // namespace cuvil::python
