# cuvil_flags: what every translation unit is compiled with, and cuvil_module_flags: what both shared
# objects are linked with.
add_library(cuvil_flags INTERFACE)
target_compile_features(cuvil_flags INTERFACE cxx_std_20)
target_include_directories(cuvil_flags INTERFACE ${CMAKE_CURRENT_SOURCE_DIR})
# No contraction: constants are folded here and must come out as the generated code computes them.
target_compile_options(cuvil_flags INTERFACE
  -Wall -Wextra -Werror=switch -Wno-missing-field-initializers
  -Wno-restrict  # false alarms over std::string's operator+ at -O3: GCC bug 105329
  -Wno-maybe-uninitialized  # too many false alarms over std::optional at -O1
  -fvisibility=hidden -fvisibility-inlines-hidden -fPIC
  -ffunction-sections -fdata-sections -ffp-contract=off
  $<$<BOOL:${CUVIL_WERROR}>:-Werror>)
if(CUVIL_SANITIZE)
  target_compile_options(cuvil_flags INTERFACE -fsanitize=${CUVIL_SANITIZE} -fno-omit-frame-pointer
                                               -fno-sanitize-recover=all)
  target_link_options(cuvil_flags INTERFACE -fsanitize=${CUVIL_SANITIZE})
endif()

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

# Errors are values (support/error.h): the library neither throws nor asks for run-time types.
# Kept apart from cuvil_flags because GoogleTest binaries want exceptions.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions> $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>)

find_path(CUVIL_XXHASH_INCLUDE xxhash.h REQUIRED)
target_include_directories(cuvil_flags SYSTEM INTERFACE
                           $<$<NOT:$<STREQUAL:${CUVIL_XXHASH_INCLUDE},/usr/include>>:${CUVIL_XXHASH_INCLUDE}>)
target_compile_definitions(cuvil_flags INTERFACE XXH_INLINE_ALL)

add_library(cuvil_module_flags INTERFACE)
target_link_options(cuvil_module_flags INTERFACE
  -static-libstdc++ -static-libgcc
  -Wl,--gc-sections -Wl,-Bsymbolic -Wl,-z,now -Wl,--as-needed -Wl,-O2)
