// Requests that are wrong: each gets a code that says who must act, and a message in its words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "tests/service/fusion_caller.h"
#include "tests/service/raw_http2.h"
#include "tests/support/daemon.h"

namespace fusion {
namespace {

using grpc::StatusCode;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

// Knows everything but AVX-512.
constexpr std::string_view kOldCompiler = R"(#!/bin/sh
case "$*" in *avx512*) echo "error: unrecognized option -mavx512f" >&2; exit 1;; esac
exec /usr/bin/g++ "$@"
)";

class BadRequestTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new ScratchDir;
    std::string compiler = dir_->Write("old-g++", std::string(kOldCompiler));
    ASSERT_EQ(chmod(compiler.c_str(), 0700), 0);
    absl::StatusOr<std::unique_ptr<TestDaemon>> daemon =
        TestDaemon::Start(FUSIOND, {"--allow-compiler", compiler, "--max-request-bytes", "4MiB"});
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = daemon->release();
    caller_ = new FusionCaller(daemon_->address());
  }
  static void TearDownTestSuite() {
    EXPECT_EQ(daemon_->Stop().exit_code, 0) << "nothing of all this broke the server";
    delete caller_;
    delete daemon_;
    delete dir_;
  }

  static v1::PlanFusionRequest Request(const TestModel& model) {
    v1::PlanFusionRequest request =
        RequestFor(const_cast<TestModel&>(model).proto(), v1::PLAN_MODE_PLAN_ONLY);
    request.mutable_target()->set_isa("avx2");
    return request;
  }
  static v1::PlanFusionRequest GoodRequest() { return Request(LinearReluModel()); }

  static void ExpectRefused(const v1::PlanFusionRequest& request, StatusCode code,
                            const testing::Matcher<std::string>& message) {
    v1::PlanFusionResponse response;
    grpc::Status status = caller_->Plan(request, &response);
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    EXPECT_THAT(status.error_message(), message);
    EXPECT_LE(status.error_message().size(), 2048u);
  }
  static void ExpectRefused(const TestModel& model, StatusCode code,
                            const testing::Matcher<std::string>& message) {
    ExpectRefused(Request(model), code, message);
  }

  static ScratchDir* dir_;
  static TestDaemon* daemon_;
  static FusionCaller* caller_;
};
ScratchDir* BadRequestTest::dir_ = nullptr;
TestDaemon* BadRequestTest::daemon_ = nullptr;
FusionCaller* BadRequestTest::caller_ = nullptr;

TEST_F(BadRequestTest, NoGraph) {
  v1::PlanFusionRequest request = GoodRequest();
  request.clear_onnx_model();
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT,
                HasSubstr("graph: missing; expected onnx_model or op_graph"));
}

TEST_F(BadRequestTest, NotOnnx) {
  v1::PlanFusionRequest request = GoodRequest();
  request.set_onnx_model(
      "\x7f"
      "ELF this is no model");
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, HasSubstr("ONNX model"));
  request.set_onnx_model("");
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT,
                HasSubstr("neither onnx_model nor op_graph"));
}

TEST_F(BadRequestTest, Truncated) {
  v1::PlanFusionRequest request = GoodRequest();
  request.mutable_onnx_model()->resize(request.onnx_model().size() / 2);
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, HasSubstr("truncated"));
}

TEST_F(BadRequestTest, Cyclic) {
  TestModel m;
  m.Input("x", {2, 4})
      .Node("Add", {"x", "b"}, {"a"}, "first")
      .Node("Relu", {"a"}, {"b"}, "second")
      .Output("b");
  ExpectRefused(m, StatusCode::INVALID_ARGUMENT, AllOf(HasSubstr("cycle"), HasSubstr("first")));
}

TEST_F(BadRequestTest, UnknownOp) {
  TestModel m;
  m.Input("x", {2, 4}).Node("Frobnicate", {"x"}, {"y"}, "odd one").Output("y");
  ExpectRefused(m, StatusCode::UNIMPLEMENTED,
                AllOf(HasSubstr("Frobnicate"), HasSubstr("odd one"), HasSubstr("17")));
}

TEST_F(BadRequestTest, ShapeMismatch) {
  TestModel m;
  m.Input("x", {2, 4})
      .Reference("w", {5, 3})
      .Node("MatMul", {"x", "w"}, {"y"}, "product")
      .Output("y");
  ExpectRefused(m, StatusCode::INVALID_ARGUMENT, AllOf(HasSubstr("product"), HasSubstr("MatMul")));
}

