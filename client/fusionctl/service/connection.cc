#include "client/fusionctl/service/connection.h"

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/args/exit_code.h"
#include "core/base/files/file.h"
#include "core/base/parse/pem.h"

namespace fusion {
namespace {

constexpr int64_t kMaxPemBytes = int64_t{1} << 20;
constexpr int64_t kMaxTokenBytes = 4096;

absl::Status ReadInto(std::string_view option, const std::string& path, int64_t limit,
                      std::string* out) {
  if (path.empty()) return absl::OkStatus();
  absl::StatusOr<std::string> text = ReadFile(path, limit);
  if (!text.ok()) return BadInput(Annotate(text.status(), option));
  *out = *std::move(text);
  return absl::OkStatus();
}

absl::Status WithFile(const absl::Status& status, std::string_view option,
                      const std::string& path) {
  return Annotate(status, StrCat(option, ": file ", Quote(path)));
}

// gRPC does not say which file it cannot use, nor why.
absl::Status CheckPem(const Arguments& arguments, const ClientTls& tls) {
  RETURN_IF_ERROR(WithFile(FirstCertificate(tls.ca).status(), "--ca", arguments.ca));
  if (arguments.certificate.empty()) return absl::OkStatus();
  const auto certificate = FirstCertificate(tls.certificate);
  RETURN_IF_ERROR(WithFile(certificate.status(), "--cert", arguments.certificate));
  const auto key = FirstPrivateKey(tls.key);
  RETURN_IF_ERROR(WithFile(key.status(), "--key", arguments.key));
  if (X509_check_private_key(certificate->get(), key->get()) == 1) return absl::OkStatus();
  return WithFile(InvalidArgument("not the key of the certificate of --cert"), "--key",
                  arguments.key);
}

absl::Status CheckToken(std::string_view token) {
  for (char c : token) {
    if (c <= 0x20 || c >= 0x7f) {
      return InvalidArgument("the token holds a space or a sign that is no ASCII");
    }
  }
  return absl::OkStatus();
}

}  // namespace

ClientOptions CallOptions(const Arguments& arguments) {
  ClientOptions options;
  if (arguments.deadline.has_value()) {
    options.deadline = FromSeconds(*arguments.deadline);
  }
  return options;
}

absl::StatusOr<ClientOptions> ConnectionOf(const Arguments& arguments) {
  ClientOptions out = CallOptions(arguments);
  if (!arguments.ca.empty()) {
    ClientTls& tls = out.tls.emplace();
    RETURN_IF_ERROR(ReadInto("--ca", arguments.ca, kMaxPemBytes, &tls.ca));
    RETURN_IF_ERROR(ReadInto("--cert", arguments.certificate, kMaxPemBytes, &tls.certificate));
    RETURN_IF_ERROR(ReadInto("--key", arguments.key, kMaxPemBytes, &tls.key));
    RETURN_IF_ERROR(BadInput(CheckPem(arguments, tls)));
    tls.server_name = arguments.server_name;
  }
  out.token = arguments.token;
  RETURN_IF_ERROR(ReadInto("--token-file", arguments.token_file, kMaxTokenBytes, &out.token));
  out.token = StripSpace(std::string(out.token));
  absl::Status token = CheckToken(out.token);
  if (!token.ok()) {
    return Annotate(token, arguments.token_file.empty() ? "FUSION_TOKEN" : "--token-file");
  }
  out.background = arguments.background;
  out.traceparent = arguments.traceparent;
  absl::StatusOr<std::vector<SigningKey>> keys = ReadKeys(arguments.verify_keys);
  if (!keys.ok()) return BadInput(Annotate(keys.status(), "--verify-key"));
  out.verify_keys = *std::move(keys);
  return out;
}

}  // namespace fusion
