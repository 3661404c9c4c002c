# cmake -DCOMPILER=<c++> -DSOURCE_DIR=<repository> -DWORK_DIR=<scratch> -P header_check_test.cmake
#
# A header that leans on what others include before it breaks the target header_check, and an upward include breaks the
# build: shown on two layers of a small project made with core/layer.cmake.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${WORK_DIR})
file(WRITE ${WORK_DIR}/CMakeLists.txt "
cmake_minimum_required(VERSION 3.25)
project(headers LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
add_library(fusion_flags INTERFACE)
include(${SOURCE_DIR}/core/layer.cmake)
add_subdirectory(core)
add_custom_target(header_check)
add_dependencies(header_check all_verify_interface_header_sets)
")
file(WRITE ${WORK_DIR}/core/CMakeLists.txt "fusion_layer(low)\nfusion_layer(high DEPENDS low)\n")
file(WRITE ${WORK_DIR}/core/low/low.cc "#include \"core/low/low.h\"\n")
file(WRITE ${WORK_DIR}/core/high/high.h "#pragma once\n#include \"core/low/low.h\"\n")
file(WRITE ${WORK_DIR}/core/high/high.cc "#include \"core/high/high.h\"\n")

set(good "#pragma once\n#include <vector>\ninline std::vector<int> Low() { return {}; }\n")
set(leaning "#pragma once\ninline std::vector<int> Low() { return {}; }\n")
set(upward "#pragma once\n#include \"core/high/high.h\"\n#include <vector>\ninline std::vector<int> Low() { return {}; }\n")

function(build header out)
  file(WRITE ${WORK_DIR}/core/low/low.h "${header}")
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK_DIR}/build --target header_check
                  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE result)
  if(result EQUAL 0)
    set(${out} "compiled" PARENT_SCOPE)
  else()
    set(${out} "${output}" PARENT_SCOPE)
  endif()
endfunction()

file(WRITE ${WORK_DIR}/core/low/low.h "${good}")
execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S ${WORK_DIR} -B ${WORK_DIR}/build -DCMAKE_CXX_COMPILER=${COMPILER}
                OUTPUT_QUIET ERROR_VARIABLE errors RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "the small project is not configured: ${errors}")
endif()
build("${good}" output)
if(NOT output STREQUAL "compiled")
  message(FATAL_ERROR "a good header does not pass: ${output}")
endif()
build("${leaning}" output)
if(NOT output MATCHES "vector")
  message(FATAL_ERROR "a header without <vector> passes: ${output}")
endif()
build("${upward}" output)
if(NOT output MATCHES "core/high/high.h: No such file|'core/high/high.h' file not found")
  message(FATAL_ERROR "an upward include passes: ${output}")
endif()
