// What guards the server before a request is understood, at its default limits: bytes that would
// explode, graphs too deep or too large. Each is refused by a limit that is named, and leaves the
// server's memory as it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/sanitizer.h"
#include "tests/service/fusion_caller.h"
#include "tests/service/process_memory.h"
#include "tests/support/daemon.h"

namespace fusion {
namespace {

using grpc::StatusCode;
using std::string_view;
using testing::HasSubstr;

constexpr string_view kPlan = "/fusion.v1.FusionService/PlanFusion";
// What 5 MB become while they are read and looked at, and the allocators' slack. Parsed they would
// be hundreds of MB; kept by the threads' arenas, 68.
constexpr int64_t kSlackBytes = int64_t{24} << 20;

std::string Varint(size_t value) {
  std::string bytes;
  for (; value > 0x7f; value >>= 7) bytes += static_cast<char>((value & 0x7f) | 0x80);
  bytes += static_cast<char>(value);
  return bytes;
}

// Field `number` of a message, of bytes.
std::string Field(int number, string_view bytes) {
  return StrCat(Varint(static_cast<size_t>(number) << 3 | 2), Varint(bytes.size()), bytes);
}

std::string Repeated(string_view piece, size_t bytes) {
  std::string all;
  all.reserve(bytes + piece.size());
  while (all.size() < bytes) all += piece;
  return all;
}

// 5 MB of a piece, in fields of fields from the inside out.
std::string FieldsOf(const std::vector<int>& fields, string_view piece) {
  std::string bytes = Repeated(piece, 5'000'000);
  for (int number : fields) bytes = Field(number, bytes);
  return bytes;
}

class GuardTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::vector<std::string> args;
    // They keep freed memory, for which connections are closed.
    if (kSanitized) args = {"--max-inflight-bytes", "8GiB"};
    absl::StatusOr<std::unique_ptr<TestDaemon>> daemon = TestDaemon::Start(FUSIOND, args);
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = daemon->release();
    caller_ = new FusionCaller(daemon_->address());
  }
  static void TearDownTestSuite() {
    EXPECT_EQ(daemon_->Stop().exit_code, 0) << "nothing of all this broke the server";
    delete caller_;
    delete daemon_;
  }

  // What the acceptance rows show of a test.
  void SetUp() override {
    largest_bytes_ = 0;
    resident_ = MemoryOf(daemon_->pid(), "VmRSS");
  }
  void TearDown() override {
    RecordProperty("largest_request_bytes", std::to_string(largest_bytes_));
    RecordProperty("server_grew_bytes",
                   std::to_string(MemoryOf(daemon_->pid(), "VmRSS") - resident_));
  }

  static grpc::Status Call(string_view method, const std::string& bytes) {
    std::string response;
    largest_bytes_ = std::max(largest_bytes_, bytes.size());
    return caller_->CallBytes(std::string(method), bytes, &response);
  }

  static v1::PlanFusionRequest PlanOnly(TestModel model) {
    return RequestFor(model.proto(), v1::PLAN_MODE_PLAN_ONLY);
  }

  static grpc::Status Plan(const v1::PlanFusionRequest& request) {
    v1::PlanFusionResponse response;
    largest_bytes_ = std::max(largest_bytes_, request.ByteSizeLong());
    return caller_->Plan(request, &response);
  }

  static TestDaemon* daemon_;
  static FusionCaller* caller_;
  static size_t largest_bytes_;  // of the requests of a test

 private:
  int64_t resident_ = 0;  // bytes, before the test
};
TestDaemon* GuardTest::daemon_ = nullptr;
FusionCaller* GuardTest::caller_ = nullptr;
size_t GuardTest::largest_bytes_ = 0;

TEST_F(GuardTest, FiveMegabytesOfAnythingEmptyLeaveMemoryFlat) {
  struct Case {
    const char* what;
    std::vector<int> fields;  // around the pieces, from the inside out
    std::string piece;
  };
  const std::string empty = Field(1, "");
  const std::vector<Case> cases = {
      {"OpGraph.nodes", {2}, Field(5, "")},
      {"OpGraph.tensors", {2}, Field(4, "")},
      {"OpGraph.symbols", {2}, Field(3, "")},
      {"OpGraph nodes with an empty attribute each", {2}, Field(5, Field(4, ""))},
      {"attributes of one OpGraph node", {5, 2}, Field(4, "")},
      {"dims of one OpGraph tensor", {4, 2}, Field(4, "")},
      {"entries of PlanOptions.dim_bindings", {7}, Field(3, "")},
      {"names of PlanOptions.keep_outputs", {7}, Field(4, "")},
      {"fields nobody knows", {}, Field(1000, "")},
      {"numbers nobody knows", {}, "\xc0\x3e\x01"},
      {"groups nobody knows", {2}, "\x7b\x7c"},
      {"ONNX nodes", {7, 1}, Field(1, "")},
      {"ONNX initialisers", {7, 1}, Field(5, "")},
      {"ONNX inputs", {7, 1}, Field(11, "")},
      {"attributes of one ONNX node", {1, 7, 1}, Field(5, "")},
      {"nodes of a subgraph", {6, 5, 1, 7, 1}, Field(1, "")},
      {"tensors of an attribute", {5, 1, 7, 1}, Field(10, "")},
      {"graphs of an attribute", {5, 1, 7, 1}, Field(11, "")},
      {"ONNX metadata", {1}, Field(14, "")},
      {"ONNX functions", {1}, Field(25, "")},
      {"ONNX fields nobody knows", {7, 1}, Field(1000, "")},
  };
  // The first calls of this size make buffers that stay, in every arena of the allocator.
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(Call(kPlan, FieldsOf({2}, empty)).error_code(), StatusCode::RESOURCE_EXHAUSTED);
  }
  const int64_t resident = MemoryOf(daemon_->pid(), "VmRSS");
  const int64_t highest = MemoryOf(daemon_->pid(), "VmHWM");
  ASSERT_GT(resident, 0);
  for (const Case& c : cases) {
    grpc::Status status = Call(kPlan, FieldsOf(c.fields, c.piece));
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED)
        << c.what << ": " << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr("has more than 524288")) << c.what;
  }
  if (kSanitized) GTEST_SKIP() << "sanitizers keep freed memory";
  const int64_t grew = MemoryOf(daemon_->pid(), "VmRSS") - resident;
  RecordProperty("grew_after_the_first_calls_bytes", std::to_string(grew));
  EXPECT_LT(grew, kSlackBytes);
  EXPECT_LT(MemoryOf(daemon_->pid(), "VmHWM"), highest + kSlackBytes);
}

