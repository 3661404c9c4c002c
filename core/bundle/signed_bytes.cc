#include "core/bundle/signed_bytes.h"

#include "core/base/text/text.h"

namespace fusion {

std::string SignedPlanBytes(const Digest& plan_key, const Digest& plan_sha256,
                            const std::vector<KernelStatus>& kernels) {
  std::string out = StrCat("fusion.v1.plan\n", BytesOf(plan_key), BytesOf(plan_sha256));
  for (const KernelStatus& kernel : kernels) {
    if (kernel.state == KernelState::kReady) {
      out += BytesOf(kernel.key);
      out += BytesOf(kernel.content);
    }
  }
  return out;
}

std::string SignedKernelBytes(const Digest& key, const Digest& content) {
  return StrCat("fusion.v1.kernel\n", BytesOf(key), BytesOf(content));
}

std::string SignedEntryBytes(char type, const Digest& payload) {
  return StrCat("fusion.v1.archive\n", std::string(1, type), BytesOf(payload));
}

}  // namespace fusion
