#pragma once

#include <string>
#include <vector>

#include "client/client.h"

namespace fusion::v1 {
class GetKernelsResponse;
}  // namespace fusion::v1

namespace fusion {

/// Assembles streamed kernels from their parts and checks their digests.
///
///   KernelAssembly assembly(keys, limit);
///   while (reader->Read(&part)) RETURN_IF_ERROR(assembly.Add(part));
///   ASSIGN_OR_RETURN(std::vector<FetchedKernel> kernels, std::move(assembly).Finish());
///
/// Errors name the kernel. DataLoss: parts out of order or missing, too many bytes, or a wrong
/// digest.
/// Internal: the kernel failed. NotFound: the service does not have it (any more). Unavailable: it
/// is not compiled yet.
class KernelAssembly {
 public:
  /// With `verify_keys`, a kernel that none of them signed is DataLoss too.
  KernelAssembly(std::vector<Digest> keys, int64_t max_kernel_bytes,
                 std::vector<SigningKey> verify_keys = {});

  absl::Status Add(const v1::GetKernelsResponse& part);
  absl::StatusOr<std::vector<FetchedKernel>> Finish() &&;

 private:
  std::vector<Digest> keys_;
  size_t max_kernel_bytes_;
  std::vector<SigningKey> verify_keys_;
  std::vector<FetchedKernel> done_;
  std::string binary_;
};

}  // namespace fusion
