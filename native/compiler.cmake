# libcuvil_compiler.so: the cold side up to LLVM's IR, one file for every Python (limited API). It is
# opened by the gate; Python's symbols come from the process, so it is not linked with libpython.
# libcuvil_backend.so: LLVM's code generators, opened by the compiler.
foreach(folder IN ITEMS frontend compiler)
  cuvil_has_sources(${folder} has)
  if(has)
    target_include_directories(cuvil_${folder} SYSTEM PRIVATE ${Python_INCLUDE_DIRS})
    target_compile_definitions(cuvil_${folder} PRIVATE Py_LIMITED_API=0x030A0000)
  endif()
endforeach()

foreach(folder IN ITEMS codegen interpret backend)
  cuvil_has_sources(${folder} has)
  if(has)
    target_link_libraries(cuvil_${folder} PUBLIC $<IF:$<STREQUAL:${folder},backend>,cuvil_llvm,cuvil_llvm_core>)
    # A precompiled header saves 2.6 s a file, but differs from checkout to checkout and so defeats a
    # shared ccache, which saves more.
    if(CUVIL_PCH)
      target_precompile_headers(cuvil_${folder} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/codegen/pch.h)
    endif()
  endif()
endforeach()

# The interpreter's handlers: whatever else is built without optimisation, these are not.
set(handlers -O3 -fno-math-errno -fno-trapping-math -fno-strict-aliasing)
set_source_files_properties(interpret/handlers_base.cpp PROPERTIES COMPILE_OPTIONS "${handlers}")
set_source_files_properties(interpret/handlers_v3.cpp PROPERTIES COMPILE_OPTIONS
                            "${handlers};-mavx2;-mfma;-mf16c;-mbmi;-mbmi2;-mlzcnt")

# cuvil_add_cold_library(<folder> <library>...): libcuvil_<folder>.so
function(cuvil_add_cold_library folder)
  add_library(cuvil_${folder}_library SHARED $<TARGET_OBJECTS:cuvil_${folder}>)
  target_link_libraries(cuvil_${folder}_library PRIVATE ${ARGN} cuvil_module_flags)
  set(exports ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/exports.map)
  target_link_options(cuvil_${folder}_library PRIVATE -Wl,--version-script=${exports} ${CUVIL_LLD_OPTIONS}
                      $<$<BOOL:${CUVIL_LLD}>:-Wl,--icf=all>)
  set_target_properties(cuvil_${folder}_library PROPERTIES
    OUTPUT_NAME cuvil_${folder} LINKER_LANGUAGE CXX LINK_DEPENDS ${exports} NO_SONAME ON
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python/cuvil)
  install(TARGETS cuvil_${folder}_library LIBRARY DESTINATION cuvil)
endfunction()

cuvil_has_sources(compiler CUVIL_HAS_COMPILER)
if(NOT CUVIL_HAS_COMPILER)
  message(STATUS "native/compiler has no sources: no compiler library")
elseif(NOT CUVIL_SANITIZE)
  cuvil_add_cold_library(compiler cuvil_frontend cuvil_passes cuvil_interpret)
  cuvil_add_cold_library(backend cuvil_backend)
endif()

# Programs: native/compiler/<name>_main.cpp becomes <build>/bin/<name> (cuvil_opt: the text tool).
file(GLOB mains CONFIGURE_DEPENDS compiler/*_main.cpp)
foreach(main IN LISTS mains)
  get_filename_component(name ${main} NAME_WE)
  string(REGEX REPLACE "_main$" "" name ${name})
  add_executable(${name} ${main})
  target_link_libraries(${name} PRIVATE cuvil_passes cuvil_backend)
  target_link_options(${name} PRIVATE ${CUVIL_LLD_OPTIONS} -Wl,--gc-sections)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endforeach()
