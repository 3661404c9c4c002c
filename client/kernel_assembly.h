#pragma once

#include <string>
#include <vector>

#include "client/client.h"

namespace fusion::v1 {
class GetKernelsResponse;
}  // namespace fusion::v1

namespace fusion {

/// Puts the parts of streamed kernels together and checks them against their digests.
///
///   KernelAssembly assembly(keys, limit);
///   while (reader->Read(&part)) RETURN_IF_ERROR(assembly.Add(part));
///   ASSIGN_OR_RETURN(std::vector<FetchedKernel> kernels, std::move(assembly).Finish());
///
/// Errors name the kernel: DataLoss for parts out of order, for too many bytes and for bytes that
/// do not have the digest sent with them; Internal for a kernel that failed; NotFound for one that
/// the service does not know (any more); Unavailable for one that is not compiled yet.
class KernelAssembly {
 public:
  /// Kernels that none of `verify_keys` signed are DataLoss too, unless there are no such keys.
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
