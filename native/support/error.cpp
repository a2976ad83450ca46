#include "support/error.h"

namespace cuvil {

const char* python_class_name(ErrorClass c) {
  static constexpr const char* kNames[] = {
#define CUVIL_ERROR(id, python) python,
#include "support/errors.def"
#undef CUVIL_ERROR
  };
  return kNames[static_cast<size_t>(c)];
}

}  // namespace cuvil
