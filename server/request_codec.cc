#include "server/request_codec.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>

#include "core/wire/answer.h"
#include "core/wire/limits.h"
#include "core/wire/options.h"
#include "core/wire/scalars.h"
#include "core/wire/target.h"
#include "fusion/v1/fusion_service.pb.h"
#include "server/object_count.h"

namespace fusion {
namespace {

constexpr size_t kMaxRequestIdBytes = 128;

absl::Status CheckObjects(const google::protobuf::Descriptor& type, std::string_view bytes,
                          std::string_view what) {
  int64_t objects = CountObjects(type, bytes, kMaxRequestObjects);
  if (objects < 0) {
    return InvalidArgument(what, " is malformed: its ", bytes.size(), " bytes are no protobuf ",
                           type.full_name());
  }
  if (objects > kMaxRequestObjects) {
    return ResourceExhausted(what, " has more than ", kMaxRequestObjects,
                             " messages, texts and unknown fields, eight numbers counted as one");
  }
  return absl::OkStatus();
}

class ParsedRequest final : public DecodedRequest {
 public:
  absl::Status Parse(std::string_view bytes) {
    RETURN_IF_ERROR(CheckObjects(*v1::PlanFusionRequest::descriptor(), bytes, "request"));
    auto* wire = google::protobuf::Arena::CreateMessage<v1::PlanFusionRequest>(&arena_);
    if (!wire->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return InvalidArgument("request is malformed: its ", bytes.size(),
                             " bytes are no protobuf fusion.v1.PlanFusionRequest");
    }
    request_id_ = wire->request_id().substr(0, kMaxRequestIdBytes);
    RETURN_IF_ERROR(DecodeGraph(*wire));
    if (!wire->has_target()) return InvalidArgument("target: missing");
    ASSIGN_OR_RETURN(request_.target, DecodeTarget(wire->target()));
    ASSIGN_OR_RETURN(request_.mode, FromWire(wire->mode()));
    request_.ready_within = std::chrono::milliseconds(wire->ready_within_ms());
    ASSIGN_OR_RETURN(request_.options, DecodeOptions(wire->options(), wire->hints()));
    for (int kind : wire->dumps()) {
      ASSIGN_OR_RETURN(DumpKind dump, FromWire(static_cast<v1::DumpKind>(kind)));
      request_.dumps.insert(dump);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status DecodeGraph(const v1::PlanFusionRequest& wire) {
    switch (wire.graph_case()) {
      case v1::PlanFusionRequest::kOnnxModel: {
        // Asked for by name, because ONNX's own header is for core/onnx and core/import alone.
        const google::protobuf::Descriptor* model =
            google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(
                "onnx.ModelProto");
        // The importer says better what is wrong with a malformed model; only size is our matter.
        if (model != nullptr) {
          absl::Status sane = CheckObjects(*model, wire.onnx_model(), "onnx_model");
          if (absl::IsResourceExhausted(sane)) return sane;
        }
        request_.source.onnx_model = wire.onnx_model();
        return absl::OkStatus();
      }
      case v1::PlanFusionRequest::kOpGraph:
        request_.source.op_graph = &wire.op_graph();
        return absl::OkStatus();
      case v1::PlanFusionRequest::GRAPH_NOT_SET:
        break;
    }
    return InvalidArgument("graph: missing; expected onnx_model or op_graph");
  }

  google::protobuf::Arena arena_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DecodedRequest>> DecodePlanRequest(std::string_view bytes) {
  auto parsed = std::make_unique<ParsedRequest>();
  RETURN_IF_ERROR(parsed->Parse(bytes));
  return std::unique_ptr<DecodedRequest>(std::move(parsed));
}

absl::StatusOr<std::vector<Digest>> DecodeKernelsRequest(std::string_view bytes) {
  RETURN_IF_ERROR(CheckObjects(*v1::GetKernelsRequest::descriptor(), bytes, "request"));
  v1::GetKernelsRequest wire;
  if (!wire.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("request is malformed: its ", bytes.size(),
                           " bytes are no protobuf fusion.v1.GetKernelsRequest");
  }
  if (wire.keys_size() > kMaxKernelKeys) {
    return InvalidArgument("keys: ", wire.keys_size(), " entries; expected at most ",
                           kMaxKernelKeys);
  }
  std::vector<Digest> keys;
  for (const std::string& key : wire.keys()) {
    absl::StatusOr<Digest> digest = DigestFromWire(key);
    if (!digest.ok()) return Annotate(digest.status(), StrCat("keys[", keys.size(), "]"));
    keys.push_back(*digest);
  }
  return keys;
}

EncodedReply EncodePlanReply(const PlanReply& reply) {
  google::protobuf::Arena arena;
  auto& wire = *google::protobuf::Arena::CreateMessage<v1::PlanFusionResponse>(&arena);
  wire.set_plan_key(DigestToWire(reply.stored->key));
  EncodeBinding(reply.binding, wire.mutable_binding());
  for (const KernelStatus& status : reply.kernels) EncodeKernelStatus(status, wire.add_kernels());
  wire.set_cache(ToWire(reply.cache));
  for (const StageTime& stage : reply.stages) EncodeStageTime(stage, wire.add_stages());
  for (const Dump& dump : reply.dumps) EncodeDump(dump, wire.add_dumps());
  for (const std::string& warning : reply.warnings) wire.add_warnings(TextToWire(warning));

  EncodedReply encoded{.head = {}, .plan = reply.stored, .tail = wire.SerializeAsString()};
  // What a serialiser writes in front of field 1, `plan`.
  uint8_t header[16];
  uint8_t* end = google::protobuf::io::CodedOutputStream::WriteVarint32ToArray(
      v1::PlanFusionResponse::kPlanFieldNumber << 3 | 2, header);
  end = google::protobuf::io::CodedOutputStream::WriteVarint32ToArray(
      static_cast<uint32_t>(reply.stored->plan_bytes.size()), end);
  encoded.head.assign(reinterpret_cast<char*>(header), static_cast<size_t>(end - header));
  return encoded;
}

}  // namespace fusion
