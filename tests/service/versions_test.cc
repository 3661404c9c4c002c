// What differs in age understands each other: a client of the first version, a server of a later
// one.
#include <google/protobuf/unknown_field_set.h>

#include "client/fusion_reply.h"
#include "core/onnx/reference_weights.h"
#include "tests/models/models.h"
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