TEST_F(GuardTest, NumbersCountBecauseTheyGrow) {
  // One byte each, eight in memory, sixteen while the array grows.
  grpc::Status status = Call(kPlan, FieldsOf({4, 5, 2}, std::string(1, '\x01')));
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT) << "no attribute is such bytes";
  std::string values = Field(1, Repeated("\x01", 5'000'000));
  for (int number : {5, 4, 5, 2}) values = Field(number, values);  // Ints, attribute, node, graph
  status = Call(kPlan, values);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr("eight numbers counted as one"));
}

TestModel ReluChain(int nodes) {
  TestModel m;
  m.Input("t0", {8, 16});
  for (int i = 0; i < nodes; ++i) m.Node("Relu", {StrCat("t", i)}, {StrCat("t", i + 1)});
  m.Output(StrCat("t", nodes));
  return m;
}

TEST_F(GuardTest, DeeplyNestedGraphs) {
  v1::PlanFusionRequest request = PlanOnly(ReluChain(1));
  for (int depth : {50, 1000, 5000}) {
    std::string node;
    for (int i = 0; i < depth; ++i)
      node = Field(1, Field(5, Field(6, node)));  // node, attribute, g
    request.set_onnx_model(Field(7, node));
    grpc::Status status = Plan(request);
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT) << depth;
    EXPECT_THAT(status.error_message(), HasSubstr("ONNX model")) << depth;
  }
  // The same of what nobody knows: parsers keep it, nested.
  for (int depth : {1000, 1'000'000}) {
    std::string groups(static_cast<size_t>(depth), '\x7b');
    groups += std::string(static_cast<size_t>(depth), '\x7c');
    grpc::Status status = Call(kPlan, groups);
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT) << depth;
    EXPECT_THAT(status.error_message(), HasSubstr("request is nested deeper than 100 messages"))
        << depth;
  }
}

TEST_F(GuardTest, AHundredThousandNodesAreRefusedByTheirNumber) {
  grpc::Status status = Plan(PlanOnly(ReluChain(100'000)));
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr("65536"));

  v1::PlanFusionRequest request = PlanOnly(ReluChain(1));
  v1::OpGraph* graph = request.mutable_op_graph();
  v1::Tensor* input = graph->add_tensors();
  input->set_id(1);
  input->set_kind(v1::Tensor::KIND_INPUT);
  input->set_data_type(v1::DATA_TYPE_F32);
  input->add_dims()->set_value(16);
  graph->add_inputs(1);
  for (uint32_t i = 1; i <= 100'000; ++i) {
    v1::Node* node = graph->add_nodes();
    node->set_op("Relu");
    node->add_inputs(i);
    node->add_outputs(i + 1);
  }
  graph->add_outputs(100'001);
  status = Plan(request);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr("65536"));
}

TEST_F(GuardTest, AThousandNodesAreServed) {
  grpc::Status status = Plan(PlanOnly(ReluChain(1000)));
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(GuardTest, DimsAndElements) {
  auto relu = [](const std::vector<TestModel::TestDim>& dims) {
    TestModel m;
    m.Input("x", dims).Node("Relu", {"x"}, {"y"}, "unit").Output("y");
    return PlanOnly(m);
  };
  constexpr int64_t kHuge = int64_t{1} << 40;
  for (const v1::PlanFusionRequest& request :
       {relu(std::vector<TestModel::TestDim>(65, TestModel::TestDim(1))), relu({kHuge + 1}),
        relu({kHuge, kHuge}), relu({kHuge, kHuge, kHuge, kHuge}),
        relu({INT64_MAX, INT64_MAX, 2})}) {
    grpc::Status status = Plan(request);
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr("\"x\""));
  }
}

TEST_F(GuardTest, EveryCallCountsItsBytes) {
  for (string_view method :
       {"PlanFusion", "PlanFusionStream", "GetKernels", "ReportLatency", "GetReport", "GetAccuracy",
        "ListPlans", "GetStored", "GetCapabilities"}) {
    for (const std::string& piece : {Field(1000, ""), std::string("\x7b\x7c")}) {
      grpc::Status status = Call(StrCat("/fusion.v1.FusionService/", method), FieldsOf({}, piece));
      EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED)
          << method << ": " << status.error_message();
      EXPECT_THAT(status.error_message(), HasSubstr("has more than 524288")) << method;
    }
  }
}

}  // namespace
}  // namespace fusion
