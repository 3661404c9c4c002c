# fusion_proto: the messages of proto/fusion/v1, included as "fusion/v1/plan.pb.h". fusion_grpc: the stubs and mocks of
# FusionService and FusionAdmin. fusion_worker_proto: what fusiond and its workers say to each other. All of them lie in the build tree;
# their headers are system headers and their sources get none of our warning flags, because the code is not ours.
set(proto_root ${PROJECT_SOURCE_DIR}/proto)
set(proto_out ${PROJECT_BINARY_DIR}/proto)
file(MAKE_DIRECTORY ${proto_out})

# fusion_messages(TARGET name...): a library of the messages of proto/fusion/v1/<name>.proto.
function(fusion_messages target)
  set(sources "")
  set(files "")
  foreach(name IN LISTS ARGN)
    list(APPEND files ${proto_root}/fusion/v1/${name}.proto)
    list(APPEND sources ${proto_out}/fusion/v1/${name}.pb.cc)
  endforeach()
  list(TRANSFORM sources REPLACE "\\.cc$" ".h" OUTPUT_VARIABLE headers)
  add_custom_command(
    OUTPUT ${sources} ${headers}
    COMMAND protobuf::protoc --proto_path=${proto_root} --cpp_out=${proto_out} ${files}
    DEPENDS ${files}
    COMMENT "protoc messages of ${target}"
    VERBATIM)
  add_library(${target} STATIC EXCLUDE_FROM_ALL ${sources})
  target_include_directories(${target} SYSTEM PUBLIC ${proto_out})
  # Made by protoc to be compiled one by one.
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
endfunction()

set(proto_names op_graph cuts tile_search plan plan_lock measurements rules registered_kernels fusion_service fusion_admin)
fusion_messages(fusion_proto ${proto_names})
target_link_libraries(fusion_proto PUBLIC protobuf::libprotobuf)

# The server's own file of callers: a library of its own, which no client links.
fusion_messages(fusion_access_proto access)
target_link_libraries(fusion_access_proto PUBLIC protobuf::libprotobuf)

# What fusiond and its workers say to each other. It runs on either runtime, and no process may hold both: a program that
# must start fast sets FUSION_PROTOBUF_LITE, all others get the full runtime, which most of them have anyway.
fusion_messages(fusion_worker_proto worker)
set(lite "$<BOOL:$<TARGET_PROPERTY:FUSION_PROTOBUF_LITE>>")
target_link_libraries(fusion_worker_proto PUBLIC $<IF:${lite},protobuf::libprotobuf-lite,protobuf::libprotobuf>)

set(stub_sources "")
set(stub_protos "")
set(stub_outputs "")
set(stub_depends ${proto_names})
list(TRANSFORM stub_depends REPLACE "(.+)" "${proto_root}/fusion/v1/\\1.proto")
foreach(name IN ITEMS fusion_service fusion_admin)
  set(stub ${proto_out}/fusion/v1/${name})
  list(APPEND stub_protos ${proto_root}/fusion/v1/${name}.proto)
  list(APPEND stub_sources ${stub}.grpc.pb.cc)
  list(APPEND stub_outputs ${stub}.grpc.pb.cc ${stub}.grpc.pb.h ${stub}_mock.grpc.pb.h)
endforeach()
add_custom_command(
  OUTPUT ${stub_outputs}
  COMMAND protobuf::protoc --proto_path=${proto_root} --grpc_out=generate_mock_code=true:${proto_out}
          --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin> ${stub_protos}
  DEPENDS ${stub_depends}
  COMMENT "protoc stubs of the services"
  VERBATIM)
add_library(fusion_grpc STATIC EXCLUDE_FROM_ALL ${stub_sources})
target_link_libraries(fusion_grpc PUBLIC fusion_proto gRPC::grpc++)
# Made by protoc to be compiled one by one.
set_target_properties(fusion_grpc PROPERTIES UNITY_BUILD OFF)
