#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string_view>

#include "core/base/status.h"

namespace fusion {

struct OpenSslFree {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
/// Owns what OpenSSL made.
template <typename T>
using OpenSslPtr = std::unique_ptr<T, OpenSslFree>;

/// Reads texts in PEM form (RFC 7468), one block after another. Blocks that need a password are
/// taken for damaged: no terminal is asked for it. The text outlives it. Not thread-safe.
class PemReader {
 public:
  explicit PemReader(std::string_view text);

  /// The next block of that kind; others are passed over. Null if there is none: see cut().
  OpenSslPtr<X509> Certificate();
  OpenSslPtr<EVP_PKEY> PrivateKey();
  OpenSslPtr<EVP_PKEY> PublicKey();

  /// Whether the last one was null for a block that cannot be read, not for the end of the text.
  bool cut() const { return cut_; }

 private:
  template <typename T>
  OpenSslPtr<T> Read(T* (*read)(BIO*, T**, pem_password_cb*, void*));

  OpenSslPtr<BIO> text_;
  bool cut_ = false;
};

/// The first certificate of a text; every other one in it must be sound too. InvalidArgument says
/// which is damaged, or that there is none.
absl::StatusOr<OpenSslPtr<X509>> FirstCertificate(std::string_view text);

/// InvalidArgument unless `text` has a private key without a password.
absl::StatusOr<OpenSslPtr<EVP_PKEY>> FirstPrivateKey(std::string_view text);

}  // namespace fusion
