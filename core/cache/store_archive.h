#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files/signature.h"
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
//   'S'  in front of a kernel or a plan: a v1::Signature over SignedEntryBytes of that frame
//   'T'  last: how many plans and kernels there were, and the SHA-256 of the digests of all frames;
//        a file that was cut off has none
//
// A payload has at most kMaxArchivePayload bytes. Numbers in payloads are 8 bytes, little endian.
//
// Kernels are code that clients run, and whoever wrote a file may have written anything: digests,
// sources and check reports in it prove nothing. So an import takes an entry as it is only if a key
// that the operator trusts signed it. A plan that nobody vouches for is made again from its key
// (ArchiveTrust::remake), and what the file has of it is only compared.

/// Of files with signatures; those without are of version 1.
inline constexpr uint32_t kArchiveVersion = 2;
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
///   ArchiveWriter writer(store, keys, /*sign=*/nullptr);
///   for (;;) { ASSIGN_OR_RETURN(std::string part, writer.Next());  if (part.empty()) break; ... }
///
/// What was evicted or damaged meanwhile is left out. Not thread-safe; `store` outlives it.
class ArchiveWriter {
 public:
  using Sign = std::function<Signature(std::string_view bytes)>;

  /// `sign`: the exporter's word for plans and kernels; null: they are not signed.
  ArchiveWriter(Store& store, std::vector<Digest> plans, Sign sign = nullptr);
  /// The next frames, at least one; empty behind the last. Does not count as a use.
  std::string Next();

  int64_t plans() const { return plan_count_; }
  int64_t kernels() const { return static_cast<int64_t>(written_.size()); }

 private:
  std::string Emit(char type, std::string_view payload);
  std::string EmitEntry(char type, std::string_view payload);
  std::string EmitPlan(const StoredPlan& plan, const std::string& tenant);

  Store& store_;
  const std::vector<Digest> keys_;
  const Sign sign_;
  size_t next_ = 0;
  bool begun_ = false;
  bool ended_ = false;
  std::set<Digest> written_;  // kernels
  int64_t plan_count_ = 0;
  HashStream digests_;
};

/// A plan of a file that nobody vouches for, and what the file says of its kernels.
struct ClaimedPlan {
  StoredPlan plan;
  std::map<Digest, Digest> kernels;  // those that are in the file: by key, SHA-256 of the binary
  std::string tenant;
};

/// What came of making one again.
struct RemadePlan {
  int64_t kernels = 0;  // stored that were not there
  std::string refused;  // why the file's plan is not taken; empty: what was made is equal to it
};

/// Whom an import believes.
struct ArchiveTrust {
  /// Whose entries are taken as they are.
  std::vector<SigningKey> keys = {};
  /// Makes a plan and its kernels from the plan's key alone, compares, and stores what it made. An
  /// error ends the import. Null: plans that nobody vouches for are refused.
  std::function<absl::StatusOr<RemadePlan>(const ClaimedPlan& claimed)> remake = nullptr;
};

/// In front of why a plan that nobody vouches for is not taken.
inline constexpr std::string_view kUnverified = "imported, unverified: ";

/// What came of an import.
struct ImportOutcome {
  int64_t plans = 0;    // stored
  int64_t kernels = 0;  // stored
  int64_t known = 0;    // plans that were there already
  int64_t remade = 0;   // of the plans stored, those that were made again here
  std::vector<StoreDamage> refused;
  int64_t refused_plans = 0;
};

/// Takes the plans of a file into a store, each with its kernels as a whole or not at all. No code
/// of a file gets into the store unless a key of `trust` signed it.
///
///   ArchiveImport import(store, trust);
///   ... RETURN_IF_ERROR(import.Add(part)) ...;   ASSIGN_OR_RETURN(outcome, import.Finish());
///
/// Holds one frame and the signed kernels of one plan at a time, and the digests of all others.
/// Signed kernels of more than kMaxWaitingKernels are stored before their plan is known, on
/// nobody's account. Not thread-safe; `store` outlives it.
class ArchiveImport {
 public:
  ArchiveImport(Store& store, ArchiveTrust trust) : store_(store), trust_(std::move(trust)) {}

  /// The next bytes, cut anyhow. InvalidArgument: they are no such file, or go on behind its end.
  /// FailedPrecondition: of another version, naming both. DataLoss: a frame's bytes are not what
  /// its digest says; ResourceExhausted, Unavailable: the store takes nothing. What was stored
  /// before an error stays.
  absl::Status Add(std::string_view bytes);
  /// DataLoss if the file was cut off; what was stored stays.
  absl::StatusOr<ImportOutcome> Finish();

  const ImportOutcome& outcome() const { return outcome_; }
  /// Bytes of memory that it holds now.
  int64_t held_bytes() const {
    constexpr int64_t kClaimBytes = 128;
    return static_cast<int64_t>(pending_.size()) + waiting_bytes_ +
           kClaimBytes * static_cast<int64_t>(claims_.size());
  }

 private:
  absl::Status TakeFrame(char type, std::string_view payload, const Digest& digest);
  absl::Status TakeHeader(std::string_view payload);
  absl::Status TakeSignature(std::string_view payload);
  absl::StatusOr<bool> TakeVouched(char type, const Digest& digest);
  absl::Status TakeKernel(std::string_view payload, const absl::StatusOr<bool>& vouched);
  absl::Status TakePlan(std::string_view payload, const absl::StatusOr<bool>& vouched);
  absl::Status TakeClaimed(ClaimedPlan claimed, const std::vector<Digest>& kernels);
  absl::Status TakeTrailer(std::string_view payload);
  std::string WhyIncomplete(const std::vector<Digest>& kernels);
  bool AreThere(const std::vector<Digest>& kernels);
  void Refuse(std::string name, std::string reason);
  absl::Status Put(Bundle bundle);

  Store& store_;
  const ArchiveTrust trust_;
  std::string pending_;  // bytes of a frame that is not whole
  bool begun_ = false;
  bool ended_ = false;
  std::optional<Signature> signature_;                          // of the next frame
  std::vector<std::shared_ptr<const KernelArtifact>> kernels_;  // signed, since the last plan
  int64_t waiting_bytes_ = 0;                                   // of those
  std::map<Digest, Digest> claims_;  // contents of all kernels of the file, by key
  std::string bad_kernel_;           // among those; why
  int64_t plan_frames_ = 0;
  int64_t kernel_frames_ = 0;
  HashStream digests_;
  ImportOutcome outcome_;
};

}  // namespace fusion
