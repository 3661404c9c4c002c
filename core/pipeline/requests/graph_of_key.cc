#include "core/pipeline/requests/graph_of_key.h"

#include "core/graph/build/text.h"
#include "core/pipeline/requests/plan_key.h"

namespace fusion {
namespace {

// A line of KeyText: '  %3 = const "" : f32[64,64] sha256 5f1c...' becomes a weight.
std::string WithoutDigest(std::string_view line) {
  const size_t digest = line.rfind(" sha256 ");
  const size_t type = line.find(" : ");
  if (digest == std::string_view::npos || type == std::string_view::npos || type > digest) {
    return std::string(line);
  }
  const size_t kind = line.find(" = ");
  const std::string_view rest = kind > type ? "" : line.substr(kind);
  if (!rest.starts_with(" = const ") && !rest.starts_with(" = initializer ")) {
    return std::string(line);
  }
  return StrCat(line.substr(0, kind), " = weight \"\"", line.substr(type, digest - type));
}

}  // namespace

absl::StatusOr<Graph> GraphOfKey(std::string_view full_key) {
  absl::StatusOr<PlanKeyParts> parts = ParsePlanKey(full_key);
  if (!parts.ok()) return FailedPrecondition(Message(parts.status()));
  absl::StatusOr<Graph> graph =
      ParseGraph(StrJoin(StrSplit(parts->graph, '\n'), "\n", WithoutDigest));
  if (graph.ok()) return graph;
  return FailedPrecondition("the key of the plan does not hold its graph: ",
                            Message(graph.status()));
}

}  // namespace fusion
