#include "server/request_codec.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>

#include "core/wire/kernel.h"
#include "core/wire/options.h"
#include "core/wire/scalars.h"
#include "core/wire/target.h"
#include "fusion/v1/fusion_service.pb.h"
#include "server/object_count.h"

namespace fusion {
namespace {

constexpr size_t kMaxRequestIdBytes = 128;

absl::StatusOr<DumpKind> DumpFromWire(int kind) {
  switch (kind) {
    case v1::DUMP_KIND_GRAPH:
      return DumpKind::kGraph;
    case v1::DUMP_KIND_PROGRAM:
      return DumpKind::kProgram;
    case v1::DUMP_KIND_SMG:
      return DumpKind::kSmg;
    case v1::DUMP_KIND_SCHEDULE:
      return DumpKind::kSchedule;
    case v1::DUMP_KIND_SOURCE:
      return DumpKind::kSource;
    case v1::DUMP_KIND_UNSPECIFIED:
      return InvalidArgument("dumps: unspecified kind; expected 1..5");
    default:
      return Unimplemented("dumps: unknown kind ", kind, "; expected 1..5");
  }
}

v1::DumpKind ToWire(DumpKind kind) {
  switch (kind) {
    case DumpKind::kGraph:
      return v1::DUMP_KIND_GRAPH;
    case DumpKind::kProgram:
      return v1::DUMP_KIND_PROGRAM;
    case DumpKind::kSmg:
      return v1::DUMP_KIND_SMG;
    case DumpKind::kSchedule:
      return v1::DUMP_KIND_SCHEDULE;
    case DumpKind::kSource:
      return v1::DUMP_KIND_SOURCE;
  }
  return v1::DUMP_KIND_UNSPECIFIED;
}

v1::CacheOutcome ToWire(CacheOutcome outcome) {
  switch (outcome) {
    case CacheOutcome::kMiss:
      return v1::CACHE_OUTCOME_MISS;
    case CacheOutcome::kHitMemory:
      return v1::CACHE_OUTCOME_HIT_MEMORY;
    case CacheOutcome::kHitStore:
      return v1::CACHE_OUTCOME_HIT_STORE;
    case CacheOutcome::kSharedFlight:
      return v1::CACHE_OUTCOME_SHARED_FLIGHT;
  }
  return v1::CACHE_OUTCOME_UNSPECIFIED;
}

absl::Status CheckObjects(const google::protobuf::Descriptor& type, std::string_view bytes,
                          std::string_view what) {
  int64_t objects = CountObjects(type, bytes, kMaxRequestObjects);
  if (objects < 0) {
    return InvalidArgument(what, " is malformed: its ", bytes.size(), " bytes are no protobuf ",
                           type.full_name());
  }
  if (objects > kMaxRequestObjects) {
    return ResourceExhausted(what, " has more than ", kMaxRequestObjects,
                             " fields that hold messages or texts");
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
      ASSIGN_OR_RETURN(DumpKind dump, DumpFromWire(kind));
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

void EncodeNames(const std::vector<std::string>& names,
                 google::protobuf::RepeatedPtrField<std::string>* out) {
  out->Reserve(static_cast<int>(names.size()));
  for (const std::string& name : names) *out->Add() = TextToWire(name);
}

void EncodeKernelStatus(const KernelStatus& status, v1::KernelStatus* out) {
  out->set_key(DigestToWire(status.key));
  out->set_state(ToWire(status.state));
  if (status.state != KernelState::kReady) return;
  out->set_content_sha256(DigestToWire(status.content));
  out->set_bytes(status.bytes);
  EncodeCheckReport(status.check, out->mutable_check());
  out->set_cached(status.cached);
  out->set_compile_ms(status.compile_ms);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DecodedRequest>> DecodePlanRequest(std::string_view bytes) {
  auto parsed = std::make_unique<ParsedRequest>();
  RETURN_IF_ERROR(parsed->Parse(bytes));
  return std::unique_ptr<DecodedRequest>(std::move(parsed));
}

EncodedReply EncodePlanReply(const PlanReply& reply) {
  google::protobuf::Arena arena;
  auto& wire = *google::protobuf::Arena::CreateMessage<v1::PlanFusionResponse>(&arena);
  wire.set_plan_key(DigestToWire(reply.stored->key));
  EncodeNames(reply.inputs, wire.mutable_binding()->mutable_inputs());
  EncodeNames(reply.outputs, wire.mutable_binding()->mutable_outputs());
  EncodeNames(reply.weights, wire.mutable_binding()->mutable_weights());
  EncodeNames(reply.nodes, wire.mutable_binding()->mutable_nodes());
  for (const KernelStatus& status : reply.kernels) EncodeKernelStatus(status, wire.add_kernels());
  wire.set_cache(ToWire(reply.cache));
  for (const StageTime& stage : reply.stages) {
    v1::StageTime& out = *wire.add_stages();
    out.set_stage(stage.stage);
    out.set_milliseconds(ToMilliseconds(stage.took));
  }
  for (const Dump& dump : reply.dumps) {
    v1::Dump& out = *wire.add_dumps();
    out.set_kind(ToWire(dump.kind));
    out.set_name(TextToWire(dump.name));
    out.set_text(TextToWire(dump.text));
  }
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

std::string_view CacheOutcomeName(CacheOutcome outcome) {
  switch (outcome) {
    case CacheOutcome::kMiss:
      return "miss";
    case CacheOutcome::kHitMemory:
      return "hit-memory";
    case CacheOutcome::kHitStore:
      return "hit-store";
    case CacheOutcome::kSharedFlight:
      return "shared-flight";
  }
  return "unknown";
}

}  // namespace fusion
