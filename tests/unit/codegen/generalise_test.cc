#include "core/codegen/generalise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/codegen/backend.h"

namespace fusion {
namespace {

using testing::HasSubstr;

const std::vector<std::vector<int64_t>> kPoints = {{11}, {13}, {17}, {19}, {23}, {29}, {31}};

std::vector<std::string> Texts(const std::function<std::string(int64_t)>& text) {
  std::vector<std::string> out;
  for (const auto& p : kPoints) out.push_back(text(p[0]));
  return out;
}

TEST(GeneralText, IsTheTextOfEveryMember) {
  auto text = [](int64_t s) {
    return StrCat("loop d0:", s, " {\n  at ", s * 64 - 1, " of d12\n}");
  };
  GeneralText general = GeneralText::Of(kPoints, Texts(text)).value();
  EXPECT_FALSE(general.IsStatic());
  for (int64_t s : {1, 7, 100}) EXPECT_EQ(general.At({s}).value(), text(s));
}

TEST(GeneralText, EqualTextsAreStatic) {
  GeneralText general = GeneralText::Of(kPoints, Texts([](int64_t) { return "a 1\nb"; })).value();
  EXPECT_TRUE(general.IsStatic());
  EXPECT_EQ(general.At({5}).value(), "a 1\nb");
}

TEST(GeneralText, NumbersInNamesAreNoNumbers) {
  absl::Status status =
      GeneralText::Of(kPoints, Texts([](int64_t s) { return StrCat("d", s); })).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("differ in more than numbers: \"d11\""));
}

TEST(GeneralText, SaysWhichNumbersAreNoPolynomial) {
  absl::Status status =
      GeneralText::Of(kPoints, Texts([](int64_t s) { return StrCat("x = ", s % 7); })).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("4, 6, 3, 5, 2, 1, 3 in \"x = 4\""));
}

TEST(GeneralText, LiteralsOfSizesAndOfTheirReciprocals) {
  auto text = [](int64_t s) {
    return StrCat("f32(", HexDouble(static_cast<double>(s)), ") f64(",
                  HexDouble(1 / static_cast<double>(s)), ")");
  };
  GeneralText general = GeneralText::Of(kPoints, Texts(text)).value();
  EXPECT_EQ(general.At({48}).value(), text(48));
}

TEST(GeneraliseSource, DeclaresInEachFunctionWhatItUses) {
  GeneralSource source =
      GeneraliseSource(kPoints, Texts([](int64_t s) {
                         return StrCat("void f() {\n  ", kSizesLine, "\n  g(", s, ", 64, ", s * 64,
                                       ");\n}\nvoid h() {\n  ", kSizesLine, "\n  g(", s * 64,
                                       ");\n  // needs ", 3, " <= ", s, "\n}\nd = {", kSizesCount,
                                       "};");
                       }))
          .value();
  ASSERT_EQ(source.sizes.size(), 2);
  const std::string big = source.sizes[0].ToString() == "s0*64" ? "size0" : "size1";
  const std::string small = big == "size0" ? "size1" : "size0";
  EXPECT_THAT(source.text, HasSubstr(StrCat("g(", small, ", 64, ", big, ");")));
  EXPECT_THAT(source.text, HasSubstr("d = {2};"));
  const size_t second = source.text.find("void h()");
  EXPECT_EQ(source.text.find(StrCat("const i64 ", small), second), std::string::npos)
      << "what a function does not use it does not declare";
  EXPECT_NE(source.text.find(StrCat("const i64 ", big, " = dims["), second), std::string::npos);
  ASSERT_EQ(source.needs.size(), 1);
  EXPECT_EQ(source.needs[0].first.ToString(), "3");
  EXPECT_EQ(source.needs[0].second.ToString(), "s0");
  EXPECT_EQ(source.text.find("needs"), std::string::npos);
}

TEST(GeneraliseSource, FloatsBecomeSizesOfTheirType) {
  GeneralSource source =
      GeneraliseSource(kPoints,
                       Texts([](int64_t s) { return StrCat("v = 0x1p+0f / ", s, ".0f;"); }))
          .value();
  EXPECT_THAT(source.text, HasSubstr("/ ((float)size0);"));
}

}  // namespace
}  // namespace fusion
