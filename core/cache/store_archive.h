#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/hash_stream.h"
#include "core/cache/store.h"

namespace fusion {

// A file of bundles, by which stores exchange them. It is a row of frames:
//
//   type (1 byte)  length of the payload (8 bytes, little endian)  SHA-256 of the payload  payload
//
//   'H'  first: versions, see ArchiveHeader
//   'K'  a kernel, as EncodeArtifact gives it; kernels stand in front of the first plan that has
//        them, once in a file
//   'P'  a plan: the keys of its kernels that are in the file (count, then 32 bytes each), its
//        tenant (length, then text), and what EncodeStoredPlan gives
//   'T'  last: how many plans and kernels there were, and the SHA-256 of the digests of all frames;
//        a file that was cut off has none
//
// A payload has at most kMaxArchivePayload bytes. Numbers in payloads are 8 bytes, little endian.
// Kernels are code that clients run: import only what comes from a server that is trusted.

inline constexpr uint32_t kArchiveVersion = 1;
/// Of one plan or kernel; the longest seen have a few MB, and a request at most 32 MiB unless its
/// server allows more.
inline constexpr uint64_t kMaxArchivePayload = uint64_t{128} << 20;
/// Bytes of kernels that an import keeps until their plan comes.
inline constexpr int64_t kMaxWaitingKernels = int64_t{64} << 20;

/// What wrote a file.
struct ArchiveHeader {
  uint64_t archive_version = kArchiveVersion;
  uint64_t plan_version = 0;        // of the plans' wire form
  uint64_t kernel_abi_version = 0;  // of the kernels
};

/// Writes plans of a store with those of their kernels that it has.
///
///   ArchiveWriter writer(store, keys);
///   for (;;) { ASSIGN_OR_RETURN(std::string part, writer.Next());  if (part.empty()) break; ... }
///
/// What was evicted or damaged meanwhile is left out. Not thread-safe; `store` outlives it.
class ArchiveWriter {
 public:
  ArchiveWriter(Store& store, std::vector<Digest> plans);
  /// The next frames, at least one; empty behind the last. Does not count as a use.
  std::string Next();

  int64_t plans() const { return plan_count_; }
  int64_t kernels() const { return static_cast<int64_t>(written_.size()); }

 private:
  std::string Emit(char type, std::string_view payload);
  std::string EmitPlan(const StoredPlan& plan, const std::string& tenant);

  Store& store_;
  const std::vector<Digest> keys_;
  size_t next_ = 0;
  bool begun_ = false;
  bool ended_ = false;
  std::set<Digest> written_;  // kernels
  int64_t plan_count_ = 0;
  HashStream digests_;
};

/// What came of an import.
struct ImportOutcome {
  int64_t plans = 0;    // stored
  int64_t kernels = 0;  // stored
  int64_t known = 0;    // plans that were there already
  std::vector<StoreDamage> refused;
  int64_t refused_plans = 0;
};

/// Takes the plans of a file into a store, each with its kernels as a whole or not at all.
///
///   ArchiveImport import(store);
///   ... RETURN_IF_ERROR(import.Add(part)) ...;   ASSIGN_OR_RETURN(outcome, import.Finish());
///
/// Holds one frame and the kernels of one plan at a time. Kernels of more than kMaxWaitingKernels
/// are stored before their plan is known, on nobody's account. Not thread-safe; `store` outlives
/// it.
class ArchiveImport {
 public:
  explicit ArchiveImport(Store& store) : store_(store) {}

  /// The next bytes, cut anyhow. InvalidArgument: they are no such file, or go on behind its end.
  /// FailedPrecondition: of another version, naming both. DataLoss: a frame's bytes are not what
  /// its digest says; ResourceExhausted, Unavailable: the store takes nothing. What was stored
  /// before an error stays.
  absl::Status Add(std::string_view bytes);
  /// DataLoss if the file was cut off; what was stored stays.
  absl::StatusOr<ImportOutcome> Finish();

  const ImportOutcome& outcome() const { return outcome_; }
  /// Bytes of memory that it holds now.
  int64_t held_bytes() const { return static_cast<int64_t>(pending_.size()) + waiting_bytes_; }

 private:
  absl::Status TakeFrame(char type, std::string_view payload, const Digest& digest);
  absl::Status TakeHeader(std::string_view payload);
  absl::Status TakeKernel(std::string_view payload);
  absl::Status TakePlan(std::string_view payload);
  absl::Status TakeTrailer(std::string_view payload);
  std::string WhyIncomplete(const std::vector<Digest>& kernels);
  void Refuse(std::string name, std::string reason);
  absl::Status Put(Bundle bundle);

  Store& store_;
  std::string pending_;  // bytes of a frame that is not whole
  bool begun_ = false;
  bool ended_ = false;
  std::vector<std::shared_ptr<const KernelArtifact>> kernels_;  // since the last plan
  int64_t waiting_bytes_ = 0;                                   // of those
  std::string bad_kernel_;                                      // among those; why
  int64_t plan_frames_ = 0;
  int64_t kernel_frames_ = 0;
  HashStream digests_;
  ImportOutcome outcome_;
};

}  // namespace fusion
