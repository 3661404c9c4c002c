# fusion_proto: the messages of proto/fusion/v1, included as "fusion/v1/plan.pb.h". fusion_grpc: the stubs and mocks of
# FusionService. Both lie in the build tree; their headers are system headers and their sources get none of our warning
# flags, because the code is not ours.
set(proto_root ${PROJECT_SOURCE_DIR}/proto)
set(proto_out ${PROJECT_BINARY_DIR}/proto)
file(MAKE_DIRECTORY ${proto_out})

set(proto_sources "")
set(proto_files "")
foreach(name IN ITEMS op_graph cuts tile_search plan plan_lock measurements rules registered_kernels fusion_service)
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

set(grpc_stub ${proto_out}/fusion/v1/fusion_service)
add_custom_command(
  OUTPUT ${grpc_stub}.grpc.pb.cc ${grpc_stub}.grpc.pb.h ${grpc_stub}_mock.grpc.pb.h
  COMMAND protobuf::protoc --proto_path=${proto_root} --grpc_out=generate_mock_code=true:${proto_out}
          --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin> ${proto_root}/fusion/v1/fusion_service.proto
  DEPENDS ${proto_files}
  COMMENT "protoc FusionService stubs"
  VERBATIM)
add_library(fusion_grpc STATIC EXCLUDE_FROM_ALL ${grpc_stub}.grpc.pb.cc)
target_link_libraries(fusion_grpc PUBLIC fusion_proto gRPC::grpc++)
