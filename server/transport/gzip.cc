#include "server/transport/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <cctype>

#include "core/base/text/text.h"

namespace fusion {
namespace {

// 15 bits of window; 16 more ask zlib for gzip's header instead of its own.
constexpr int kGzipWindow = 15 + 16;
constexpr int kMemoryLevel = 8;

std::string Lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// "q=0", "q=0.", "q=0.000"
bool IsZeroWeight(std::string_view parameter) {
  const std::string lower = Lower(StripSpace(parameter));
  if (!lower.starts_with("q=0")) return false;
  return lower.find_first_not_of("0.", 2) == std::string::npos;
}

}  // namespace

std::string Gzip(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return "";
  }
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  out.resize(whole ? stream.total_out : 0);
  deflateEnd(&stream);
  return out;
}

bool AcceptsGzip(std::string_view accept_encoding) {
  bool any = false;  // "*" says the rest
  for (std::string_view choice : StrSplit(accept_encoding, ',')) {
    const std::vector<std::string_view> parts = StrSplit(choice, ';');
    const std::string coding = Lower(StripSpace(parts[0]));
    const bool refused = std::any_of(parts.begin() + 1, parts.end(), IsZeroWeight);
    if (coding == "gzip" || coding == "x-gzip") return !refused;
    if (coding == "*") any = !refused;
  }
  return any;
}

}  // namespace fusion
