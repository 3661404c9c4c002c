#include "client/kernel_assembly.h"

#include "client/calls/answer_check.h"
#include "core/wire/basics/scalars.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {

KernelAssembly::KernelAssembly(std::vector<Digest> keys, int64_t max_kernel_bytes,
                               std::vector<SigningKey> verify_keys)
    : keys_(std::move(keys)),
      max_kernel_bytes_(static_cast<size_t>(max_kernel_bytes)),
      verify_keys_(std::move(verify_keys)) {}

absl::Status KernelAssembly::Add(const v1::GetKernelsResponse& part) {
  if (done_.size() == keys_.size()) return DataLoss("more kernels than were asked for");
  const Digest& key = keys_[done_.size()];
  std::string what = StrCat("kernel ", key.ToHex());
  absl::StatusOr<Digest> got = DigestFromWire(part.key());
  if (!got.ok() || *got != key) return DataLoss(what, ": another one came in its place");
  if (part.state() == v1::KERNEL_STATE_UNKNOWN) return NotFound(what, ": ", part.error());
  if (part.state() == v1::KERNEL_STATE_FAILED) return Internal(what, ": ", part.error());
  if (part.state() != v1::KERNEL_STATE_READY) {
    return Unavailable(what, ": not compiled yet",
                       part.error().empty() ? "" : StrCat(": ", part.error()));
  }
  if (part.data().size() > max_kernel_bytes_ - binary_.size()) {
    return DataLoss(what, ": more than ", max_kernel_bytes_, " bytes");
  }
  binary_ += part.data();
  if (!part.last()) return absl::OkStatus();
  absl::StatusOr<Digest> content = DigestFromWire(part.content_sha256());
  Digest actual = Sha256(binary_);
  if (!content.ok() || *content != actual) {
    return DataLoss(what, ": its ", binary_.size(), " bytes have the SHA-256 ", actual.ToHex(),
                    ", the service says ", content.ok() ? content->ToHex() : "nothing");
  }
  if (!verify_keys_.empty()) RETURN_IF_ERROR(CheckKernelSignature(verify_keys_, part));
  done_.push_back({key, actual, std::move(binary_)});
  binary_.clear();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<FetchedKernel>> KernelAssembly::Finish() && {
  if (done_.size() < keys_.size()) {
    return DataLoss("kernel ", keys_[done_.size()].ToHex(), ": the stream ended before its end");
  }
  return std::move(done_);
}

}  // namespace fusion
