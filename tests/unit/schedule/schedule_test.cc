#include "core/schedule/ir/schedule.h"

#include <gtest/gtest.h>

#include "core/graph/evaluate/test_values.h"
#include "core/schedule/lower/interpret.h"

namespace fusion {
namespace {

TEST(Schedule, EveryConceptParsesAndVerifies) {
  constexpr const char* kText = R"(schedule "everything" {
  dims m:8 n:12 k:6
  param p0 input f32[8,6] strides [6, 1]
  param p1 weight f32[6,12] blocked 1 by 4
  param p2 output f32[8,12] strides [12, 1]
  param p3 output f32[8] strides [1]
  workspace w0 f32[2,8] strides [8, 1]
  phase {
    segment m:4 {
      alloc t0 staged f32[m, k] blocked 0 by 4
      copy t0[m, k] = p0[m, k] over [m, k]
      alloc t1 staged f32[m, n]
      init t1 = sum
      loop k:2 stages 2 {
        loop n:4 {
          mma t1[m, n] += t0[m, k] * p1[k, n] rows m columns n over [k]
        }
      }
      each [m, n] {
        v0 = load t1[m, n]
        v1 = within(n, 2, 12)
        v2 = load p0[m, n] where n in [2, 6]
        v3 = select(v1, v0, v2)
        store p2[m, n] = v3
      }
      if m >= 0 and -1*m + 3 >= 0 or first m {
        alloc t2 staged f32[m]
        init t2 = max
        each [m, n] {
          v0 = load t1[m, n]
          reduce max t2[m] = v0
        }
        each [m] {
          v0 = load t2[m]
          store w0[0, m] = v0
        }
      }
    }
  }
  phase {
    segment m:8 {
      alloc t3 staged f32[m]
      init t3 = max
      merge max t3[m] = w0[0, m] over [m]
      each [m] {
        v0 = load t3[m]
        store p3[m] = v0
      }
    }
  }
}
)";
  auto s = ParseSchedule(kText);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(ToString(*s), kText);
  EXPECT_TRUE(Verify(*s).ok()) << Verify(*s);
  TensorType x{DType::kF32, {8, 6}};
  TensorType w{DType::kF32, {6, 12}};
  std::vector<HostTensor> params = {RandomTensor(x, 1), RandomTensor(w, 2),
                                    HostTensor(DType::kF32, {8, 12}), HostTensor(DType::kF32, {8})};
  absl::Status status = Interpret(*s, &params);
  ASSERT_TRUE(status.ok()) << status;
  double sum = 0;
  for (int64_t k = 0; k < 6; ++k)
    sum += params[0].GetDouble(6 + k) * params[1].GetDouble(k * 12 + 3);
  EXPECT_NEAR(params[2].GetDouble(12 + 3), sum, 1e-5);
  double best = -1e30;
  for (int64_t n = 0; n < 12; ++n) {
    double v = 0;
    for (int64_t k = 0; k < 6; ++k)
      v += params[0].GetDouble(6 + k) * params[1].GetDouble(k * 12 + n);
    best = std::max(best, v);
  }
  EXPECT_NEAR(params[3].GetDouble(1), best, 1e-5);
}

TEST(Schedule, PacksLieNextToEachOther) {
  const Buffer b{.name = "p0",
                 .level = Level::kGlobal,
                 .dtype = DType::kBF16,
                 .shape = {5, 7},
                 .layout = {.blocked = 1, .block = 4, .pack = 2}};
  EXPECT_EQ(StoredDims(b), (Dims{2, 3, 4, 2}));
  EXPECT_EQ(StoredElements(b), 48);
  EXPECT_EQ(StoredOffset(b, {0, 0}), 0);
  EXPECT_EQ(StoredOffset(b, {1, 0}), 1);
  EXPECT_EQ(StoredOffset(b, {0, 1}), 2);
  EXPECT_EQ(StoredOffset(b, {2, 0}), 8);
  EXPECT_EQ(StoredOffset(b, {3, 5}), ((1 * 3 + 1) * 4 + 1) * 2 + 1);
}

