# Language level, warnings and sanitizers shared by every target of ours.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

# The baseline every x86-64 server of the last decade has; faster code paths are chosen at run time.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options(-march=x86-64-v2)
endif()

# Estimates decide between plans: a machine with fused multiply-add must not round them otherwise.
add_compile_options(-ffp-contract=off)

set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

# One code model for libraries and programs, and gRPC's -pthread for all, so that they can share precompiled headers.
add_compile_options(-fPIC -pthread)

# Where ccache is installed, what was compiled of equal sources is used again, in other clones too: paths below this one do not
# count. Precompiled headers take two of its options and one of the compiler's.
find_program(FUSION_CCACHE ccache)
if(FUSION_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${FUSION_CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  endif()
endif()

add_library(fusion_flags INTERFACE)
target_compile_options(fusion_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                       -Wno-missing-field-initializers)  # designated initialisers leave the rest at its default
if(FUSION_WERROR)
  target_compile_options(fusion_flags INTERFACE -Werror)
endif()
if(FUSION_UNITY)
  # In a batch g++ takes a class over types of an anonymous namespace for one of a header, and for clang a local variable
  # shadows what another source has in its anonymous namespace.
  target_compile_options(fusion_flags INTERFACE $<IF:$<CXX_COMPILER_ID:GNU>,-Wno-subobject-linkage,-Wno-shadow>)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(fusion_flags INTERFACE -Wthread-safety)
endif()

# Tests: not optimised, for they take longer to compile than to run. Not what measures or generates load.
add_library(fusion_test_flags INTERFACE)
target_link_libraries(fusion_test_flags INTERFACE fusion_flags)
target_compile_options(fusion_test_flags INTERFACE $<$<CONFIG:Release>:-O0>)

if(FUSION_SANITIZE)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(fusion_flags INTERFACE -Wno-maybe-uninitialized)  # false alarms in instrumented code
  endif()
  add_compile_options(-fsanitize=${FUSION_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${FUSION_SANITIZE})
endif()
if(FUSION_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
