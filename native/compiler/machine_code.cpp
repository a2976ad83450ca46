#include "compiler/machine_code.h"

#include <dlfcn.h>

#include <cstring>
#include <mutex>

#include "support/build_id.h"

namespace cuvil::compiler {
namespace {

using Generate = decltype(&cuvil_backend_generate);

std::string beside_this_library() {
  constexpr const char* kLibrary = "libcuvil_backend.so";
  Dl_info self;
  if (!dladdr(reinterpret_cast<void*>(&machine_code), &self) || !self.dli_fname) return kLibrary;
  std::string path = self.dli_fname;
  return path.substr(0, path.find_last_of('/') + 1) + kLibrary;
}

Result<Generate> open_backend() {
  static std::mutex mutex;
  static Generate opened = nullptr;
  std::lock_guard lock(mutex);
  if (opened) return opened;
  const std::string path = beside_this_library();
  auto unusable = [&](const std::string& why) {
    return make_error(ErrorClass::kInternal, "the code generator " + path + " " + why,
                      "install Cuvil again so that all of its libraries are of one build");
  };
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = dlerror();
    return unusable(std::string("cannot be opened") + (why ? std::string(" (") + why + ")" : ""));
  }
  auto id =
      reinterpret_cast<decltype(&cuvil_backend_build_id)>(dlsym(library, "cuvil_backend_build_id"));
  auto generate = reinterpret_cast<Generate>(dlsym(library, "cuvil_backend_generate"));
  if (!id || !generate || std::strcmp(id(), build_id()) != 0) {
    std::string other = id ? std::string("is of build ") + id() : "is no library of Cuvil";
    dlclose(library);
    return unusable(other + ", this is build " + build_id());
  }
  return opened = generate;
}

}  // namespace

Result<backend::Code> machine_code(const schedule::Program& program,
                                   const backend::CpuOptions& options) {
  CUVIL_TRY(Generate generate, open_backend());
  backend::Code code;
  Error error;
  if (!generate(&program, &options, &code, &error)) return error;
  return code;
}

}  // namespace cuvil::compiler
