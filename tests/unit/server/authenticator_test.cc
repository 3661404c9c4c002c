#include "server/access/authenticator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/base/files/file.h"
#include "core/base/utc_time.h"
#include "server/access/audit.h"
#include "server/access/rpc_record.h"
#include "server/admission/tenant_counts.h"
#include "tests/support/capturing_logger.h"
#include "tests/support/scratch_dir.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::Pair;

const auto kNow = std::chrono::system_clock::from_time_t(1800000000);  // 2027-01-15

std::string Entry(const std::string& name, const std::string& secret,
                  const std::string& more = "") {
  return StrCat("tokens { name: '", name, "' sha256: '", Sha256(secret).ToHex(), "' ", more, "}\n");
}

class AuthenticatorTest : public testing::Test {
 protected:
  void Open(const std::string& text, bool certificates = false) {
    authenticator_ = Authenticator::Open(
                         {.tokens_file = dir_.Write("tokens", text), .certificates = certificates},
                         Logger::Silent())
                         .value();
  }
  absl::StatusOr<Caller> OfToken(std::string_view authorization) const {
    return authenticator_->Identify({.authorization = authorization, .spiffe_id = ""}, kNow);
  }
  absl::StatusOr<Caller> OfId(std::string_view id) const {
    return authenticator_->Identify({.authorization = {}, .spiffe_id = id}, kNow);
  }
  absl::StatusOr<Caller> OfOwner() const {
    return authenticator_->Identify({.authorization = {}, .spiffe_id = "", .owner = true}, kNow);
  }
  ScratchDir dir_;
  std::unique_ptr<Authenticator> authenticator_;
};

TEST_F(AuthenticatorTest, ATokenHasItsTenantRolesAndName) {
  Open(Entry("ci", "s", "tenant: 'shop' roles: 'plan' roles: 'admin'"));
  Caller caller = OfToken("Bearer s").value();
  EXPECT_EQ(caller.tenant, "shop");
  EXPECT_EQ(caller.identity, "ci");
  EXPECT_EQ(caller.roles, RoleSet::None().With(Role::kPlan).With(Role::kAdmin));
  EXPECT_TRUE(OfToken("bearer  s ").ok()) << "the scheme has no case";
  Open(Entry("ci", "s"));
  EXPECT_EQ(OfToken("Bearer s")->tenant, "default");
  EXPECT_EQ(OfToken("Bearer s")->roles, kUsualRoles);
}

TEST_F(AuthenticatorTest, WithoutTokensTheOwnerMayDoEverythingAndNobodyElse) {
  for (const bool certificates : {false, true}) {
    authenticator_ =
        Authenticator::Open({.tokens_file = "", .certificates = certificates}, Logger::Silent())
            .value();
    EXPECT_EQ(OfOwner()->roles, RoleSet::All());
    EXPECT_EQ(OfOwner()->identity, "owner");
    EXPECT_EQ(OfOwner()->tenant, "default");
    const absl::StatusOr<Caller> nobody = OfId("");
    EXPECT_EQ(nobody.ok(), !certificates) << nobody.status();
    if (nobody.ok()) {
      EXPECT_EQ(nobody->roles, kUsualRoles.With(Role::kTrustedReport));
    }
  }
  Open(Entry("ci", "s"));
  EXPECT_TRUE(absl::IsUnauthenticated(OfOwner().status())) << "who has tokens says who may what";
}

TEST_F(AuthenticatorTest, AChangedFileThatOthersCanWriteIsNotRead) {
  Open(Entry("ci", "s"));
  const std::string path = dir_.Write("tokens", Entry("other", "t"));
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  authenticator_->Reload(/*always=*/true);
  EXPECT_TRUE(OfToken("Bearer s").ok());
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  authenticator_->Reload(/*always=*/true);
  EXPECT_TRUE(OfToken("Bearer t").ok());
}

TEST_F(AuthenticatorTest, WhatIsNoTokenIsRefusedAndNotRepeated) {
  Open(Entry("ci", "s"));
  for (std::string_view text : {"", "s", "Basic s", "Bearer", "Bearer ", "Bearer t", "Bearer S"}) {
    absl::Status status = OfToken(text).status();
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << text << ": " << status;
  }
  EXPECT_TRUE(absl::IsUnauthenticated(OfToken("Bearer " + std::string(5000, 'x')).status()));
  EXPECT_THAT(std::string(Message(OfToken("Bearer my-secret").status())),
              testing::Not(HasSubstr("my-secret")));
}

TEST_F(AuthenticatorTest, ATokenEndsToTheSecond) {
  Open(Entry("past", "p", "expires: '2027-01-15T08:00:00Z'") +
       Entry("present", "q", "expires: '2027-01-15T08:00:01Z'"));
  EXPECT_TRUE(absl::IsUnauthenticated(OfToken("Bearer p").status())) << "from then on";
  EXPECT_TRUE(OfToken("Bearer q").ok());
}

TEST_F(AuthenticatorTest, TheLongestPrefixDecidesAndAnIdGoesBeforeIt) {
  Open(
      "identities { prefix: 'spiffe://d/a/' tenant: 'outer' }"
      "identities { prefix: 'spiffe://d/a/b/' tenant: 'inner' roles: 'report' }"
      "identities { id: 'spiffe://d/a/b/c' roles: 'admin' }",
      /*certificates=*/true);
  EXPECT_EQ(OfId("spiffe://d/a/x")->tenant, "outer");
  EXPECT_EQ(OfId("spiffe://d/a/b/x")->tenant, "inner");
  EXPECT_EQ(OfId("spiffe://d/a/b/x")->roles, RoleSet::None().With(Role::kReport));
  EXPECT_EQ(OfId("spiffe://d/a/b/c")->tenant, "d/a/b/c") << "its own, where none is given";
  EXPECT_EQ(OfId("spiffe://d/a/b/c")->roles, RoleSet::None().With(Role::kAdmin));
  EXPECT_EQ(OfId("spiffe://d/ab")->tenant, "d/ab") << "no part of a name is a prefix";
  EXPECT_EQ(OfId("spiffe://d/ab")->roles, kUsualRoles);
  EXPECT_TRUE(absl::IsUnauthenticated(OfId("").status()));
}

