// What differs in age understands each other: clients and stores of earlier versions, made up and
// recorded, and what is of a later one.
#include <google/protobuf/unknown_field_set.h>

#include "client/client.h"
#include "client/fusion_reply.h"
#include "core/base/files/file.h"
#include "core/onnx/reference_weights.h"
#include "tests/models/models.h"
#include "tests/service/run_program.h"
#include "tests/service/server_fixture.h"

namespace fusion {
namespace {

using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

class VersionsTest : public ServerTest {};

v1::PlanFusionRequest SmallRequest() {
  ModelParams params = FindModel("mlp")->defaults;
  params.rows = 2;
  params.cols = 4;
  params.depth = 1;
  return RequestFor(
      ReferenceWeights(GenerateModel(*FindModel("mlp"), params).value().model).value());
}

// Fields by number, as the first version of fusion_service.proto had them: whatever a later one
// says of their names. onnx_model = 1, target = 3 (isa = 5, threads = 10), mode = 4, request_id
// = 9.
std::string FirstRequest() {
  const v1::PlanFusionRequest now = SmallRequest();
  UnknownFieldSet target;
  target.AddLengthDelimited(5, now.target().isa());
  target.AddVarint(10, 1);
  UnknownFieldSet request;
  request.AddLengthDelimited(1, now.onnx_model());
  std::string bytes;
  target.SerializeToString(&bytes);
  request.AddLengthDelimited(3, bytes);
  request.AddVarint(4, 1);  // PLAN_MODE_COMPILE
  request.AddLengthDelimited(9, "of the first version");
  request.SerializeToString(&bytes);
  return bytes;
}

std::vector<const UnknownField*> FieldsOf(const UnknownFieldSet& message, int number) {
  std::vector<const UnknownField*> out;
  for (int i = 0; i < message.field_count(); ++i) {
    if (message.field(i).number() == number) out.push_back(&message.field(i));
  }
  return out;
}

TEST_F(VersionsTest, AClientOfTheFirstVersionGetsAFullAnswer) {
  Start();
  std::string bytes;
  grpc::Status status =
      caller_->CallBytes("/fusion.v1.FusionService/PlanFusion", FirstRequest(), &bytes);
  ASSERT_TRUE(status.ok()) << status.error_message();
  // It knows these numbers and skips all others.
  UnknownFieldSet answer;
  ASSERT_TRUE(answer.ParseFromString(bytes));
  ASSERT_EQ(FieldsOf(answer, 1).size(), 1u) << "plan";
  ASSERT_EQ(FieldsOf(answer, 2).size(), 1u) << "plan_key";
  EXPECT_EQ(FieldsOf(answer, 2)[0]->length_delimited().size(), 32u);
  ASSERT_FALSE(FieldsOf(answer, 4).empty()) << "kernels";
  for (const UnknownField* kernel : FieldsOf(answer, 4)) {
    UnknownFieldSet fields;
    ASSERT_TRUE(fields.ParseFromString(kernel->length_delimited()));
    ASSERT_EQ(FieldsOf(fields, 2).size(), 1u);
    EXPECT_EQ(FieldsOf(fields, 2)[0]->varint(), 2u) << "READY";
    EXPECT_EQ(FieldsOf(fields, 3)[0]->length_delimited().size(), 32u) << "content_sha256";
  }
  ASSERT_EQ(FieldsOf(answer, 5).size(), 1u) << "cache";
  EXPECT_EQ(FieldsOf(answer, 5)[0]->varint(), 1u) << "MISS";
}

// What a fusiond and a fusionctl of e70aceb (2026-11-26, schema 1 of the store, version 2 of plans)
// left: the store of one plan for AVX2 and one thread, of the model of plan-request.pb, which is
// what its PlanFusion sent.
const std::string kRecorded = StrCat(FUSION_SOURCE_DIR, "/tests/service/recorded/");
constexpr char kRecordedPlan[] = "90a5b4d2ba0c9d71b05615b95a1f41ada01a47ea7a2650de1baa1d1ae77932bb";
// Kernels and their binaries.
const std::map<std::string, std::string> kRecordedKernels = {
    {"9b4de9779b6de996978d61a6f3e1595b32ab06217c3ab40a40f75bc4e2b6ef2a",
     "27940724d483f8fc95112737c7cb19a7ced806bc568441a4c18425e05bc5206a"},
    {"6ef4e0671bd3afc3f898adc39e409d187a242ba41e5f7d2486b143ee52de44ea",
     "767d0c45c54b3b4e64e12e4832c5a54f4e95f790f0a423805a7c52c4a134bb5a"}};

TEST_F(VersionsTest, AStoreOfAnEarlierServerIsServed) {
  const ProgramResult unpacked = RunProgram(
      {"/bin/tar", "-xzf", StrCat(kRecorded, "store-schema-1.tar.gz"), "-C", dir_.path()});
  ASSERT_EQ(unpacked.code, 0) << unpacked.err;
  for (const bool migrates : {true, false}) {
    StartWithStore();
    EXPECT_EQ(daemon_->output().find("\"event\":\"store_migrated\"") != std::string::npos,
              migrates);
    EXPECT_EQ(Metric("fusion_store_started_empty"), 0);
    auto client = Client::Connect(daemon_->address()).value();
    const std::vector<PlanSummary> plans = client->ListPlans(10).value();
    ASSERT_EQ(plans.size(), 1u);
    EXPECT_EQ(plans[0].plan_key.ToHex(), kRecordedPlan);
    EXPECT_EQ(plans[0].compiled_kernels, 2);
    absl::StatusOr<StoredPlanTexts> stored = client->GetStoredPlan(plans[0].plan_key);
    ASSERT_TRUE(stored.ok()) << stored.status();
    std::vector<Digest> keys;
    for (const auto& [key, content] : kRecordedKernels) {
      ASSERT_TRUE(Digest::FromHex(key, &keys.emplace_back()));
    }
    absl::StatusOr<std::vector<FetchedKernel>> kernels = client->GetKernels(keys);
    ASSERT_TRUE(kernels.ok()) << kernels.status();
    for (const FetchedKernel& kernel : *kernels) {
      EXPECT_EQ(Sha256(kernel.binary).ToHex(), kRecordedKernels.at(kernel.key.ToHex()));
    }
    EXPECT_EQ(daemon_->Stop().exit_code, 0);
  }
}

TEST_F(VersionsTest, ARecordedClientIsAnswered) {
  Start();
  const std::string request = ReadFile(StrCat(kRecorded, "plan-request.pb"), 1 << 20).value();
  std::string bytes;
  grpc::Status status = caller_->CallBytes("/fusion.v1.FusionService/PlanFusion", request, &bytes);
  ASSERT_TRUE(status.ok()) << status.error_message();
  v1::PlanFusionResponse answer;
  ASSERT_TRUE(answer.ParseFromString(bytes));
  // It refuses plans of any other version.
  EXPECT_EQ(answer.plan().version(), 2u);
  EXPECT_EQ(answer.plan_key().size(), 32u);
  ASSERT_GT(answer.kernels_size(), 0);
  for (const v1::KernelStatus& kernel : answer.kernels()) {
    EXPECT_EQ(kernel.state(), v1::KERNEL_STATE_READY);
  }
}

TEST_F(VersionsTest, AServerIgnoresFieldsOfALaterClient) {
  Start();
  UnknownFieldSet later;
  later.AddLengthDelimited(1900, "of the future");
  later.AddVarint(1901, 7);
  std::string more, bytes;
  later.SerializeToString(&more);
  grpc::Status status =
      caller_->CallBytes("/fusion.v1.FusionService/PlanFusion", FirstRequest() + more, &bytes);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(VersionsTest, OurClientIgnoresFieldsOfALaterServer) {
  Start();
  v1::PlanFusionResponse response = caller_->Plan(SmallRequest());
  const std::string bytes = response.SerializeAsString();
  UnknownFieldSet later;
  later.AddLengthDelimited(1900, "of the future");
  std::string more;
  later.SerializeToString(&more);
  v1::PlanFusionResponse other;
  ASSERT_TRUE(other.ParseFromString(bytes + more));
  auto add_to = [](google::protobuf::Message* message) {
    message->GetReflection()->MutableUnknownFields(message)->AddVarint(1900, 1);
  };
  add_to(other.mutable_plan());
  for (v1::KernelStatus& kernel : *other.mutable_kernels()) {
    add_to(&kernel);
  }
  absl::StatusOr<FusionReply> reply = DecodeReply(other);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->plan.kernels.size(), static_cast<size_t>(response.plan().kernels_size()));
}

}  // namespace
}  // namespace fusion
