#include "tests/support/imported.h"

#include <gtest/gtest.h>

#include "core/graph/build/text.h"
#include "core/graph/evaluate/evaluate.h"

namespace fusion {
namespace {

std::string Describe(TestModel& m, const ImportOptions& options, bool names) {
  auto graph = ImportOnnx(m.proto(), options);
  if (!graph.ok()) return std::string(graph.status().ToString());
  EXPECT_TRUE(Verify(*graph).ok()) << Verify(*graph);
  EXPECT_TRUE(ParseGraph(ToString(*graph)).ok());
  std::string out;
  for (const Node& node : graph->nodes()) {
    if (names) StrAppend(&out, StrCat(node.name, "="));
    StrAppend(&out, StrCat(node.def->name, node.attrs.ToString(), " "));
  }
  for (TensorId id : graph->outputs()) {
    StrAppend(&out, StrCat(graph->tensor(id).name, ":", graph->tensor(id).type.ToString(), " "));
  }
  out.pop_back();
  return out;
}

}  // namespace

std::vector<double> DoublesOf(const HostTensor& t) {
  std::vector<double> out;
  for (int64_t i = 0; i < t.elements(); ++i) out.push_back(t.GetDouble(i));
  return out;
}

std::string Import(TestModel& m, const ImportOptions& options) {
  return Describe(m, options, /*names=*/false);
}

std::string ImportNamed(TestModel& m, const ImportOptions& options) {
  return Describe(m, options, /*names=*/true);
}

std::vector<double> ResultOf(TestModel& m, const std::vector<HostTensor>& inputs) {
  auto graph = ImportOnnx(m.proto());
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  auto none = [](TensorId) -> absl::StatusOr<const HostTensor*> { return NotFound("no weights"); };
  auto out = Evaluate(*graph, inputs, none);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? DoublesOf((*out)[0]) : std::vector<double>();
}

HostTensor F(Dims dims, std::initializer_list<float> values) {
  return HostTensor::FromValues<float>(DType::kF32, std::move(dims), values);
}

TestModel OneNode(const std::string& op, const std::vector<std::string>& inputs, int opset) {
  TestModel m(opset);
  m.Input("x", {2, 3}).Node(op, inputs, {"y"}, "n").Output("y");
  return m;
}

}  // namespace fusion
