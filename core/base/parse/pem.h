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
/// Owns an object of OpenSSL.
template <typename T>
using OpenSslPtr = std::unique_ptr<T, OpenSslFree>;

/// Reads text in PEM form (RFC 7468) block by block. A block that needs a password counts as
/// damaged; there is no prompt. The text must outlive the reader. Not thread-safe.
class PemReader {
 public:
  explicit PemReader(std::string_view text);

  /// The next block of that kind; skips blocks of other kinds. Null at the end of the text or at a
  /// damaged block; see cut().
  OpenSslPtr<X509> Certificate();
  OpenSslPtr<EVP_PKEY> PrivateKey();
  OpenSslPtr<EVP_PKEY> PublicKey();

  /// True if the last call returned null because of a damaged block, not at the end of the text.
  bool cut() const { return cut_; }

 private:
  template <typename T>
  OpenSslPtr<T> Read(T* (*read)(BIO*, T**, pem_password_cb*, void*));

  OpenSslPtr<BIO> text_;
  bool cut_ = false;
};

/// The first certificate of `text`. InvalidArgument if there is none, or if any certificate in the
/// text is damaged; the message says which one.
absl::StatusOr<OpenSslPtr<X509>> FirstCertificate(std::string_view text);

/// The first private key of `text`. InvalidArgument if there is none, or if it is damaged or needs
/// a password.
absl::StatusOr<OpenSslPtr<EVP_PKEY>> FirstPrivateKey(std::string_view text);

}  // namespace fusion
