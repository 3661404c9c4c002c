#include "core/wire/error_details.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/cord.h"
#include "core/bundle/rules.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {
namespace {

std::string Blamed(const absl::Status& status) {
  absl::optional<absl::Cord> names = status.GetPayload(kBlamedRules);
  return names.has_value() ? std::string(*names) : "";
}

absl::Status Sent(const absl::Status& status) {
  absl::Status out(status.code(), "as it comes");
  DecodeErrorDetails(EncodeErrorDetails(status), &out);
  return out;
}

TEST(ErrorDetails, NamesOfRulesTravel) {
  absl::Status status = FailedPrecondition("rules force what no kernel can be");
  EXPECT_EQ(EncodeErrorDetails(status), "");
  EXPECT_EQ(Blamed(Sent(status)), "");
  status.SetPayload(kBlamedRules, absl::Cord("first second-1.0"));
  EXPECT_EQ(Blamed(Sent(status)), "first second-1.0");
  v1::ErrorStatus details;
  ASSERT_TRUE(details.ParseFromString(EncodeErrorDetails(status)));
  EXPECT_EQ(details.code(), 9);
  EXPECT_EQ(details.details(0).type_url(), "type.googleapis.com/fusion.v1.RulesFault");
}

TEST(ErrorDetails, OnlyTheFirstFitIntoHeaders) {
  std::string names(64, 'n');
  for (int i = 0; i < 63; ++i) names += " " + std::string(64, 'n');
  absl::Status status = FailedPrecondition("all of them");
  status.SetPayload(kBlamedRules, absl::Cord(names));
  EXPECT_LT(EncodeErrorDetails(status).size(), 1024u);
  EXPECT_EQ(Blamed(Sent(status)), names.substr(0, 8 * 65 - 1));
}

TEST(ErrorDetails, WhatIsNoneSaysNothing) {
  absl::Status status = Internal("x");
  for (const std::string& bytes : {std::string("\xff\xff\xff"), std::string(100, 'a')}) {
    DecodeErrorDetails(bytes, &status);
    EXPECT_EQ(Blamed(status), "");
  }
  v1::ErrorStatus other;
  other.add_details()->PackFrom(v1::PlanFusionRequest());
  DecodeErrorDetails(other.SerializeAsString(), &status);
  EXPECT_EQ(Blamed(status), "");
}

}  // namespace
}  // namespace fusion
