# fusion_proto: the messages of proto/fusion/v1 as C++; fusion_grpc: the stubs and mocks of FusionService.
# Generated headers are included as "fusion/v1/<file>.pb.h".
set(proto_root ${PROJECT_SOURCE_DIR}/proto)
set(proto_out ${CMAKE_CURRENT_BINARY_DIR}/generated/proto)
file(MAKE_DIRECTORY ${proto_out})
file(GLOB proto_files CONFIGURE_DEPENDS ${proto_root}/fusion/v1/*.proto)
set(proto_sources "")
foreach(file IN LISTS proto_files)
  get_filename_component(name ${file} NAME_WE)
  set(base ${proto_out}/fusion/v1/${name}.pb)
  add_custom_command(
    OUTPUT ${base}.cc ${base}.h
    COMMAND protobuf::protoc --proto_path=${proto_root} --cpp_out=${proto_out} ${file}
    DEPENDS ${proto_files}
    VERBATIM)
  list(APPEND proto_sources ${base}.cc ${base}.h)
endforeach()
# No fusion_flags: generated code is not ours to warn about. SYSTEM does the same for its headers.
add_library(fusion_proto STATIC ${proto_sources})
target_include_directories(fusion_proto SYSTEM PUBLIC ${proto_out})
target_link_libraries(fusion_proto PUBLIC protobuf::libprotobuf)

set(grpc_stub ${proto_out}/fusion/v1/fusion_service)
add_custom_command(
  OUTPUT ${grpc_stub}.grpc.pb.cc ${grpc_stub}.grpc.pb.h ${grpc_stub}_mock.grpc.pb.h
  COMMAND protobuf::protoc --proto_path=${proto_root} --grpc_out=generate_mock_code=true:${proto_out}
          --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin> ${proto_root}/fusion/v1/fusion_service.proto
  DEPENDS ${proto_files}
  VERBATIM)
add_library(fusion_grpc STATIC EXCLUDE_FROM_ALL ${grpc_stub}.grpc.pb.cc)
target_link_libraries(fusion_grpc PUBLIC fusion_proto gRPC::grpc++)
