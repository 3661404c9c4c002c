#include "core/base/parse/pem.h"

#include <openssl/err.h>
#include <openssl/pem.h>

namespace fusion {
namespace {

int NoPassword(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*user*/) { return 0; }

}  // namespace

PemReader::PemReader(std::string_view text)
    : text_(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))) {}

template <typename T>
OpenSslPtr<T> PemReader::Read(T* (*read)(BIO*, T**, pem_password_cb*, void*)) {
  ERR_clear_error();
  OpenSslPtr<T> out(read(text_.get(), nullptr, &NoPassword, nullptr));
  cut_ = out == nullptr && ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE;
  ERR_clear_error();
  return out;
}

OpenSslPtr<X509> PemReader::Certificate() { return Read(&PEM_read_bio_X509); }
OpenSslPtr<EVP_PKEY> PemReader::PrivateKey() { return Read(&PEM_read_bio_PrivateKey); }
OpenSslPtr<EVP_PKEY> PemReader::PublicKey() { return Read(&PEM_read_bio_PUBKEY); }

absl::StatusOr<OpenSslPtr<X509>> FirstCertificate(std::string_view text) {
  PemReader in(text);
  OpenSslPtr<X509> first;
  int count = 0;
  while (OpenSslPtr<X509> next = in.Certificate()) {
    if (count++ == 0) first = std::move(next);
  }
  if (in.cut()) return InvalidArgument("certificate ", count + 1, " is damaged or cut");
  if (count == 0) return InvalidArgument("no certificate in PEM form");
  return first;
}

absl::StatusOr<OpenSslPtr<EVP_PKEY>> FirstPrivateKey(std::string_view text) {
  OpenSslPtr<EVP_PKEY> key = PemReader(text).PrivateKey();
  if (key == nullptr) return InvalidArgument("no private key in PEM form without a password");
  return key;
}

}  // namespace fusion
