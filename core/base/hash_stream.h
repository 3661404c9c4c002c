#pragma once

#include <memory>
#include <string_view>

#include "core/base/hash.h"

struct evp_md_ctx_st;

namespace fusion {

/// SHA-256 of bytes that come piece by piece and are not kept.
///
///   HashStream stream;  stream.Add(first);  stream.Add(second);  Digest digest = stream.Finish();
///
/// Not thread-safe.
class HashStream {
 public:
  HashStream();
  void Add(std::string_view bytes);
  /// Of all that was added; the last call.
  Digest Finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace fusion