TEST_F(BadRequestTest, HostileNamesAreJustNames) {
  const std::string evil = "\"*/ system(\"rm -rf /\"); /* ' \\ \n %s ${x}";
  v1::PlanFusionRequest request = Request(LinearReluModel(8, evil));
  request.set_mode(v1::PLAN_MODE_COMPILE);
  v1::PlanFusionResponse response = caller_->Plan(request);
  EXPECT_THAT(response.binding().inputs(), testing::ElementsAre(evil + "x"));
  EXPECT_THAT(response.binding().nodes(), Each(testing::StartsWith(evil)));
  for (const v1::KernelStatus& kernel : response.kernels()) {
    EXPECT_EQ(kernel.state(), v1::KERNEL_STATE_READY);
  }
  TestModel m;
  m.Input("x", {2, 4}).Node("Frobnicate", {"x"}, {"y"}, evil).Output("y");
  ExpectRefused(m, StatusCode::UNIMPLEMENTED, HasSubstr("\\\"*/ system"));
}

TEST_F(BadRequestTest, ALongNameDoesNotBlowTheMessageUp) {
  TestModel m;
  m.Input("x", {2, 4}).Node("Frobnicate", {"x"}, {"y"}, std::string(100'000, 'n')).Output("y");
  ExpectRefused(m, StatusCode::UNIMPLEMENTED, HasSubstr("Frobnicate"));
}

TEST_F(BadRequestTest, ZeroSizedDimsArePlannedAndCompiled) {
  v1::PlanFusionRequest request = Request(LinearReluModel(0));
  request.set_mode(v1::PLAN_MODE_COMPILE);
  v1::PlanFusionResponse response = caller_->Plan(request);
  for (const v1::KernelStatus& kernel : response.kernels()) {
    EXPECT_EQ(kernel.state(), v1::KERNEL_STATE_READY);
  }
}

TEST_F(BadRequestTest, NegativeDims) {
  TestModel m;
  m.Input("x", {-2, 4}).Node("Relu", {"x"}, {"y"}).Output("y");
  ExpectRefused(m, StatusCode::INVALID_ARGUMENT, HasSubstr("x"));
}

TEST_F(BadRequestTest, Target) {
  v1::PlanFusionRequest request = GoodRequest();
  request.clear_target();
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, HasSubstr("target"));
  request = GoodRequest();
  request.mutable_target()->set_isa("");
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, HasSubstr("isa"));
  request.mutable_target()->set_isa("avx1024");
  ExpectRefused(request, StatusCode::UNIMPLEMENTED,
                AllOf(HasSubstr("avx1024"), HasSubstr("x86-64-v2")));
  request.mutable_target()->set_isa("avx2");
  request.mutable_target()->set_threads(-1);
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, HasSubstr("threads"));
}

TEST_F(BadRequestTest, AnIsaTheCompilerDoesNotKnow) {
  v1::PlanFusionRequest request = GoodRequest();
  request.set_mode(v1::PLAN_MODE_COMPILE);
  request.mutable_target()->set_isa("avx512");
  ExpectRefused(request, StatusCode::FAILED_PRECONDITION,
                AllOf(HasSubstr("avx512"), HasSubstr("unrecognized option")));
  request.set_mode(v1::PLAN_MODE_PLAN_ONLY);
  EXPECT_GT(caller_->Plan(request).plan().kernels_size(), 0) << "planning needs no compiler";
}

TEST_F(BadRequestTest, ContradictingBatchSize) {
  v1::PlanFusionRequest request = GoodRequest();  // 8 rows
  request.mutable_hints()->set_batch_size(4);
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, HasSubstr("batch_size"));
}

TEST_F(BadRequestTest, OptionsOutOfRange) {
  v1::PlanFusionRequest request = GoodRequest();
  request.mutable_hints()->set_memory_pressure(1.5);
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, HasSubstr("memory_pressure"));
  request = GoodRequest();
  request.set_mode(static_cast<v1::PlanMode>(77));
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, HasSubstr("77"));
  request = GoodRequest();
  request.add_dumps(static_cast<v1::DumpKind>(99));
  ExpectRefused(request, StatusCode::UNIMPLEMENTED, HasSubstr("dumps: unknown kind 99"));
  request = GoodRequest();
  (*request.mutable_options()->mutable_dim_bindings())["nobody"] = 4;
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, HasSubstr("nobody"));
  request = GoodRequest();
  request.mutable_options()->add_keep_outputs("absent");
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, HasSubstr("absent"));
}

