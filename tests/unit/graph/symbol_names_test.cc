#include "core/graph/symbol_names.h"

#include <gtest/gtest.h>

#include "absl/strings/cord.h"

namespace fusion {
namespace {

const std::vector<SymbolDecl> kSymbols = {{.name = "N"}, {.name = "past len"}, {.name = "seq_2"}};

TEST(SymbolNames, DimsAreCalledAsTheModelCallsThem) {
  EXPECT_EQ(WithSymbolNames("input 0 f32[s0,64] has dim 2*s2 + 16", kSymbols),
            "input 0 f32[N,64] has dim 2*seq_2 + 16");
  EXPECT_EQ(WithSymbolNames("[s1]", kSymbols), "[\"past len\"]");
}

TEST(SymbolNames, NamesOfTheModelAndOtherWordsStay) {
  for (const char* text :
       {"node \"s0\" (Add)", "node \"a \\\" s0\"", "s3", "s", "as0", "s0x", "s0_1", "\"s0"}) {
    EXPECT_EQ(WithSymbolNames(text, kSymbols), text);
  }
}

TEST(SymbolNames, AMessageKeepsItsCodeAndPayloads) {
  absl::Status status = absl::UnimplementedError("dim s0");
  status.SetPayload("a", absl::Cord("b"));
  const absl::Status named = WithSymbolNames(status, kSymbols);
  EXPECT_EQ(named.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(named.message(), "dim N");
  EXPECT_TRUE(named.GetPayload("a").has_value());
  EXPECT_TRUE(WithSymbolNames(absl::OkStatus(), kSymbols).ok());
}

}  // namespace
}  // namespace fusion
