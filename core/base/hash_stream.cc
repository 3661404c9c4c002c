#include "core/base/hash_stream.h"

#include <openssl/evp.h>

namespace fusion {

void HashStream::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

HashStream::HashStream() : context_(EVP_MD_CTX_new()) {
  EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
}

void HashStream::Add(std::string_view bytes) {
  EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
}

Digest HashStream::Finish() {
  Digest digest;
  EVP_DigestFinal_ex(context_.get(), digest.bytes.data(), nullptr);
  return digest;
}

}  // namespace fusion
