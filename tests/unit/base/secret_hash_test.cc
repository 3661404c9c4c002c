#include "core/base/files/secret_hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>

namespace fusion {
namespace {

std::string Bytes(size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes += static_cast<char>(i * 131 + i / 7);
  return bytes;
}

TEST(SecretHash, IsOfTheBytesHoweverTheyAreCut) {
  const std::string bytes = Bytes(1000);
  const Digest whole = SecretHash({bytes});
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    const std::string_view view = bytes;
    EXPECT_EQ(SecretHash({view.substr(0, cut), view.substr(cut)}), whole) << cut;
  }
  EXPECT_EQ(SecretHash({"", bytes, "", ""}), whole);
}

TEST(SecretHash, DiffersWithEachBitAndWithTheLength) {
  std::string bytes = Bytes(130);
  std::set<Digest> seen = {SecretHash({bytes})};
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    EXPECT_TRUE(seen.insert(SecretHash({bytes})).second) << "bit " << bit;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
  }
  // Zeros at the end are bytes like any other.
  std::string zeros;
  for (int i = 0; i < 100; ++i, zeros += '\0') {
    EXPECT_TRUE(seen.insert(SecretHash({zeros})).second) << i << " zeros";
  }
}

TEST(SecretHash, IsTheSameOnEveryThread) {
  const std::string bytes = Bytes(5000);
  const Digest here = SecretHash({bytes});
  std::vector<Digest> there(4);
  std::vector<std::thread> threads;
  for (Digest& digest : there) threads.emplace_back([&] { digest = SecretHash({bytes}); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(there, std::vector<Digest>(4, here));
}

// Else everybody could find two requests of one name.
TEST(SecretHash, IsNoHashThatOthersKnow) {
  EXPECT_NE(SecretHash({"bytes"}), Sha256("bytes"));
  const std::string digest(BytesOf(SecretHash({std::string(64, '\0')})));
  EXPECT_NE(digest.substr(0, 16), digest.substr(16)) << "two keys";
}

}  // namespace
}  // namespace fusion
