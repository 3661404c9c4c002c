#include "core/base/hash.h"

#include <gtest/gtest.h>

#include "core/base/key_field.h"

namespace fusion {
namespace {

TEST(Hash, Sha256MatchesTheStandardVector) {
  EXPECT_EQ(Sha256("abc").ToHex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Hash, HexRoundTripsAndRefusesOthers) {
  Digest digest = Sha256("x");
  Digest back;
  ASSERT_TRUE(Digest::FromHex(digest.ToHex(), &back));
  EXPECT_EQ(back, digest);
  EXPECT_FALSE(Digest::FromHex("abc", &back));
  EXPECT_FALSE(Digest::FromHex(std::string(64, 'G'), &back));
}

TEST(Hash, FieldsAreFramed) {
  FieldHasher a;
  a.Add("f", "ab").Add("f", "c");
  FieldHasher b;
  b.Add("f", "a").Add("f", "bc");
  EXPECT_NE(a.Finish(), b.Finish());
}

TEST(FieldHasher, FieldsGiveBackWhatWasAdded) {
  FieldHasher h;
  h.Add("graph", "a:1=x\n").Add("threads", int64_t{2}).Add("empty", "");
  using Fields = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(FieldHasher::Fields(h.bytes()),
            (Fields{{"graph", "a:1=x\n"}, {"threads", "2"}, {"empty", ""}}));
  EXPECT_EQ(FieldHasher::Fields(""), Fields());
  for (const char* bad :
       {"x", "a:", "a:1", "a:1=", "a:2=x\n", "a:1=xy", "a:-1=x\n", "a:99999999999999999999=x\n"}) {
    EXPECT_EQ(FieldHasher::Fields(bad), std::nullopt) << bad;
  }
}

TEST(KeyField, ATenantIsAFieldAndNoTextInAnother) {
  FieldHasher key;
  key.Add("graph", "tenant:1=b\n").Add("tenant", "a").Add("more", "x");
  EXPECT_EQ(TenantOfKey(key.bytes()), "a");
  FieldHasher shared;
  shared.Add("graph", "tenant:1=b\n");
  EXPECT_EQ(TenantOfKey(shared.bytes()), "") << "everybody's";
  EXPECT_EQ(TenantOfKey("no key"), "");
  EXPECT_EQ(TenantOfKey("tenant:99=a\n"), "") << "a key that was cut";
}

}  // namespace
}  // namespace fusion