// Narrow operands of products, as the text has them.
TEST(Schedule, ProductsOfNarrowOperands) {
  auto said = [](std::string_view rows, std::string_view columns, std::string_view layout,
                 std::string_view flushes = "", std::string_view index = "m, k") {
    const std::string text = StrCat(R"(schedule "s" {
  dims m:3 n:5 k:7
  param p0 input )",
                                    rows, index == "m, k" ? "[3,7]" : "[7,3]", " strides [",
                                    index == "m, k" ? 7 : 3, R"(, 1]
  param p1 weight )",
                                    columns, "[7,5] ", layout, R"(
  param p2 output f32[3,5] strides [5, 1]
  phase {
    segment m:3 {
      alloc t0 acc f32[m, n]
      mma t0[m, n] = p0[)",
                                    index, "] * p1[k, n] rows m columns n over [k]", flushes, R"(
      each [m, n] {
        v0 = load t0[m, n]
        store p2[m, n] = v0
      }
    }
  }
}
)");
    auto s = ParseSchedule(text);
    if (!s.ok()) return std::string(Message(s.status()));
    EXPECT_EQ(ToString(*s), text);
    return std::string(Message(Verify(*s)));
  };
  EXPECT_EQ(said("bf16", "bf16", "blocked 1 by 4 pack 2"), "");
  EXPECT_EQ(said("f32", "bf16", "blocked 1 by 4 pack 2"), "");
  EXPECT_EQ(said("f32", "i8", "blocked 1 by 4"), "");
  EXPECT_EQ(said("bf16", "bf16", "blocked 1 by 4"),
            "schedule \"s\": mma over columns of p1, which are not in packs of 2");
  EXPECT_EQ(said("bf16", "f32", "blocked 1 by 4"),
            "schedule \"s\": mma over different element types");
  EXPECT_EQ(said("f32", "f32", "blocked 1 by 4 pack 9"),
            "schedule \"s\": layout of p1 has packs of 9");
  EXPECT_EQ(said("f32", "f32", "blocked 1 by 4 pack 2"),
            "schedule \"s\": mma over columns of p1, which are not in packs of 1");
  // Only pairs can be multiplied as pairs.
  EXPECT_EQ(said("bf16", "bf16", "blocked 1 by 4 pack 2", " flushing"), "");
  EXPECT_EQ(said("f32", "bf16", "blocked 1 by 4 pack 2", " flushing"),
            "schedule \"s\": mma flushes what is no product of bf16 by bf16");
  // What an instruction takes at once lies along the last summed dim.
  EXPECT_EQ(said("f32", "bf16", "blocked 0 by 4 pack 2"),
            "schedule \"s\": mma over columns of p1, whose packs are not of dim k");
  EXPECT_EQ(said("bf16", "bf16", "blocked 1 by 4 pack 2", "", "k, m"),
            "schedule \"s\": mma over rows of p0, which do not lie along dim k");
  EXPECT_EQ(said("f32", "bf16", "blocked 1 by 4 pack 2", "", "k, m"), "");
  EXPECT_EQ(said("f32", "f32", "strides [5, 1]"), "");
  EXPECT_EQ(said("f32", "f32", "strides [1, 7]"),
            "schedule \"s\": mma over columns of p1, which do not lie along dim n");
}

constexpr const char* kPlaced = R"(schedule "scatter" {
  dims a:2 b:3 c:4 j:5
  param p0 input i64[5] strides [1]
  param p1 input f32[5,4] strides [4, 1]
  param p2 output f32[2,3,4] strides [12, 4, 1]
  phase {
    segment {
      alloc t0 staged f32[a, b, c]
      init t0 = sum
      each [a, b, j, c] at 3*a + b = v0 {
        v0 = load p0[j]
        v1 = load p1[j, c]
        reduce sum t0[a, b, c] = v1
      }
      each [a, b, c] {
        v0 = load t0[a, b, c]
        store p2[a, b, c] = v0
      }
    }
  }
}
)";

