#include "runtime/gate.h"

#include <dlfcn.h>

#include <cstring>
#include <mutex>

#include "support/build_id.h"

namespace cuvil::runtime {
namespace {

constexpr const char* kLibrary = "libcuvil_compiler.so";
constexpr const char* kRemedy =
    "install Cuvil again so that both of its libraries are of one build, or unset "
    "CUVIL_COMPILER_PATH";

std::string beside_this_object() {
  Dl_info self;
  if (!dladdr(reinterpret_cast<void*>(&open_compiler), &self) || !self.dli_fname) return kLibrary;
  std::string path = self.dli_fname;
  return path.substr(0, path.find_last_of('/') + 1) + kLibrary;
}

Error unusable(std::string found) {
  return make_error(ErrorClass::kInternal, std::move(found), kRemedy);
}

}  // namespace

Result<CompileFunction> open_compiler(const std::string& given) {
  static std::mutex mutex;
  static CompileFunction opened = nullptr;
  std::lock_guard lock(mutex);
  if (opened) return opened;

  std::string path = given.empty() ? beside_this_object() : given;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = dlerror();
    return unusable("the compiler library " + path + " cannot be opened" +
                    (why ? std::string(" (") + why + ")" : std::string()));
  }
  using BuildId = decltype(&cuvil_compiler_build_id);
  auto id = reinterpret_cast<BuildId>(dlsym(library, "cuvil_compiler_build_id"));
  auto compile = reinterpret_cast<CompileFunction>(dlsym(library, "cuvil_compile"));
  if (!id || !compile || std::strcmp(id(), build_id()) != 0) {
    std::string other = id ? std::string("of build ") + id() : "no compiler library of Cuvil";
    dlclose(library);
    return unusable(path + " is " + other + ", this is build " + build_id());
  }
  return opened = compile;
}

}  // namespace cuvil::runtime
