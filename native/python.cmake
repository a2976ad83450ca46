# _cuvil: the extension module of the hot side, one a Python version (full C API, NumPy's C API).
cuvil_has_sources(python CUVIL_HAS_PYTHON)
if(NOT CUVIL_HAS_PYTHON)
  message(STATUS "native/python has no sources: no extension module")
  return()
endif()

execute_process(COMMAND ${Python_EXECUTABLE} -c "import numpy; print(numpy.get_include())"
                OUTPUT_VARIABLE CUVIL_NUMPY_INCLUDE OUTPUT_STRIP_TRAILING_WHITESPACE
                RESULT_VARIABLE failed ERROR_QUIET)
if(failed)
  message(FATAL_ERROR "${Python_EXECUTABLE} has no NumPy, whose headers are needed: pip install numpy")
endif()

target_include_directories(cuvil_python SYSTEM PUBLIC ${Python_INCLUDE_DIRS} ${CUVIL_NUMPY_INCLUDE})
target_compile_definitions(cuvil_python PUBLIC NPY_NO_DEPRECATED_API=NPY_1_23_API_VERSION
                                               NPY_TARGET_VERSION=NPY_1_23_API_VERSION)
# METH_FASTCALL functions are passed as PyCFunction by casting: the C API's own way.
target_compile_options(cuvil_python PRIVATE -Wno-cast-function-type)

if(NOT CUVIL_SANITIZE)
  Python_add_library(_cuvil MODULE WITH_SOABI $<TARGET_OBJECTS:cuvil_python>)
  target_link_libraries(_cuvil PRIVATE cuvil_runtime cuvil_module_flags ${CMAKE_DL_LIBS})
  set(exports ${CMAKE_CURRENT_SOURCE_DIR}/python/exports.map)
  target_link_options(_cuvil PRIVATE -Wl,--version-script=${exports})
  set_target_properties(_cuvil PROPERTIES LINKER_LANGUAGE CXX LINK_DEPENDS ${exports}
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python/cuvil)
  install(TARGETS _cuvil LIBRARY DESTINATION cuvil)
endif()
