# cuvil_llvm: LLVM 19, linked statically. llvm-config and not LLVM's CMake package, which asks for
# libraries (zstd, libxml2, libffi, curl) of parts that are never linked.
#
# No asm parser, no disassembler. A component drags in what it depends on; --gc-sections drops the rest.
#
# cuvil_llvm_core is what building a module takes, cuvil_llvm what making machine code of it takes.
set(CUVIL_LLVM_CORE_COMPONENTS core support targetparser)
set(CUVIL_LLVM_COMPONENTS
  core support target targetparser mc analysis codegen selectiondag asmprinter
  x86codegen x86desc x86info nvptxcodegen nvptxdesc nvptxinfo
  orcjit jitlink executionengine passes scalaropts instcombine)

function(cuvil_llvm_config variable)
  execute_process(COMMAND ${CUVIL_LLVM_CONFIG} --link-static ${ARGN} OUTPUT_VARIABLE out
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(out UNIX_COMMAND "${out}")
  set(${variable} ${out} PARENT_SCOPE)
endfunction()

cuvil_llvm_config(CUVIL_LLVM_INCLUDE --includedir)
cuvil_llvm_config(CUVIL_LLVM_BIN --bindir)
cuvil_llvm_config(CUVIL_LLVM_LIBS --libfiles ${CUVIL_LLVM_COMPONENTS})
cuvil_llvm_config(CUVIL_LLVM_CORE_LIBS --libfiles ${CUVIL_LLVM_CORE_COMPONENTS})

add_library(cuvil_llvm_system STATIC llvm_system.cpp)
target_link_libraries(cuvil_llvm_system PRIVATE cuvil_flags)

function(cuvil_add_llvm target)
  add_library(${target} INTERFACE)
  target_include_directories(${target} SYSTEM INTERFACE ${CUVIL_LLVM_INCLUDE})
  # NDEBUG also in a debug build of ours: LLVM's headers must see what its libraries were built with.
  target_compile_definitions(${target} INTERFACE NDEBUG _GNU_SOURCE __STDC_CONSTANT_MACROS
                                                 __STDC_FORMAT_MACROS __STDC_LIMIT_MACROS)
  target_link_libraries(${target} INTERFACE ${ARGN} cuvil_llvm_system ${CMAKE_DL_LIBS} m rt pthread)
endfunction()
cuvil_add_llvm(cuvil_llvm_core ${CUVIL_LLVM_CORE_LIBS})
cuvil_add_llvm(cuvil_llvm ${CUVIL_LLVM_LIBS})

# lld folds identical code and links in a second; without it GNU ld gives a larger library.
find_program(CUVIL_LLD ld.lld HINTS ${CUVIL_LLVM_BIN})
if(CUVIL_LLD)
  get_filename_component(bin ${CUVIL_LLD} DIRECTORY)
  set(CUVIL_LLD_OPTIONS -fuse-ld=lld -B${bin})
else()
  message(STATUS "lld not found: linking with the default linker")
  set(CUVIL_LLD_OPTIONS "")
endif()
