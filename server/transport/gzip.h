#pragma once

#include <string>
#include <string_view>

namespace fusion {

/// `text` in gzip format (RFC 1952); empty if memory is short.
std::string Gzip(std::string_view text);

/// Whether a client that sent this Accept-Encoding header (RFC 9110, 12.5.3) accepts gzip: "gzip,
/// deflate", "br;q=1, gzip;q=0.5", "*". False for "gzip;q=0" and for no header ("").
bool AcceptsGzip(std::string_view accept_encoding);

}  // namespace fusion