// Five rows, each added where its index says; two indices are no place.
TEST(Schedule, PlacesThatAreRead) {
  auto s = ParseSchedule(kPlaced);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(ToString(*s), kPlaced);
  ASSERT_TRUE(Verify(*s).ok()) << Verify(*s);
  HostTensor rows(DType::kF32, {5, 4});
  for (int64_t i = 0; i < rows.elements(); ++i) rows.SetDouble(i, static_cast<double>(1 + i / 4));
  std::vector<HostTensor> params = {
      HostTensor::FromValues<int64_t>(DType::kI64, {5}, {4, 0, 6, 4, -1}), rows,
      HostTensor(DType::kF32, {2, 3, 4})};
  ASSERT_TRUE(Interpret(*s, &params).ok());
  for (int64_t i = 0; i < params[2].elements(); ++i) {
    const double expected = i / 4 == 4 ? 1 + 4 : i / 4 == 0 ? 2 : 0;
    EXPECT_EQ(params[2].GetDouble(i), expected) << i;
  }
}

TEST(Schedule, APlaceIsOneThatEmittersCanFind) {
  auto broken = [](std::string_view from, std::string_view to) {
    std::string text = kPlaced;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos);
    text.replace(at, from.size(), to);
    auto s = ParseSchedule(text);
    return s.ok() ? std::string(Message(Verify(*s))) : std::string(Message(s.status()));
  };
  constexpr const char* kDigits =
      "schedule \"scatter\": a place is a mixed-radix number of dims before the last one";
  EXPECT_EQ(broken("3*a + b = v0", "4*a + b = v0"), kDigits);
  EXPECT_EQ(broken("3*a + b = v0", "3*a = v0"), kDigits);
  EXPECT_EQ(broken("3*a + b = v0", "c = v0"), kDigits);
  EXPECT_EQ(broken("= v0 {", "= v1 {"), "schedule \"scatter\": place v1 is no i64 of the steps");
  EXPECT_EQ(broken("= v0 {", "= v7 {"), "schedule \"scatter\": a reduction before its place v7");
  EXPECT_EQ(broken("v1 = load p1[j, c]", "v1 = load p1[j, c]\n        store p2[0, 0, c] = v1"),
            "schedule \"scatter\": a store where points are found by place");
  EXPECT_EQ(broken("load p0[j]", "load p0[a]"),
            "schedule \"scatter\": a place that depends on the dims it is along");
}

TEST(Schedule, VerifyFindsBrokenSchedules) {
  auto broken = [](std::string from, std::string to) {
    std::string text = R"(schedule "s" {
  dims m:8
  param p0 input f32[8] strides [1]
  param p1 output f32[8] strides [1]
  phase {
    segment m:4 {
      each [m] {
        v0 = load p0[m]
        store p1[m] = v0
      }
    }
  }
}
)";
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos);
    text.replace(at, from.size(), to);
    auto s = ParseSchedule(text);
    return s.ok() ? std::string(Message(Verify(*s))) : std::string(Message(s.status()));
  };
  EXPECT_EQ(broken("load p0[m]", "load p0[m + 1]"),
            "schedule \"s\": p0 is accessed at 1..8, extent is 8");
  EXPECT_EQ(broken("store p1[m]", "store p0[m]"), "schedule \"s\": p0 is written but is no output");
  EXPECT_EQ(broken("store p1[m] = v0", "store p1[m] = v1"),
            "schedule \"s\": v1 is used before it is defined");
  EXPECT_EQ(broken("segment m:4", "segment m:0"), "schedule \"s\": grid tile 0 of dim m");
  EXPECT_NE(broken("load p0", "load p9").find("expected the name of a buffer"), std::string::npos);
}

}  // namespace
}  // namespace fusion
