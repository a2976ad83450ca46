# libcuvil_compiler.so: the cold side with LLVM inside, one file for every Python (limited API). It is
# opened by the gate; Python's symbols come from the process, so it is not linked with libpython.
foreach(folder IN ITEMS frontend compiler)
  cuvil_has_sources(${folder} has)
  if(has)
    target_include_directories(cuvil_${folder} SYSTEM PRIVATE ${Python_INCLUDE_DIRS})
    target_compile_definitions(cuvil_${folder} PRIVATE Py_LIMITED_API=0x030A0000)
  endif()
endforeach()

cuvil_has_sources(codegen has)
if(has)
  target_link_libraries(cuvil_codegen PUBLIC cuvil_llvm)
  # A precompiled header saves 2.6 s a file, but differs from checkout to checkout and so defeats a
  # shared ccache, which saves more.
  if(CUVIL_PCH)
    target_precompile_headers(cuvil_codegen PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/codegen/pch.h)
  endif()
endif()

cuvil_has_sources(compiler CUVIL_HAS_COMPILER)
if(NOT CUVIL_HAS_COMPILER)
  message(STATUS "native/compiler has no sources: no compiler library")
elseif(NOT CUVIL_SANITIZE)
  add_library(cuvil_compiler_library SHARED $<TARGET_OBJECTS:cuvil_compiler>)
  target_link_libraries(cuvil_compiler_library PRIVATE cuvil_frontend cuvil_passes cuvil_codegen
                                                       cuvil_module_flags)
  set(exports ${CMAKE_CURRENT_SOURCE_DIR}/compiler/exports.map)
  target_link_options(cuvil_compiler_library PRIVATE -Wl,--version-script=${exports} ${CUVIL_LLD_OPTIONS}
                      $<$<BOOL:${CUVIL_LLD}>:-Wl,--icf=all>)
  set_target_properties(cuvil_compiler_library PROPERTIES
    OUTPUT_NAME cuvil_compiler LINKER_LANGUAGE CXX LINK_DEPENDS ${exports} NO_SONAME ON
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python/cuvil)
  install(TARGETS cuvil_compiler_library LIBRARY DESTINATION cuvil)
endif()

# Programs: native/compiler/<name>_main.cpp becomes <build>/bin/<name> (cuvil_opt: the text tool).
file(GLOB mains CONFIGURE_DEPENDS compiler/*_main.cpp)
foreach(main IN LISTS mains)
  get_filename_component(name ${main} NAME_WE)
  string(REGEX REPLACE "_main$" "" name ${name})
  add_executable(${name} ${main})
  target_link_libraries(${name} PRIVATE cuvil_passes cuvil_codegen)
  target_link_options(${name} PRIVATE ${CUVIL_LLD_OPTIONS} -Wl,--gc-sections)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endforeach()