TEST_F(AuthenticatorTest, AnIdThatNobodyCheckedSaysNothing) {
  Open(Entry("ci", "s"), /*certificates=*/false);
  EXPECT_TRUE(absl::IsUnauthenticated(OfId("spiffe://d/a").status()));
}

TEST(KnownCallersTest, WhatIsWrongIsNamedWithFileLineAndField) {
  const std::string sha = " sha256: '" + std::string(64, '0') + "' ";
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"\ntokens {" + sha + "}", "f:2: tokens[0] \"\": name: missing"},
           {"tokens { name: 'a' sha256: '" + std::string(64, 'A') + "' }", "sha256: 64 bytes"},
           {"tokens { name: 'a'" + sha + "roles: 'root' }", "roles: \"root\"; expected plan"},
           {"tokens { name: 'a'" + sha + "expires: '2027-02-30' }", "expires: \"2027-02-30\""},
           {"tokens { name: 'a'" + sha + "}\ntokens { name: 'b'" + sha + "}",
            "f:2: tokens[1] \"b\": sha256: that of \"a\" too"},
           {"identities { tenant: 'a' }", "f:1: identities[0]: neither id nor prefix"},
           {"identities { id: 'a.example' }", "expected spiffe://"},
           {"identities { prefix: 'spiffe://d/a' }", "expected a slash at its end"},
           {"identities { id: 'spiffe://d/a' }\n\nidentities { id: 'spiffe://d/a' }",
            "f:3: identities[1]: an earlier entry"},
           {"tokens { secret: 'x' }", "f:1: column "}}) {
    absl::Status status = ParseKnownCallers(text, "f").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(message));
  }
}

TEST(CallerTest, RolesAreNamedWhereOneIsMissing) {
  Caller caller{.tenant = "t", .identity = "x", .roles = kUsualRoles};
  EXPECT_TRUE(CheckRole(caller, Role::kReport).ok());
  absl::Status status = CheckRole(caller, Role::kAdmin);
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_EQ(Message(status),
            "this call needs the role admin; \"x\" of tenant \"t\" has plan, report; expected a "
            "token or client certificate with the role admin (--tokens), or, on a server without "
            "--tokens, a unix socket of it and its own user or root");
  caller.roles = RoleSet::None();
  EXPECT_EQ(Message(CheckRole(caller, Role::kPlan)),
            "this call needs the role plan; \"x\" of tenant \"t\" has none");
  EXPECT_EQ(RoleOf(RpcMethod::kReportLatency), Role::kReport);
  EXPECT_EQ(RoleOf(RpcMethod::kPlanFusion), Role::kPlan);
  EXPECT_EQ(RoleOf(static_cast<RpcMethod>(200)), Role::kAdmin) << "what nobody thought of";
}

TEST(CallerTest, TimesAreUtcAndReal) {
  EXPECT_EQ(UtcTimeText(ParseUtcTime("2028-02-29").value()), "2028-02-29T00:00:00Z");
  EXPECT_EQ(UtcTimeText(ParseUtcTime("2027-01-31T18:00:59Z").value()), "2027-01-31T18:00:59Z");
  for (const char* bad : {"", "2027-02-29", "2027-01-31T18:00", "tomorrow", "2027-01-31 "}) {
    EXPECT_FALSE(ParseUtcTime(bad).ok()) << bad;
  }
}

TEST(TenantCountsTest, NamesBeyondTheLimitAreCountedTogether) {
  TenantCounts counts(2);
  for (const char* tenant : {"a", "b", "c", "d", "a"}) {
    counts.Add(tenant, std::chrono::seconds(1), /*refused=*/tenant[0] == 'd');
  }
  const auto of = [](int64_t calls, int64_t refused) {
    return AllOf(Field(&TenantUse::calls, calls), Field(&TenantUse::refused, refused),
                 Field(&TenantUse::took, std::chrono::seconds(calls)));
  };
  EXPECT_THAT(counts.counts(),
              ElementsAre(Pair("a", of(2, 0)), Pair("b", of(1, 0)), Pair("other", of(2, 1))));
}

TEST(AuditTest, ACallOfAnOperatorLeavesALineAtAnyLevel) {
  CapturingLogger logger;
  logger.SetMinimum(LogLevel::kOff);
  RpcRecord record;
  record.method = RpcMethod::kCompactStore;
  record.status = absl::PermissionDeniedError("no");
  LogAdminCall(logger, {.tenant = "t", .identity = "anna"}, "ipv4:10.0.0.1:5", record);
  std::vector<std::string> lines = logger.LinesWith("admin");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0],
              testing::AllOf(HasSubstr("\"event\":\"admin\""), HasSubstr("\"identity\":\"anna\""),
                             HasSubstr("\"peer\":\"ipv4:10.0.0.1:5\""),
                             HasSubstr("\"method\":\"CompactStore\""),
                             HasSubstr("\"code\":\"PERMISSION_DENIED\"")));
}

}  // namespace
}  // namespace fusion
