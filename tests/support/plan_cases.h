#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/build/builder.h"
#include "core/graph/build/text.h"
#include "core/plan/planner.h"
#include "tests/support/whole_program.h"

namespace fusion {

/// A graph in text form; the process ends if it is none.
inline Graph GraphOf(std::string_view text) {
  auto graph = ParseGraph(text);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  return *std::move(graph);
}

/// A server of two threads.
inline DeviceSpec Cpu() { return DeviceNamed("intel-skylake-server", 2); }

inline constexpr const char* kMatMulAddRelu = R"(graph "mar" {
  %0 = input "x" : f32[128,256]
  %1 = weight "w" : f32[256,512]
  %2 = weight "b" : f32[512]
  %3 = MatMul(%0, %1) : f32[128,512]  "" @ "mm"
  %4 = Add(%3, %2) : f32[128,512]  "" @ "add"
  %5 = Relu(%4) : f32[128,512]  "" @ "relu"
  output %5
}
)";

/// `layers` times the same work, so large that every layer is two kernels.
inline Graph Layers(int layers) {
  GraphBuilder builder;
  TensorId at = builder.AddInput("x", {DType::kF32, Shape{128, 768}});
  for (int i = 0; i < layers; ++i) {
    TensorId up = builder.AddWeight(StrCat("up", i), {DType::kF32, Shape{768, 3072}});
    TensorId down = builder.AddWeight(StrCat("down", i), {DType::kF32, Shape{3072, 768}});
    TensorId hidden = builder.AddNode("MatMul", {at, up}).value();
    hidden = builder.AddNode("Relu", {hidden}).value();
    TensorId out = builder.AddNode("MatMul", {hidden, down}).value();
    at = builder.AddNode("Add", {at, out}).value();
  }
  builder.MarkOutput(at);
  return builder.Build().value();
}

/// Labels of the groups that run at every inference, in order.
inline std::vector<std::string> Labels(const PlannedModel& model) {
  std::vector<std::string> labels;
  for (const PlanLaunch& launch : model.plan.launches) {
    labels.push_back(model.plan.groups[static_cast<size_t>(launch.group)].label);
  }
  return labels;
}

/// The entry about the two groups that hold nodes `a` and `b`.
inline const PlanDecision* PairOf(const Plan& plan, int a, int b) {
  auto holds = [&](int group, int node) {
    const std::vector<int>& nodes = plan.groups[static_cast<size_t>(group)].nodes;
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
  };
  for (const PlanDecision& d : plan.decisions) {
    if (d.subject != DecisionSubject::kPair) continue;
    for (const DecisionPlace& place : d.places) {
      if (holds(place.first_group, a) && holds(place.second_group, b)) return &d;
    }
  }
  return nullptr;
}

}  // namespace fusion
