#include "core/base/hash.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace fusion
