# fusion_layer(NAME [DEPENDS layer...] [LINK target...] [SOURCES file...])
#
# One layer = one folder of core/ = one static library `core_NAME`. Its private include root
# (build/include_roots/NAME/core/NAME) holds nothing but a link to its own folder, so a layer sees only the headers of
# itself and of the layers it DEPENDS on: an upward include is "No such file". A dependency that is not a target yet is
# an error, which forbids cycles. Sources are every .cc of the folder, its rooms and its backend folders, unless SOURCES says so.
# One precompiled header (standard library, Abseil status) serves every target but tests and those that speak gRPC, which have
# their own: it halves the build.
function(fusion_precompile target)
  if(TARGET fusion_pch)
    target_precompile_headers(${target} REUSE_FROM fusion_pch)
  endif()
endfunction()

function(fusion_layer name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK;SOURCES" ${ARGN})
  set(dir ${CMAKE_CURRENT_SOURCE_DIR}/${name})
  set(root ${CMAKE_BINARY_DIR}/include_roots/${name})
  file(MAKE_DIRECTORY ${root}/core)
  file(CREATE_LINK ${dir} ${root}/core/${name} SYMBOLIC)

  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${dir}/*.cc)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${root}/core/${name}/*.h)
  # glob_recurse does not follow the link of the include root: list the headers through the folder itself.
  file(GLOB_RECURSE real_headers CONFIGURE_DEPENDS RELATIVE ${dir} ${dir}/*.h)
  list(TRANSFORM real_headers PREPEND ${root}/core/${name}/ OUTPUT_VARIABLE headers)

  set(target core_${name})
  add_library(${target} STATIC ${sources} ${ARG_SOURCES})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${root} FILES ${headers})
  set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  target_include_directories(${target} PUBLIC ${root})
  foreach(dep IN LISTS ARG_DEPENDS)
    if(NOT TARGET core_${dep})
      message(FATAL_ERROR "layer '${name}' depends on '${dep}', which is not a lower layer")
    endif()
    target_link_libraries(${target} PUBLIC core_${dep})
  endforeach()
  target_link_libraries(${target} PUBLIC ${ARG_LINK} PRIVATE $<BUILD_INTERFACE:fusion_flags>)
  fusion_precompile(${target})
endfunction()

# fusion_rooms(FOLDER room...)
#
# The sub-folders of FOLDER, lowest first; `.` stands for the files of FOLDER itself. A file includes its own room and those before
# it. The test unit/rooms checks it, because all rooms of a layer have one include root.
function(fusion_rooms folder)
  file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${folder})
  list(JOIN ARGN " " rooms)
  set_property(GLOBAL APPEND PROPERTY FUSION_ROOMS "${name} ${rooms}")
endfunction()
