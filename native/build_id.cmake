# cuvil_add_build_id(<target>): generates the translation unit behind support/build_id.h. The id is a
# hash over every native source, so that the two shared objects know whether they were built
# together, and no edit of the compiler meets a cache that an older one filled. Run as a script
# (cmake -P) it writes that file.
if(CMAKE_SCRIPT_MODE_FILE)
  file(GLOB_RECURSE files RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/*.cpp ${SOURCE_DIR}/*.h ${SOURCE_DIR}/*.def)
  list(SORT files)
  set(all "")
  foreach(file IN LISTS files)
    file(SHA256 ${SOURCE_DIR}/${file} hash)
    string(APPEND all "${file} ${hash}\n")
  endforeach()
  string(SHA256 hash "${all}")
  string(SUBSTRING ${hash} 0 16 hash)
  file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
#include "support/build_id.h"

namespace cuvil {
const char* build_id() { return "@VERSION@-@hash@-llvm@LLVM_VERSION@"; }
const char* version() { return "@VERSION@"; }
const char* llvm_version() { return "@LLVM_VERSION@"; }
}  // namespace cuvil
]])
  return()
endif()

find_program(CUVIL_LLVM_CONFIG NAMES llvm-config-19 llvm-config REQUIRED)
execute_process(COMMAND ${CUVIL_LLVM_CONFIG} --version OUTPUT_VARIABLE CUVIL_LLVM_VERSION
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
if(NOT CUVIL_LLVM_VERSION MATCHES "^19\\.")
  message(FATAL_ERROR "Cuvil needs LLVM 19; ${CUVIL_LLVM_CONFIG} is of LLVM ${CUVIL_LLVM_VERSION}. "
                      "Install llvm-19-dev or set CUVIL_LLVM_CONFIG.")
endif()

function(cuvil_add_build_id target)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp *.h *.def)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/build_id.cpp)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${CMAKE_CURRENT_SOURCE_DIR} -DOUTPUT=${output}
            -DVERSION=${CUVIL_VERSION} -DLLVM_VERSION=${CUVIL_LLVM_VERSION}
            -P ${CMAKE_CURRENT_SOURCE_DIR}/build_id.cmake
    DEPENDS ${sources} ${CMAKE_CURRENT_SOURCE_DIR}/build_id.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
