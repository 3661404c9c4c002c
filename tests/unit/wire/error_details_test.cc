#include "core/wire/error_details.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/cord.h"
#include "core/base/files/server_state.h"
#include "core/base/files/unwritable.h"
#include "core/bundle/rules/rules.h"
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

TEST(ErrorDetails, ADiskThatTakesNothingIsOfTheServer) {
  EXPECT_FALSE(IsOfServerState(Sent(ResourceExhausted("more steps than one request may take"))));
  EXPECT_TRUE(IsOfServerState(Sent(OfServerState(ResourceExhausted("no room on the disk")))));
  EXPECT_TRUE(IsOfServerState(Sent(WithWriteError(ResourceExhausted("writing"), ENOSPC))));
  EXPECT_FALSE(IsOfServerState(Sent(WithWriteError(ResourceExhausted("writing"), EFBIG))));
}

TEST(ErrorDetails, TheDelayTravelsAsEveryClientKnowsIt) {
  constexpr Nanoseconds kDelay = std::chrono::milliseconds(2500);
  EXPECT_EQ(RetryAfterOf(ResourceExhausted("full")), std::nullopt);
  absl::Status status = WithRetryAfter(ResourceExhausted("full"), kDelay);
  EXPECT_EQ(RetryAfterOf(Sent(status)), kDelay);
  EXPECT_EQ(RetryAfterOf(Sent(Annotate(status, "kernel fk_1"))), kDelay)
      << "whoever names the place on the way";
  status.SetPayload(kBlamedRules, absl::Cord("first"));
  EXPECT_EQ(RetryAfterOf(Sent(status)), kDelay);
  EXPECT_EQ(Blamed(Sent(status)), "first");
  v1::ErrorStatus details;
  ASSERT_TRUE(details.ParseFromString(EncodeErrorDetails(status)));
  EXPECT_EQ(details.details(1).type_url(), "type.googleapis.com/google.rpc.RetryInfo");
  v1::RetryInfo info;
  ASSERT_TRUE(info.ParseFromString(details.details(1).value()));
  EXPECT_EQ(info.retry_delay().seconds(), 2);
  EXPECT_EQ(info.retry_delay().nanos(), 500'000'000);
}

TEST(ErrorDetails, WhetherTheServerIsToBlameTravelsAsEveryClientKnowsIt) {
  EXPECT_FALSE(IsOfServerState(Sent(FailedPrecondition("a lock"))));
  const absl::Status status = ServerPrecondition("there is no ", "compiler");
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(Message(status), "there is no compiler");
  EXPECT_TRUE(IsOfServerState(Sent(Annotate(status, "kernel fk_1"))));
  v1::ErrorStatus details;
  ASSERT_TRUE(details.ParseFromString(EncodeErrorDetails(status)));
  google::protobuf::Any* detail = details.mutable_details(0);
  EXPECT_EQ(detail->type_url(), "type.googleapis.com/google.rpc.PreconditionFailure");
  EXPECT_EQ(detail->value(), "\x0a\x08\x0a\x06SERVER") << "violations { type: \"SERVER\" }";
  const std::string subject = "\x12\x01s";
  auto blames = [&](const std::string& value) {
    detail->set_value(value);
    absl::Status got = FailedPrecondition("odd");
    DecodeErrorDetails(details.SerializeAsString(), &got);
    return IsOfServerState(got);
  };
  EXPECT_TRUE(
      blames("\x0a\x04\x0a\x02TO"
             "\x0a\x0b" +
             subject + "\x0a\x06SERVER"))
      << "the second";
  for (const char* none : {"", "\xff", "\x0a\x04\x0a\x02TO", "\x08\x01", "\x0a\x02\x08\x01",
                           "\x12\x08\x0a\x06SERVER", "\x0a\x08\x12\x06SERVER"}) {
    EXPECT_FALSE(blames(none));
  }
}

TEST(ErrorDetails, ADelayThatIsNoneIsNone) {
  absl::Status status = Unavailable("odd");
  for (const char* text : {"", "soon", "12 ms", "-5", "99999999999999999999"}) {
    status.SetPayload(kRetryAfter, absl::Cord(text));
    EXPECT_EQ(RetryAfterOf(status), std::nullopt) << text;
  }
  v1::ErrorStatus details;
  google::protobuf::Any* detail = details.add_details();
  detail->set_type_url("type.googleapis.com/google.rpc.RetryInfo");
  v1::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(-1);
  for (const std::string& value : {std::string("\xff\xff"), info.SerializeAsString()}) {
    detail->set_value(value);
    absl::Status got = Unavailable("odd");
    DecodeErrorDetails(details.SerializeAsString(), &got);
    EXPECT_EQ(RetryAfterOf(got), std::nullopt);
  }
  info.mutable_retry_delay()->set_seconds(INT64_MAX);  // is cut, and does not run over
  detail->set_value(info.SerializeAsString());
  absl::Status got = Unavailable("odd");
  DecodeErrorDetails(details.SerializeAsString(), &got);
  EXPECT_EQ(RetryAfterOf(got), std::chrono::hours(24));
}

}  // namespace
}  // namespace fusion
