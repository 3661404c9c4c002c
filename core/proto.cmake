# fusion_proto: the messages of proto/fusion/v1, included as "fusion/v1/plan.pb.h". fusion_grpc: the stubs and mocks of
# FusionService and FusionAdmin. Both lie in the build tree; their headers are system headers and their sources get none of our warning
# flags, because the code is not ours.
set(proto_root ${PROJECT_SOURCE_DIR}/proto)
set(proto_out ${PROJECT_BINARY_DIR}/proto)
file(MAKE_DIRECTORY ${proto_out})

set(proto_sources "")
set(proto_files "")
foreach(name IN ITEMS op_graph cuts tile_search plan plan_lock measurements rules registered_kernels fusion_service fusion_admin)
  list(APPEND proto_files ${proto_root}/fusion/v1/${name}.proto)
  list(APPEND proto_sources ${proto_out}/fusion/v1/${name}.pb.cc)
endforeach()
list(TRANSFORM proto_sources REPLACE "\\.cc$" ".h" OUTPUT_VARIABLE proto_headers)
add_custom_command(
  OUTPUT ${proto_sources} ${proto_headers}
  COMMAND protobuf::protoc --proto_path=${proto_root} --cpp_out=${proto_out} ${proto_files}
  DEPENDS ${proto_files}
  COMMENT "protoc proto/fusion/v1"
  VERBATIM)
add_library(fusion_proto STATIC ${proto_sources})
target_include_directories(fusion_proto SYSTEM PUBLIC ${proto_out})
target_link_libraries(fusion_proto PUBLIC protobuf::libprotobuf)

# The server's own file of callers: a library of its own, which no client links.
add_custom_command(
  OUTPUT ${proto_out}/fusion/v1/access.pb.cc ${proto_out}/fusion/v1/access.pb.h
  COMMAND protobuf::protoc --proto_path=${proto_root} --cpp_out=${proto_out} ${proto_root}/fusion/v1/access.proto
  DEPENDS ${proto_root}/fusion/v1/access.proto
  COMMENT "protoc proto/fusion/v1/access.proto"
  VERBATIM)
add_library(fusion_access_proto STATIC EXCLUDE_FROM_ALL ${proto_out}/fusion/v1/access.pb.cc)
target_include_directories(fusion_access_proto SYSTEM PUBLIC ${proto_out})
target_link_libraries(fusion_access_proto PUBLIC protobuf::libprotobuf)

set(stub_sources "")
set(stub_protos "")
set(stub_outputs "")
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
  DEPENDS ${proto_files}
  COMMENT "protoc stubs of the services"
  VERBATIM)
add_library(fusion_grpc STATIC EXCLUDE_FROM_ALL ${stub_sources})
target_link_libraries(fusion_grpc PUBLIC fusion_proto gRPC::grpc++)
# Made by protoc to be compiled one by one.
set_target_properties(fusion_proto fusion_grpc fusion_access_proto PROPERTIES UNITY_BUILD OFF)
