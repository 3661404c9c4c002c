#include "server/transport/gzip.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

namespace fusion {
namespace {

std::string Gunzip(const std::string& packed, size_t room) {
  std::string out(room, '\0');
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

TEST(GzipTest, PacksWhatGunzipReads) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "series{label=\"" + std::to_string(i * i) + "\"} 1\n";
  const std::string packed = Gzip(text);
  EXPECT_LT(packed.size(), text.size() / 2);
  EXPECT_EQ(Gunzip(packed, text.size() + 1), text);
  EXPECT_EQ(Gunzip(Gzip(""), 1), "");
}

TEST(GzipTest, AClientSaysWhetherItTakesGzip) {
  for (const char* header :
       {"gzip", "GZip", "gzip, deflate, br", "br;q=1.0, gzip;q=0.5", "x-gzip", "*",
        "identity;q=0, *;q=0.1", "deflate;q=0,gzip ; q=1", "gzip;q=0.001"}) {
    EXPECT_TRUE(AcceptsGzip(header)) << header;
  }
  for (const char* header :
       {"", "deflate", "identity", "gzip;q=0", "gzip; Q=0.000, *", "*;q=0", "gzipped", ";", ",,"}) {
    EXPECT_FALSE(AcceptsGzip(header)) << header;
  }
}

}  // namespace
}  // namespace fusion
