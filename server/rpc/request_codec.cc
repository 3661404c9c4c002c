#include "server/rpc/request_codec.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>

#include <charconv>

#include "core/wire/accuracy.h"
#include "core/wire/answer.h"
#include "core/wire/basics/limits.h"
#include "core/wire/basics/scalars.h"
#include "core/wire/epochs.h"
#include "core/wire/explanation.h"
#include "core/wire/options/options.h"
#include "core/wire/options/plan_lock.h"
#include "core/wire/options/target.h"
#include "core/wire/plan.h"
#include "core/wire/report_origin.h"
#include "core/wire/signature.h"
#include "core/wire/stored_texts.h"
#include "fusion/v1/fusion_service.pb.h"
#include "server/rpc/parse_request.h"

namespace fusion {
namespace {

// A page token: 16 hex digits of the plan's time, then 64 of its key.
std::string TokenOf(const PlanPlace& place) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  auto ms = static_cast<uint64_t>(place.created_unix_ms);
  for (int shift = 60; shift >= 0; shift -= 4) out += kDigits[ms >> shift & 15];
  return out + place.key.ToHex();
}

absl::StatusOr<PlanPlace> PlaceFrom(std::string_view token) {
  constexpr size_t kTimeDigits = 16;
  PlanPlace place;
  uint64_t ms = 0;
  bool sound = token.size() == kTimeDigits + 2 * place.key.bytes.size();
  if (sound) {
    const char* end = token.data() + kTimeDigits;
    auto [stop, error] = std::from_chars(token.data(), end, ms, 16);
    sound = error == std::errc() && stop == end &&
            Digest::FromHex(token.substr(kTimeDigits), &place.key);
  }
  if (!sound) {
    return InvalidArgument("page_token: ", QuoteShort(token),
                           "; expected next_page_token of an answer, or nothing");
  }
  place.created_unix_ms = static_cast<int64_t>(ms);
  return place;
}

class ParsedRequest final : public DecodedRequest {
 public:
  absl::Status Parse(std::string_view bytes) {
    auto* wire = google::protobuf::Arena::CreateMessage<v1::PlanFusionRequest>(&arena_);
    RETURN_IF_ERROR(ParseRequest(bytes, wire));
    RETURN_IF_ERROR(DecodeWork(*wire));
    ASSIGN_OR_RETURN(request_.mode, FromWire(wire->mode()));
    request_.explain_miss = wire->explain_miss();
    request_.ready_within = std::chrono::milliseconds(wire->ready_within_ms());
    for (int kind : wire->dumps()) {
      ASSIGN_OR_RETURN(DumpKind dump, FromWire(static_cast<v1::DumpKind>(kind)));
      request_.dumps.insert(dump);
    }
    return absl::OkStatus();
  }

  // Parses an ExplainPlanRequest: its request, if it has one, into this; the rest into `query`.
  absl::Status ParseExplain(std::string_view bytes, ExplainQuery* query) {
    auto* wire = google::protobuf::Arena::CreateMessage<v1::ExplainPlanRequest>(&arena_);
    RETURN_IF_ERROR(ParseRequest(bytes, wire));
    ASSIGN_OR_RETURN(query->filter, DecodeExplainFilter(*wire));
    switch (wire->subject_case()) {
      case v1::ExplainPlanRequest::kPlanKey: {
        absl::StatusOr<Digest> key = DigestFromWire(wire->plan_key());
        if (!key.ok()) return Annotate(key.status(), "plan_key");
        query->plan = *key;
        return absl::OkStatus();
      }
      case v1::ExplainPlanRequest::kRequest: {
        absl::Status work = DecodeWork(wire->request());
        if (!work.ok()) return Annotate(work, "request");
        request_.mode = PlanMode::kPlanOnly;
        return absl::OkStatus();
      }
      case v1::ExplainPlanRequest::SUBJECT_NOT_SET:
        break;
    }
    return InvalidArgument("subject: missing; expected plan_key or request");
  }

 private:
  // The fields that determine the plan.
  absl::Status DecodeWork(const v1::PlanFusionRequest& wire) {
    request_id_ = wire.request_id().substr(0, kMaxRequestIdBytes);
    RETURN_IF_ERROR(DecodeGraph(wire));
    request_.allow_fused = wire.allow_fused();
    request_.model_name = Beginning(wire.model_name(), kMaxModelNameBytes);
    if (!wire.has_target()) return InvalidArgument("target: missing");
    ASSIGN_OR_RETURN(request_.target, DecodeTarget(wire.target()));
    ASSIGN_OR_RETURN(request_.options, DecodeOptions(wire.options(), wire.hints()));
    return absl::OkStatus();
  }

