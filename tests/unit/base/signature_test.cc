#include "core/base/files/signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text/text.h"
#include "tests/support/scratch_dir.h"

namespace fusion {
namespace {

using testing::HasSubstr;

// RFC 8410, 10.3: a private key; its public half as openssl derives it.
constexpr const char* kPrivate =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
    "-----END PRIVATE KEY-----\n";
constexpr const char* kPublic =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n"
    "-----END PUBLIC KEY-----\n";

std::string Hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (unsigned char c : bytes) {
    out += kDigits[c >> 4];
    out += kDigits[c & 15];
  }
  return out;
}

TEST(SignatureTest, ThePublicKeyVerifiesWhatThePrivateOneSigned) {
  SigningKey key = SigningKey::Parse("k", kPrivate).value();
  SigningKey verifier = SigningKey::Parse("k", kPublic).value();
  EXPECT_TRUE(key.can_sign());
  EXPECT_FALSE(verifier.can_sign());
  Signature signature = key.Sign("bytes");
  EXPECT_EQ(signature.value.size(), 64u);
  EXPECT_EQ(signature.key_id, "k");
  EXPECT_EQ(key.Sign("bytes").value, signature.value) << "Ed25519 is deterministic";
  EXPECT_TRUE(verifier.Verify("bytes", signature).ok());
  EXPECT_TRUE(key.Verify("bytes", signature).ok());
}

TEST(SignatureTest, HmacIsThatOfOpenssl) {
  // openssl dgst -sha256 -mac HMAC -macopt hexkey:00...
  SigningKey key = SigningKey::Parse("h", std::string(64, '0')).value();
  EXPECT_EQ(Hex(key.Sign("what do ya want for nothing?").value),
            "76d9e7194e7dbc3aa00bbe8ffb9f6fcb5a932170f971f948bb2ab61607d2b9d6");
}

TEST(SignatureTest, EveryFlippedBitIsSeen) {
  for (const std::string& text : {std::string(kPrivate), std::string(64, 'a')}) {
    SigningKey key = SigningKey::Parse("k", text).value();
    const Signature right = key.Sign("bytes");
    for (size_t i = 0; i < right.value.size(); ++i) {
      Signature wrong = right;
      wrong.value[i] = static_cast<char>(wrong.value[i] ^ 1);
      EXPECT_TRUE(absl::IsDataLoss(key.Verify("bytes", wrong))) << i;
    }
    EXPECT_TRUE(absl::IsDataLoss(key.Verify("byteS", right)));
    Signature cut = right;
    cut.value.pop_back();
    EXPECT_TRUE(absl::IsDataLoss(key.Verify("bytes", cut)));
    cut.value.clear();
    EXPECT_TRUE(absl::IsDataLoss(key.Verify("bytes", cut)));
    Signature other = right;
    other.algorithm = right.algorithm == SignatureAlgorithm::kEd25519
                          ? SignatureAlgorithm::kHmacSha256
                          : SignatureAlgorithm::kEd25519;
    EXPECT_TRUE(absl::IsDataLoss(key.Verify("bytes", other)));
  }
}

TEST(SignatureTest, TheIdSaysWhichKeyIsMeant) {
  std::vector<SigningKey> keys = {SigningKey::Parse("old", std::string(64, 'a')).value(),
                                  SigningKey::Parse("new", kPublic).value()};
  Signature signature = SigningKey::Parse("new", kPrivate)->Sign("b");
  EXPECT_TRUE(VerifyWithAny(keys, "plan x", "b", signature).ok());
  signature.key_id = "old";
  EXPECT_TRUE(absl::IsDataLoss(VerifyWithAny(keys, "plan x", "b", signature)));
  signature.key_id = "third";
  absl::Status status = VerifyWithAny(keys, "plan x", "b", signature);
  EXPECT_EQ(Message(status),
            "plan x: signed with the key \"third\", which is none of those that are trusted: "
            "\"old\", \"new\"");
}

TEST(SignatureTest, WhatIsNoKeyIsNamed) {
  for (const auto& [text, message] : std::vector<std::pair<std::string, const char*>>{
           {"", "a shared key of 0 bytes"},
           {"abcd", "a shared key of 2 bytes; expected 32..128"},
           {std::string(63, 'a'), "no key"},
           {"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "no key"}}) {
    absl::Status status = SigningKey::Parse("k", text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(message));
  }
}

TEST(SignatureTest, AKeyIsCalledAsItsFile) {
  ScratchDir dir;
  EXPECT_EQ(SigningKey::Read(dir.Write("2027-01.pem", kPrivate))->id(), "2027-01");
  EXPECT_FALSE(SigningKey::Read(dir.Write("a b.pem", kPrivate)).ok());
  std::string one = dir.Write("k.pem", kPrivate), two = dir.Write("k.pub", kPublic);
  EXPECT_THAT(std::string(Message(ReadKeys({one, two}).status())),
              HasSubstr("an earlier key is called \"k\" too"));
}

}  // namespace
}  // namespace fusion
