#include "server/access/operator_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scratch_dir.h"

namespace fusion {
namespace {

using testing::HasSubstr;

const auto kNoon = std::chrono::system_clock::from_time_t(1800000000);  // 2027-01-15

class OperatorCheckTest : public testing::Test {
 protected:
  void Open(const std::string& tokens_file) {
    authenticator_ = Authenticator::Open({.tokens_file = tokens_file}, Logger::Silent()).value();
  }
  void OpenTokens() {
    std::string text;
    for (const auto& [name, secret, more] :
         {std::tuple{"ops", "s3", "roles: 'admin'"},
          std::tuple{"ci", "other", "roles: 'plan' roles: 'report'"},
          std::tuple{"old", "past", "roles: 'admin' expires: '2020-01-01'"}}) {
      text += StrCat("tokens { name: '", name, "' sha256: '", Sha256(secret).ToHex(), "' ", more,
                     "}\n");
    }
    Open(dir_.Write("tokens", text));
  }
  absl::Status Check(std::string_view authorization) const {
    return CheckOperator(*authenticator_, authorization, kNoon);
  }
  ScratchDir dir_;
  std::unique_ptr<Authenticator> authenticator_;
};

TEST_F(OperatorCheckTest, WithoutTokensEverybodyMay) {
  Open("");
  EXPECT_TRUE(Check("").ok());
  EXPECT_TRUE(Check("Basic !!!").ok());
}

TEST_F(OperatorCheckTest, ATokenOfAnAdministratorMay) {
  OpenTokens();
  EXPECT_TRUE(Check("Bearer s3").ok());
  EXPECT_TRUE(Check("Basic YWRtaW46czM=").ok()) << "admin:s3";
  EXPECT_TRUE(Check("bASIC OnMz").ok()) << ":s3";
  EXPECT_TRUE(absl::IsPermissionDenied(Check("Bearer other")));
  EXPECT_TRUE(absl::IsPermissionDenied(Check("Basic YTpvdGhlcg=="))) << "a:other";
  EXPECT_THAT(std::string(Check("Bearer other").message()), HasSubstr("the role admin"));
}

TEST_F(OperatorCheckTest, OthersAreToldWhatIsExpected) {
  OpenTokens();
  EXPECT_THAT(std::string(Check("").message()), HasSubstr("Authorization: Bearer TOKEN"));
  for (const std::string& bad :
       {std::string("Bearer s4"), std::string("Bearer past"), std::string("Bearer "),
        std::string("Digest s3"), std::string("Basic "), std::string("Basic s3"),
        std::string("Basic ===="), std::string("Basic \x01\x02\x03\x04"),
        std::string("Basic czM="),  // s3 without a name
        StrCat("Basic ", std::string(100000, 'A')), std::string("Basic YTpz"), std::string("s3")}) {
    const absl::Status told = Check(bad);
    EXPECT_TRUE(absl::IsUnauthenticated(told)) << bad.substr(0, 20) << ": " << told;
  }
}

}  // namespace
}  // namespace fusion
