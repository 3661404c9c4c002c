#include "core/wire/explanation.h"

#include "core/wire/answer.h"
#include "core/wire/basics/scalars.h"
#include "core/wire/plan.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {

void EncodeExplainFilter(const ExplainFilter& filter, v1::ExplainPlanRequest* out) {
  out->mutable_nodes()->Add(filter.nodes.begin(), filter.nodes.end());
  if (filter.group >= 0) out->set_group(filter.group);
}

absl::StatusOr<ExplainFilter> DecodeExplainFilter(const v1::ExplainPlanRequest& wire) {
  ExplainFilter filter;
  if (wire.nodes_size() > 2) {
    return InvalidArgument("nodes: ", wire.nodes_size(), " positions; expected at most 2");
  }
  filter.nodes.assign(wire.nodes().begin(), wire.nodes().end());
  if (!wire.has_group()) return filter;
  if (wire.group() < 0) return InvalidArgument("group: ", wire.group(), " is negative");
  filter.group = wire.group();
  return filter;
}

void EncodeExplanation(const PlanExplanation& explanation, v1::ExplainPlanResponse* out) {
  EncodePlan(explanation.plan, out->mutable_plan());
  out->set_plan_key(DigestToWire(explanation.plan_key));
  for (const std::string& name : explanation.node_names) out->add_node_names(TextToWire(name));
  if (explanation.cache.has_value()) out->set_cache(ToWire(*explanation.cache));
  for (const RefusalMeaning& code : explanation.codes) {
    v1::RefusalCode* wire = out->add_codes();
    wire->set_code(TextToWire(code.code));
    wire->set_meaning(TextToWire(code.meaning));
  }
}

absl::StatusOr<PlanExplanation> DecodeExplanation(const v1::ExplainPlanResponse& wire) {
  PlanExplanation out;
  ASSIGN_OR_RETURN(out.plan, DecodePlan(wire.plan()));
  absl::StatusOr<Digest> key = DigestFromWire(wire.plan_key());
  if (!key.ok()) return Annotate(key.status(), "plan_key");
  out.plan_key = *key;
  if (wire.node_names_size() != 0 && wire.node_names_size() != out.plan.nodes) {
    return InvalidArgument("node_names: ", wire.node_names_size(), " entries, the plan has ",
                           out.plan.nodes);
  }
  out.node_names.assign(wire.node_names().begin(), wire.node_names().end());
  if (wire.cache() != v1::CACHE_OUTCOME_UNSPECIFIED) out.cache = FromWire(wire.cache());
  for (const v1::RefusalCode& code : wire.codes()) {
    out.codes.push_back({code.code(), code.meaning()});
  }
  return out;
}

std::string ExplanationToBytes(const PlanExplanation& explanation) {
  v1::ExplainPlanResponse wire;
  EncodeExplanation(explanation, &wire);
  return wire.SerializeAsString();
}

absl::StatusOr<PlanExplanation> ExplanationFromBytes(std::string_view bytes) {
  v1::ExplainPlanResponse wire;
  if (bytes.size() > INT32_MAX ||
      !wire.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("explanation: ", bytes.size(),
                           " bytes that are not a fusion.v1.ExplainPlanResponse");
  }
  return DecodeExplanation(wire);
}

}  // namespace fusion
