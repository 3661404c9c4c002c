#include "core/schedule/lower/assemble.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

constexpr DimId kRows = 0;
constexpr DimId kColumns = 1;

// A block of 8 rows of 100 columns, and nests over it that do nothing.
class AssembleTest : public testing::Test {
 protected:
  AssembleTest() : locals_(/*ops=*/0, &schedule_) {
    schedule_.label = "test";
    schedule_.dims = {{"m", 8}, {"n", 100}};
  }

  static NestCode Nest(std::vector<DimId> reduced = {}) {
    NestCode nest{.dims = {kRows, kColumns}, .reduced = std::move(reduced), .vector = kColumns};
    nest.code.push_back(Stmt{EachStmt{.dims = nest.dims, .ops = {}}});
    return nest;
  }

  static NestCode Product() {
    NestCode nest = Nest();
    nest.product = true;
    return nest;
  }

  // A staged buffer over all rows that nests first..last of section 0 use.
  BufferId Staged(int first, int last) {
    BufferId b = locals_.Add({kRows}, DType::kF32, Level::kStaged);
    for (int nest = first; nest <= last; ++nest) {
      locals_.Enter(0, nest);
      locals_.Use(b);
    }
    return b;
  }

  // `columns`: of the block.
  std::string Assembled(std::vector<NestCode> nests, bool together = false, int64_t columns = 100) {
    Segment segment;
    segment.body =
        AssembleSection(0, std::move(nests), locals_, {8, columns}, /*lanes=*/8, together);
    Phase phase;
    phase.segments.push_back(std::move(segment));
    schedule_.phases.clear();
    schedule_.phases.push_back(std::move(phase));
    std::string text = ToString(schedule_);
    size_t begin = text.find("    segment");
    begin = text.find('\n', begin) + 1;
    return text.substr(begin, text.rfind("    }\n  }\n}") - begin);
  }

  Schedule schedule_;
  LocalBuffers locals_;
};

TEST_F(AssembleTest, ANestAloneIsNotWrapped) {
  Staged(0, 0);
  EXPECT_EQ(Assembled({Nest()}), R"(      alloc t0 staged f32[m]
      each [m, n] {
      }
)");
}

TEST_F(AssembleTest, NestsShareALoopOverTheRowsTheyAllHave) {
  Staged(0, 1);
  std::vector<NestCode> nests;
  nests.push_back(Nest({kColumns}));
  nests.push_back(Nest());
  EXPECT_EQ(Assembled(std::move(nests)), R"(      loop m:1 {
        alloc t0 staged f32[m]
        each [m, n] {
        }
        each [m, n] {
        }
      }
)");
}

TEST_F(AssembleTest, AlongVectorsALoopTakesOneVector) {
  std::vector<NestCode> nests;
  nests.push_back(Nest());
  nests.push_back(Nest());
  EXPECT_EQ(Assembled(std::move(nests)), R"(      loop m:1 {
        loop n:8 {
          each [m, n] {
          }
          each [m, n] {
          }
        }
      }
)");
}

// Vectors of one nest are enough: what the others do along them is done in whole vectors too.
TEST_F(AssembleTest, VectorsOfAnyNestCount) {
  std::vector<NestCode> nests;
  nests.push_back(Nest());
  nests.push_back(Nest());
  nests.back().vector = -1;
  EXPECT_EQ(Assembled(std::move(nests)), R"(      loop m:1 {
        loop n:8 {
          each [m, n] {
          }
          each [m, n] {
          }
        }
      }
)");
}

// As many as make 1024 elements, and half a vector at most.
TEST_F(AssembleTest, ShortRowsAreWorkedOnTogether) {
  const auto folds = [] {
    std::vector<NestCode> nests;
    nests.push_back(Nest({kColumns}));
    nests.push_back(Nest());
    return nests;
  };
  for (auto [columns, rows] : {std::pair{400, 2}, {100, 4}, {3000, 1}}) {
    const std::string text = Assembled(folds(), /*together=*/true, columns);
    EXPECT_EQ(text.substr(0, text.find('{')), StrCat("      loop m:", rows, " ")) << columns;
  }
}

// What is known of a row once is computed in vectors of rows; they are as many as make 8192
// elements of what the rows have.
TEST_F(AssembleTest, LongRowsAreFewerThanAVector) {
  for (auto [columns, rows] : {std::pair{500, 8}, {1000, 4}, {2000, 2}, {3000, 1}, {9000, 1}}) {
    const BufferId rows_of = locals_.Add({kRows, kColumns}, DType::kF32, Level::kStaged);
    const BufferId results = locals_.Add({kRows, kColumns}, DType::kF32, Level::kStaged);
    auto walks = [](BufferId b, ElementOp::Kind kind) {
      ElementOp op;
      op.kind = kind;
      op.args = {0};
      op.access = {Access{b, {IndexExpr::Axis(kRows), IndexExpr::Axis(kColumns)}, {}}};
      return Stmt{EachStmt{.dims = {kRows, kColumns}, .ops = {op}}};
    };
    std::vector<NestCode> nests;
    nests.push_back(Nest({kColumns}));
    nests.back().code = {walks(rows_of, ElementOp::kLoad)};
    nests.push_back({.dims = {kRows}, .vector = kRows});
    nests.push_back(Nest());
    nests.back().code = {walks(rows_of, ElementOp::kLoad), walks(results, ElementOp::kStore)};
    const std::string text = Assembled(std::move(nests), /*together=*/true, columns);
    const std::string begin =
        rows == 8 ? "      each [m, n] {" : StrCat("      loop m:", rows, " {");
    EXPECT_EQ(text.substr(0, text.find('\n')), begin) << columns;
  }
}

TEST_F(AssembleTest, WhatAProductNeedsIsAllocatedOutsideTheLoops) {
  Staged(0, 1);
  Staged(1, 2);
  std::vector<NestCode> nests;
  nests.push_back(Nest({kColumns}));
  nests.push_back(Nest({kColumns}));
  nests.push_back(Product());
  EXPECT_EQ(Assembled(std::move(nests)), R"(      alloc t1 staged f32[m]
      loop m:1 {
        alloc t0 staged f32[m]
        each [m, n] {
        }
        each [m, n] {
        }
      }
      each [m, n] {
      }
)");
}

TEST_F(AssembleTest, BuffersOfSeveralSectionsAreLeftToTheBlock) {
  BufferId b = Staged(0, 0);
  locals_.Enter(1, 0);
  locals_.UseAsFold(b, "max");
  EXPECT_EQ(Assembled({Nest()}), "      each [m, n] {\n      }\n");
  Block shared = AllocateShared(locals_);
  ASSERT_EQ(shared.size(), 2u);
  EXPECT_EQ(std::get<AllocStmt>(shared[0].node).buffer, b);
  EXPECT_EQ(std::get<InitStmt>(shared[1].node).monoid, "max");
}

}  // namespace
}  // namespace fusion
