# The unit, the configuration and the group that it names, at install time: `cmake --install --prefix` says only then where they go.
# deploy/CMakeLists.txt sets deploy_dir and bin_dir.
set(prefix "${CMAKE_INSTALL_PREFIX}")
cmake_path(ABSOLUTE_PATH prefix NORMALIZE)
set(etc "${prefix}/etc")
if("${prefix}" STREQUAL "/usr")
  set(etc /etc)
endif()

file(READ "${deploy_dir}/fusiond.service" text)
string(REPLACE "/usr/bin/fusiond" "${prefix}/${bin_dir}/fusiond" text "${text}")
string(REPLACE "/etc/fusiond.conf" "${etc}/fusiond.conf" text "${text}")
# Not lib/<machine>, where libraries may go: systemd looks here.
set(unit "${prefix}/lib/systemd/system/fusiond.service")
message(STATUS "Installing: $ENV{DESTDIR}${unit}")
file(WRITE "$ENV{DESTDIR}${unit}" "${text}")
file(CHMOD "$ENV{DESTDIR}${unit}" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
list(APPEND CMAKE_INSTALL_MANIFEST_FILES "${unit}")

# The group that the unit names.
set(group "${prefix}/lib/sysusers.d/fusiond.conf")
message(STATUS "Installing: $ENV{DESTDIR}${group}")
file(READ "${deploy_dir}/fusiond.sysusers" text)
file(WRITE "$ENV{DESTDIR}${group}" "${text}")
file(CHMOD "$ENV{DESTDIR}${group}" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
list(APPEND CMAKE_INSTALL_MANIFEST_FILES "${group}")

# The operator's from then on: never overwritten, and in no manifest.
set(config "$ENV{DESTDIR}${etc}/fusiond.conf")
if(EXISTS "${config}")
  message(STATUS "Kept: ${config}")
else()
  message(STATUS "Installing: ${config}")
  file(COPY "${deploy_dir}/fusiond.conf" DESTINATION "$ENV{DESTDIR}${etc}"
       FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endif()