  absl::Status DecodeGraph(const v1::PlanFusionRequest& wire) {
    switch (wire.graph_case()) {
      case v1::PlanFusionRequest::kOnnxModel: {
        // Looked up by name, because only core/onnx, import and export may include ONNX's header.
        const google::protobuf::Descriptor* model =
            google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(
                "onnx.ModelProto");
        // Only the size is checked here: the importer has better errors for malformed models.
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

std::string EncodeFieldHead(int field, size_t bytes) {
  using google::protobuf::io::CodedOutputStream;
  uint8_t head[16];
  uint8_t* end =
      CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(field) << 3 | 2, head);
  end = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(bytes), end);
  return {reinterpret_cast<char*>(head), static_cast<size_t>(end - head)};
}

absl::StatusOr<std::unique_ptr<DecodedRequest>> DecodePlanRequest(std::string_view bytes) {
  auto parsed = std::make_unique<ParsedRequest>();
  RETURN_IF_ERROR(parsed->Parse(bytes));
  return std::unique_ptr<DecodedRequest>(std::move(parsed));
}

absl::StatusOr<std::vector<Digest>> DecodeKernelsRequest(std::string_view bytes) {
  v1::GetKernelsRequest wire;
  RETURN_IF_ERROR(ParseRequest(bytes, &wire));
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

EncodedReply EncodePlanReply(const PlanReply& reply, const std::optional<Signature>& signature) {
  google::protobuf::Arena arena;
  auto& wire = *google::protobuf::Arena::CreateMessage<v1::PlanFusionResponse>(&arena);
  wire.set_plan_key(DigestToWire(reply.stored->key));
  EncodeBinding(reply.binding, wire.mutable_binding());
  for (const KernelStatus& status : reply.kernels) EncodeKernelStatus(status, wire.add_kernels());
  wire.set_cache(ToWire(reply.cache));
  for (const StageTime& stage : reply.stages) EncodeStageTime(stage, wire.add_stages());
  for (const Dump& dump : reply.dumps) EncodeDump(dump, wire.add_dumps());
  if (reply.lock != nullptr) EncodeLock(*reply.lock, wire.mutable_lock());
  if (reply.miss.has_value()) EncodeMiss(*reply.miss, wire.mutable_miss());
  for (const std::string& warning : reply.warnings) wire.add_warnings(TextToWire(warning));
  if (signature.has_value()) EncodeSignature(*signature, wire.mutable_signature());

  return {.head = EncodeFieldHead(v1::PlanFusionResponse::kPlanFieldNumber,
                                  reply.stored->plan_bytes.size()),
          .plan = reply.stored,
          .tail = wire.SerializeAsString()};
}

std::string EncodeFurtherStage(const StageTime& stage) {
  v1::PlanFusionResponse wire;
  EncodeStageTime(stage, wire.add_stages());
  return wire.SerializeAsString();
}

std::string EncodeResponseEventHead(const EncodedReply& reply) {
  return EncodeFieldHead(v1::PlanFusionEvent::kResponseFieldNumber,
                         reply.head.size() + reply.plan->plan_bytes.size() + reply.tail.size());
}

std::string EncodeProgressEvent(const PlanProgress& progress) {
  v1::PlanFusionEvent wire;
  EncodePlanProgress(progress, wire.mutable_progress());
  return wire.SerializeAsString();
}

absl::StatusOr<DecodedReport> DecodeLatencyReport(std::string_view bytes) {
  v1::ReportLatencyRequest wire;
  RETURN_IF_ERROR(ParseRequest(bytes, &wire));
  DecodedReport out;
  ASSIGN_OR_RETURN(out.report, DecodeLatencyReport(wire));
  ASSIGN_OR_RETURN(out.origin, DecodeReportOrigin(wire));
  return out;
}

std::string EncodeAddedReport(const AddedReport& added) {
  v1::ReportLatencyResponse wire;
  wire.set_accepted_samples(added.samples);
  wire.set_duplicate(added.duplicate);
  return wire.SerializeAsString();
}

std::string EncodeReportsOutcome(const ReportCounts& reports, const ReportsOutcome& outcome) {
  v1::ReportLatenciesResponse wire;
  wire.set_accepted_reports(reports.ok);
  wire.set_accepted_samples(outcome.accepted_samples);
  wire.set_duplicates(reports.duplicate);
  wire.set_refused_reports(reports.refused());
  for (const ReportsOutcome::Refusal& refusal : outcome.refused) {
    v1::RefusedReport* out = wire.add_refused();
    out->set_index(refusal.index);
    out->set_code(static_cast<int32_t>(refusal.why.code()));
    out->set_message(Beginning(TextToWire(Message(refusal.why)), kMaxRefusalBytes));
  }
  return wire.SerializeAsString();
}

absl::StatusOr<ReportQuery> DecodeReportQuery(std::string_view bytes) {
  v1::GetReportRequest wire;
  RETURN_IF_ERROR(ParseRequest(bytes, &wire));
  return DecodeReportQuery(wire);
}

std::string EncodeReports(const std::vector<PlanReport>& reports) {
  v1::GetReportResponse wire;
  for (const PlanReport& report : reports) EncodePlanReport(report, wire.add_plans());
  return wire.SerializeAsString();
}

absl::Status CheckAccuracyRequest(std::string_view bytes) {
  v1::GetAccuracyRequest wire;
  return ParseRequest(bytes, &wire);
}

std::string EncodeAccuracies(const std::vector<DeviceAccuracy>& devices) {
  v1::GetAccuracyResponse wire;
  for (const DeviceAccuracy& device : devices) EncodeAccuracy(device, wire.add_devices());
  return wire.SerializeAsString();
}

absl::Status CheckEpochsRequest(std::string_view bytes) {
  v1::ListEpochsRequest wire;
  return ParseRequest(bytes, &wire);
}

std::string EncodeEpochList(const EpochList& list) {
  v1::ListEpochsResponse wire;
  EncodeEpochs(list, &wire);
  return wire.SerializeAsString();
}

absl::StatusOr<ExplainQuery> DecodeExplainQuery(std::string_view bytes) {
  ExplainQuery query;
  auto parsed = std::make_unique<ParsedRequest>();
  RETURN_IF_ERROR(parsed->ParseExplain(bytes, &query));
  if (!query.plan.has_value()) query.request = std::move(parsed);
  return query;
}

absl::StatusOr<ListQuery> DecodeListQuery(std::string_view bytes) {
  v1::ListPlansRequest wire;
  RETURN_IF_ERROR(ParseRequest(bytes, &wire));
  ListQuery query;
  ASSIGN_OR_RETURN(query.page_size, DecodePageSize("page_size", wire.page_size()));
  if (wire.page_token().empty()) return query;
  ASSIGN_OR_RETURN(query.after, PlaceFrom(wire.page_token()));
  return query;
}

std::string EncodePlanPage(const PlanPage& page) {
  v1::ListPlansResponse wire;
  for (const PlanSummary& plan : page.plans) EncodePlanSummary(plan, wire.add_plans());
  if (page.last.has_value()) wire.set_next_page_token(TokenOf(*page.last));
  return wire.SerializeAsString();
}

absl::StatusOr<StoredQuery> DecodeStoredQuery(std::string_view bytes) {
  v1::GetStoredRequest wire;
  RETURN_IF_ERROR(ParseRequest(bytes, &wire));
  if (wire.key_case() == v1::GetStoredRequest::KEY_NOT_SET) {
    return InvalidArgument("neither plan nor kernel is given; expected one of them");
  }
  StoredQuery query{.is_plan = wire.has_plan()};
  absl::StatusOr<Digest> key = DigestFromWire(query.is_plan ? wire.plan() : wire.kernel());
  if (!key.ok()) return Annotate(key.status(), query.is_plan ? "plan" : "kernel");
  query.key = *key;
  return query;
}

std::string EncodeStoredTexts(const StoredPlan& plan) {
  v1::GetStoredResponse wire;
  EncodePlan(plan.plan, wire.mutable_plan());
  const auto fields = FieldHasher::Fields(plan.full_key);
  if (!fields.has_value()) return wire.SerializeAsString();
  for (const auto& [name, value] : *fields) {
    v1::KeyField* field = wire.add_fields();
    field->set_name(TextToWire(name));
    field->set_value(TextToWire(value));
  }
  return wire.SerializeAsString();
}

std::string EncodeStoredTexts(const KernelTexts& kernel) {
  v1::GetStoredResponse wire;
  EncodeKernelTexts(kernel, wire.mutable_kernel());
  return wire.SerializeAsString();
}

absl::Status CheckCapabilitiesRequest(std::string_view bytes) {
  v1::GetCapabilitiesRequest wire;
  return ParseRequest(bytes, &wire);
}

std::string EncodeCapabilities(const Capabilities& capabilities) {
  v1::GetCapabilitiesResponse wire;
  EncodeCapabilities(capabilities, &wire);
  return wire.SerializeAsString();
}

}  // namespace fusion
