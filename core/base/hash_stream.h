#pragma once

#include <memory>
#include <string_view>

#include "core/base/hash.h"

struct evp_md_ctx_st;

namespace fusion {

/// Incremental SHA-256: hashes pieces in order and keeps none of them.
///
///   HashStream stream;  stream.Add(first);  stream.Add(second);  Digest digest = stream.Finish();
///
/// Not thread-safe.
class HashStream {
 public:
  HashStream();
  void Add(std::string_view bytes);
  /// The digest of all added bytes. No other call may follow.
  Digest Finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace fusion
