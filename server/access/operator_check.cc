#include "server/access/operator_check.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cctype>

#include "core/base/text/text.h"
#include "server/access/denial.h"

namespace fusion {
namespace {

constexpr std::string_view kBasicScheme = "basic ";
// Of "Basic ...": a token of Authenticator and a user name, in base64.
constexpr size_t kMaxBasicBytes = 8192;

bool StartsWithBasic(std::string_view text) {
  if (text.size() < kBasicScheme.size()) return false;
  return std::equal(
      kBasicScheme.begin(), kBasicScheme.end(), text.begin(),
      [](char want, char got) { return want == std::tolower(static_cast<unsigned char>(got)); });
}

// The password of "Basic dXNlcjpwYXNzd29yZA=="; empty: it is malformed.
std::string PasswordOf(std::string_view authorization) {
  const std::string_view coded = StripSpace(authorization.substr(kBasicScheme.size()));
  if (coded.empty() || coded.size() > kMaxBasicBytes || coded.size() % 4 != 0) return "";
  std::string plain(coded.size() / 4 * 3, '\0');
  const int bytes = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(plain.data()),
                                    reinterpret_cast<const unsigned char*>(coded.data()),
                                    static_cast<int>(coded.size()));
  if (bytes < 0) return "";
  // The result includes the padding, as zero bytes.
  const size_t padding = coded.ends_with("==") ? 2 : coded.ends_with("=") ? 1 : 0;
  plain.resize(static_cast<size_t>(bytes) - padding);
  const size_t colon = plain.find(':');
  return colon == std::string::npos ? "" : plain.substr(colon + 1);
}

}  // namespace

absl::Status CheckOperator(const Authenticator& authenticator, std::string_view authorization,
                           std::chrono::system_clock::time_point now) {
  if (!authenticator.asks_tokens()) return absl::OkStatus();
  if (authorization.empty()) {
    return Unauthenticated(
        "this page needs a token with the role admin; expected the header 'Authorization: Bearer "
        "TOKEN', or the token as the password of HTTP basic authentication");
  }
  std::string bearer(authorization);
  if (StartsWithBasic(authorization)) {
    const std::string password = PasswordOf(authorization);
    if (password.empty()) {
      return Unauthenticated("authorization: expected 'Basic ' and the base64 of 'NAME:TOKEN'");
    }
    bearer = StrCat("Bearer ", password);
  }
  ASSIGN_OR_RETURN(const Caller caller, authenticator.Identify({.authorization = bearer}, now));
  return CheckRole(caller, Role::kAdmin);
}

}  // namespace fusion
