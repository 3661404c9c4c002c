#include "core/wire/stored_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/wire/basics/scalars.h"
#include "fusion/v1/fusion_service.pb.h"
#include "tests/support/message_checks.h"

namespace fusion {
namespace {

using testing::HasSubstr;

KernelTexts SampleTexts() {
  return {.key = Sha256("key"),
          .content = Sha256("object"),
          .source = "extern \"C\" int fk();",
          .schedule = "schedule { }",
          .reference = "reference { }",
          .smg = "smg { }",
          .compiler = "g++ -O2"};
}

TEST(WireKernelTexts, EveryFieldTravels) {
  EXPECT_EQ(FieldCount<KernelTexts>(), WireFieldCount<v1::KernelTexts>());
  EXPECT_EQ(FieldCount<KeyField>(), WireFieldCount<v1::KeyField>());
  v1::KernelTexts wire;
  EncodeKernelTexts(SampleTexts(), &wire);
  EXPECT_THAT(UnsetFields(wire), testing::IsEmpty());
  v1::KernelTexts again;
  EncodeKernelTexts(DecodeKernelTexts(wire).value(), &again);
  EXPECT_EQ(TextOf(again), TextOf(wire));
}

TEST(WireKernelTexts, HostileFieldsAreNamed) {
  v1::KernelTexts wire;
  EncodeKernelTexts(SampleTexts(), &wire);
  wire.set_content_sha256("x");
  EXPECT_THAT(std::string(Message(DecodeKernelTexts(wire).status())),
              HasSubstr("kernel.content_sha256: a digest of 1"));
  wire.clear_key();
  EXPECT_THAT(std::string(Message(DecodeKernelTexts(wire).status())),
              HasSubstr("kernel.key: a digest of 0"));
  EXPECT_FALSE(DecodeStoredTexts(v1::GetStoredResponse()).ok());
}

}  // namespace
}  // namespace fusion