TEST_F(BadRequestTest, OpGraph) {
  v1::PlanFusionRequest request = GoodRequest();
  request.mutable_op_graph()->set_name("empty");
  ExpectRefused(request, StatusCode::INVALID_ARGUMENT, HasSubstr("output"));
}

TEST_F(BadRequestTest, GarbageBytes) {
  std::string response;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {std::string(1000, '\xff'), "request is malformed"},
      {"\x0a\xff\xff\xff\xff\x07 short", "request is malformed"},
      {std::string(50, '\x0b'), "request is malformed"},
      {std::string(200, '\x0b'), "request is nested deeper than 100 messages"}};
  for (const auto& [bytes, said] : cases) {
    grpc::Status status =
        caller_->CallBytes("/fusion.v1.FusionService/PlanFusion", bytes, &response);
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(said));
  }
  grpc::Status empty = caller_->CallBytes("/fusion.v1.FusionService/PlanFusion", "", &response);
  EXPECT_EQ(empty.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(caller_->CallBytes("/fusion.v1.FusionService/Nothing", "", &response).error_code(),
            StatusCode::UNIMPLEMENTED);
}

// Two bytes on the wire, a hundred in memory, a million and a half times; `field` is the tag of the
// message they are in.
std::string Explosive(char field, std::string_view piece) {
  constexpr int kPieces = 1'500'000;
  std::string bytes(1, field);
  for (size_t left = kPieces * piece.size(); left > 0; left >>= 7) {
    bytes += static_cast<char>((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
  }
  for (int i = 0; i < kPieces; ++i) bytes += piece;
  return bytes;
}

TEST_F(BadRequestTest, BytesThatWouldExplodeWhenParsed) {
  using std::string_view;
  constexpr string_view kEmptyNode("\x2a\x00", 2);
  constexpr string_view kUnknownNumber("\x78\x00", 2);
  constexpr string_view kUnknownGroup("\x7b\x7c");
  for (string_view piece : {kEmptyNode, kUnknownNumber, kUnknownGroup}) {
    for (char field : {'\x12', '\x0a'}) {  // op_graph, onnx_model
      std::string response;
      grpc::Status status = caller_->CallBytes("/fusion.v1.FusionService/PlanFusion",
                                               Explosive(field, piece), &response);
      EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
      EXPECT_THAT(status.error_message(), HasSubstr("has more than 524288"));
    }
  }
}

TEST_F(BadRequestTest, AlsoWhereKernelsAreAskedFor) {
  for (std::string_view piece : {std::string_view("\x0a\x00", 2), std::string_view("\x7b\x7c")}) {
    std::string bytes;
    for (int i = 0; i < 1'500'000; ++i) bytes += piece;
    std::string response;
    grpc::Status status =
        caller_->CallBytes("/fusion.v1.FusionService/GetKernels", bytes, &response);
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr("request has more than 524288"));
  }
}

TEST_F(BadRequestTest, Oversize) {
  v1::PlanFusionRequest request = GoodRequest();
  request.set_onnx_model(std::string(5 << 20, 'x'));
  ExpectRefused(request, StatusCode::RESOURCE_EXHAUSTED, HasSubstr("--max-request-bytes"));
  EXPECT_TRUE(daemon_->WaitForOutput("this server takes at most 4")) << "it is logged";
  EXPECT_THAT(HttpGet(daemon_->admin_address(), "/statusz").body,
              HasSubstr("\"RESOURCE_EXHAUSTED\": "))
      << "and counted";
  // What is far too large never reaches us, and the server lives on.
  request.set_onnx_model(std::string(9 << 20, 'x'));
  ExpectRefused(request, StatusCode::RESOURCE_EXHAUSTED, HasSubstr("larger than max"));
}

TEST_F(BadRequestTest, Compressed) {
  grpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  v1::PlanFusionRequest request = GoodRequest();
  request.set_request_id(std::string(10'000, 'z'));  // worth compressing
  v1::PlanFusionResponse response;
  grpc::Status status = caller_->stub().PlanFusion(&context, request, &response);
  EXPECT_EQ(status.error_code(), StatusCode::UNIMPLEMENTED) << status.error_message();
}

// What no client library sends; who is at fault must not read that we are.
TEST_F(BadRequestTest, ACallThatIsBrokenOnItsWayIsNotOurFault) {
  const std::string whole = GrpcMessage("more than ten bytes");
  std::string compressed = whole, flagged = whole;
  compressed[0] = 1;
  flagged[0] = 7;
  for (const std::string method :
       {"FusionService/PlanFusion", "FusionService/GetCapabilities", "FusionService/ExplainPlan",
        "FusionService/GetKernels", "FusionService/PlanFusionStream",
        "FusionService/ReportLatencies", "FusionAdmin/GetStoreStats", "FusionAdmin/GetServerStatus",
        "FusionAdmin/ExportStore", "FusionAdmin/ImportStore"}) {
    for (const std::string& bytes :
         {std::string(), whole.substr(0, 3), whole.substr(0, 5), whole.substr(0, 10), compressed,
          flagged, whole + whole.substr(0, 4), whole + whole}) {
      RawHttp2 connection(daemon_->local_address());
      ASSERT_TRUE(connection.Hello());
      ASSERT_TRUE(connection.Call(1, StrCat("/fusion.v1.", method)));
      connection.Data(1, bytes, /*last=*/true, std::chrono::seconds(5));
      if (bytes.empty()) connection.End(1);
      // An export of all that other tests have planned takes more than one window.
      for (int i = 0; i < 6000 && connection.ended() == 0 && connection.ReadSlowly(1, 1 << 20);
           ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      EXPECT_EQ(connection.ended(), 1) << method << " with " << bytes.size() << " bytes";
      const std::string told = connection.trailers();
      const size_t at = told.find("grpc-status");
      ASSERT_NE(at, std::string::npos) << method;
      // A byte with the length is between; a message with flags that mean nothing may be answered.
      const std::string code = told.substr(at + 12, 1);
      // Of reports each is refused by itself.
      const bool counted = method == "FusionService/ReportLatencies" && bytes.size() > 10;
      EXPECT_EQ(code == "3" || (code == "0" && (bytes == flagged || counted)), true)
          << method << " with " << bytes.size() << " bytes: " << told.substr(at);
    }
  }
  const std::string log = daemon_->output();
  EXPECT_THAT(log, HasSubstr("the call ended without a whole request"));
  EXPECT_THAT(log, testing::Not(HasSubstr("\"code\":\"INTERNAL\"")));
}

// Callers that take the call back, or hang up, at any place of it.
TEST_F(BadRequestTest, ACallerThatGoesAwayIsNotOurFault) {
  v1::PlanFusionRequest request = GoodRequest();
  const std::string whole = GrpcMessage(request.SerializeAsString());
  for (const std::string method :
       {"FusionService/PlanFusion", "FusionService/PlanFusionStream", "FusionService/GetKernels",
        "FusionService/ReportLatencies", "FusionAdmin/ExportStore", "FusionAdmin/ImportStore"}) {
    for (size_t sent : {size_t{0}, size_t{3}, whole.size() / 2, whole.size()}) {
      for (bool resets : {true, false}) {
        RawHttp2 connection(daemon_->local_address());
        ASSERT_TRUE(connection.Hello());
        ASSERT_TRUE(connection.Call(1, StrCat("/fusion.v1.", method)));
        connection.Data(1, whole.substr(0, sent), /*last=*/false, std::chrono::seconds(5));
        if (resets) connection.Reset(1);
      }
    }
  }
  // The server is well, and has said so of all of them.
  v1::PlanFusionResponse response;
  EXPECT_TRUE(caller_->Plan(request, &response).ok());
  const std::string log = daemon_->output();
  EXPECT_THAT(log, testing::Not(HasSubstr("\"code\":\"INTERNAL\"")));
  EXPECT_THAT(log, testing::Not(HasSubstr("\"code\":\"UNKNOWN\"")));
  const std::string metrics = HttpGet(daemon_->admin_address(), "/metrics").body;
  EXPECT_THAT(metrics, testing::Not(HasSubstr("=\"INTERNAL\"")));
}

}  // namespace
}  // namespace fusion
