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
      EXPECT_EQ(*back, tensor);
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

TEST(Npy, SaysWhatIsWrong) {
  const std::string four(4, '\0');
  EXPECT_THAT(ErrorOf("PK\3\4 and more"), HasSubstr("no .npy file"));
  EXPECT_THAT(ErrorOf("\x93NUMPY"), HasSubstr("no .npy file"));
  EXPECT_THAT(ErrorOf(File("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", four)),
              HasSubstr("descr \">f4\" is not supported; supported: |b1 |u1"));
  EXPECT_THAT(ErrorOf(File("{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }", four)),
              HasSubstr("header: column-major order"));
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
  EXPECT_THAT(ErrorOf(File("{'shape': (1", four)), HasSubstr("header: line 2, column 1: expected ','"));
  std::string cut = File("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", four);
  cut.resize(40);
  EXPECT_THAT(ErrorOf(cut), HasSubstr("header of 118 bytes, the file has 40"));
  cut[6] = 9;
  EXPECT_THAT(ErrorOf(cut), HasSubstr("version 9"));
}

}  // namespace
}  // namespace fusion
