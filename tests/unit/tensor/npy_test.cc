#include "core/tensor/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion {
namespace {

using ::testing::HasSubstr;

// As numpy.save writes it.
std::string File(std::string header, std::string_view elements, char version = 1) {
  const size_t front = version == 1 ? 10 : 12;
  header.append(63 - (front + header.size()) % 64, ' ');
  header += '\n';
  std::string out = "\x93NUMPY";
  out += {version, '\0', static_cast<char>(header.size()), '\0'};
  if (version > 1) out += {'\0', '\0'};
  return out + header + std::string(elements);
}

std::string ErrorOf(const std::string& bytes) {
  auto tensor = ParseNpy(bytes);
  return tensor.ok() ? "none" : std::string(Message(tensor.status()));
}

TEST(Npy, EveryTypeComesBack) {
  for (int i = 0; i < kDTypeCount; ++i) {
    for (const Dims& dims : {Dims{}, Dims{3}, Dims{2, 0}, Dims{2, 3, 1}}) {
      HostTensor tensor(static_cast<DType>(i), dims);
      for (int64_t e = 0; e < tensor.elements(); ++e)
        tensor.SetDouble(e, static_cast<double>(e % 2));
      auto back = ParseNpy(ToNpy(tensor));
      ASSERT_TRUE(back.ok()) << back.status();
      const DType type = static_cast<DType>(i);
      if (IsNarrowFloat(type) || IsNarrowInteger(type)) {  // NumPy has none of them: bytes
        const bool is_signed = type == DType::kI4 || type == DType::kI2;
        EXPECT_EQ(back->dtype(), is_signed ? DType::kI8 : DType::kU8);
        EXPECT_EQ(back->byte_view(), tensor.byte_view());
      } else {
        EXPECT_EQ(*back, tensor);
      }
      EXPECT_EQ(ToNpy(tensor).find('\n') % 64, 63U);
    }
  }
}

TEST(Npy, ReadsWhatNumpyWrites) {
  const std::string elements("\1\0\2\0\3\0\4\0\5\0\6\0", 12);
  for (char version : {'\1', '\2', '\3'}) {
    auto t = ParseNpy(
        File("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }", elements, version));
    ASSERT_TRUE(t.ok()) << t.status();
    EXPECT_EQ(t->dtype(), DType::kI16);
    EXPECT_EQ(t->dims(), (Dims{2, 3}));
    EXPECT_EQ(t->GetInt(5), 6);
  }
  EXPECT_EQ(ParseNpy(File("{\"shape\": (), \"fortran_order\": False, \"descr\": \"<u1\"}", "\7"))
                ->GetInt(0),
            7);
}

TEST(Npy, ReadsColumnMajorArrays) {
  // numpy.asfortranarray(numpy.arange(24).reshape(2, 3, 4))
  std::string elements;
  for (int c = 0; c < 4; ++c) {
    for (int b = 0; b < 3; ++b) {
      for (int a = 0; a < 2; ++a) elements += static_cast<char>(a * 12 + b * 4 + c);
    }
  }
  auto t =
      ParseNpy(File("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4), }", elements));
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_EQ(t->dims(), (Dims{2, 3, 4}));
  for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(t->GetInt(i), i);
  for (const char* shape : {"()", "(1,)", "(1, 1)"}) {
    auto one = ParseNpy(
        File(StrCat("{'descr': '|u1', 'fortran_order': True, 'shape': ", shape, ", }"), "\5"));
    ASSERT_TRUE(one.ok()) << one.status();
    EXPECT_EQ(one->GetInt(0), 5);
  }
  EXPECT_EQ(
      ParseNpy(File("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 0), }", ""))->elements(),
      0);
}

TEST(Npy, ReadsBigEndianArrays) {
  auto i16 = ParseNpy(File("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }",
                           std::string("\1\2\xff\xfe", 4)));
  ASSERT_TRUE(i16.ok()) << i16.status();
  EXPECT_EQ(i16->GetInt(0), 258);
  EXPECT_EQ(i16->GetInt(1), -2);
  auto f64 = ParseNpy(File("{'descr': '>f8', 'fortran_order': True, 'shape': (1L,), }",
                           std::string("\xc0\x09\x21\xfb\x54\x44\x2d\x18", 8)));
  ASSERT_TRUE(f64.ok()) << f64.status();
  EXPECT_DOUBLE_EQ(f64->GetDouble(0), -3.141592653589793);
  // Both at once: [[1, 2], [3, 4]].
  auto both = ParseNpy(File("{'descr': '>u2', 'fortran_order': True, 'shape': (2, 2), }",
                            std::string("\0\1\0\3\0\2\0\4", 8)));
  ASSERT_TRUE(both.ok()) << both.status();
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(both->GetInt(i), i + 1);
}

TEST(Npy, TheHeaderIsReadFirst) {
  const std::string head =
      File("{'descr': '<f4', 'fortran_order': False, 'shape': (1073741824, 8), }", "");
  int64_t read = 0;
  ByteSource source = BytesOf(head);
  source.bytes.reset();
  source.read = [&read, inner = source.read](char* to, size_t most) {
    auto count = inner(to, most);
    read += static_cast<int64_t>(count.value());
    return count;
  };
  Dims asked;
  auto refused = ReadNpy(source, [&](DType dtype, const Dims& dims) {
    EXPECT_EQ(dtype, DType::kF32);
    asked = dims;
    return InvalidArgument("too many for me");
  });
  EXPECT_EQ(std::string(Message(refused.status())), "too many for me");
  EXPECT_EQ(asked, (Dims{1073741824, 8}));
  EXPECT_EQ(read, static_cast<int64_t>(head.size()));
  // Nobody takes memory for what a file says it has and has not.
  EXPECT_THAT(ErrorOf(head), HasSubstr("0 bytes of data, expected 34359738368"));
  EXPECT_THAT(ErrorOf(File("{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }", "ab")),
              HasSubstr("2 bytes of data, expected 1"));
  const std::string long_one =
      File("{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }", "ab");
  ByteSource unknown = BytesOf(long_one);
  unknown.bytes.reset();
  EXPECT_THAT(std::string(Message(ReadNpy(unknown).status())),
              HasSubstr("more than 1 bytes of data, expected 1"));
  std::string far = long_one;
  far[6] = 2;
  far.replace(8, 4, "\xff\xff\xff\x7f");
  EXPECT_THAT(ErrorOf(far), HasSubstr("header of 2147483647 bytes; expected at most 65536"));
}

TEST(Npy, SaysWhatIsWrong) {
  const std::string four(4, '\0');
  EXPECT_THAT(ErrorOf("PK\3\4 and more"), HasSubstr("no .npy file"));
  EXPECT_THAT(ErrorOf("\x93NUMPY"), HasSubstr("no .npy file"));
  EXPECT_THAT(ErrorOf(File("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", four)),
              HasSubstr("descr \"<c8\" is not supported; supported: |b1 |u1"));
  EXPECT_THAT(ErrorOf(File("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }", four)),
              HasSubstr("header: line 1, column 40: expected True or False"));
  EXPECT_THAT(
      ErrorOf(File("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", four)),
      HasSubstr("header: a structured array"));
  EXPECT_THAT(ErrorOf(File("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", four)),
              HasSubstr("4"));
  EXPECT_THAT(ErrorOf(File("{'descr': '<f4', 'fortran_order': False, }", four)),
              HasSubstr("no descr or no shape"));
  EXPECT_THAT(ErrorOf(File("{'descr': '<f4', 'order': 1}", four)),
              HasSubstr("header: unknown key \"order\""));
  EXPECT_THAT(ErrorOf(File("{'shape': (-1,), 'descr': '<f4', 'fortran_order': False}", four)),
              HasSubstr("-1"));
  EXPECT_THAT(ErrorOf(File("{'shape': (1", four)),
              HasSubstr("header: line 2, column 1: expected ','"));
  std::string cut = File("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", four);
  cut.resize(40);
  EXPECT_THAT(ErrorOf(cut), HasSubstr("header of 118 bytes, the file has 40"));
  cut[6] = 9;
  EXPECT_THAT(ErrorOf(cut), HasSubstr("version 9"));
}

}  // namespace
}  // namespace fusion
