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

// Archives: files with which stores exchange bundles. An archive is a sequence of frames:
//
//   type (1 byte)  length of the payload (8 bytes, little endian)  SHA-256 of the payload  payload
//
//   'H'  the first frame: versions, see ArchiveHeader
//   'K'  a kernel, the bytes of EncodeArtifact. It precedes the first plan that uses it, and occurs
//        once per file
//   'P'  a plan: the keys of its kernels that are in the file (count, then 32 bytes each), its
//        tenant (length, then text), and the bytes of EncodeStoredPlan
//   'S'  optional, before a kernel or a plan: a v1::Signature over SignedEntryBytes of that frame
//   'T'  the last frame: the numbers of plans and kernels, and the SHA-256 of the digests of all
//        frames before. A truncated file lacks it
//
// A payload has at most kMaxArchivePayload bytes. Numbers in payloads are 8 bytes, little endian.
//
// Kernels are code that clients run, and an archive is untrusted: its digests, sources and check
// reports prove nothing. So an import stores an entry as it is only if a trusted key signed it. An
// unsigned plan is planned and compiled again from its key (ArchiveTrust::remake), and the file's
// version is only compared with the result.

/// Version of archives with signatures. Archives without signatures have
/// version 1.
inline constexpr uint32_t kArchiveVersion = 2;
/// Maximum bytes of one plan or kernel. The largest observed have a few MB. A request has at most
/// 32 MiB, unless the server is configured for more.
inline constexpr uint64_t kMaxArchivePayload = uint64_t{128} << 20;
/// Maximum bytes of kernels that an import buffers until their plan arrives.
inline constexpr int64_t kMaxWaitingKernels = int64_t{64} << 20;

/// Versions of the server that wrote an archive.
struct ArchiveHeader {
  uint64_t archive_version = kArchiveVersion;
  uint64_t plan_version = 0;        // kPlanVersion
  uint64_t kernel_abi_version = 0;  // FUSION_KERNEL_ABI_VERSION
};

/// Writes plans of a store, with their stored kernels, as an archive.
///
///   ArchiveWriter writer(store, keys, /*sign=*/nullptr);
///   for (;;) { ASSIGN_OR_RETURN(std::string part, writer.Next());  if (part.empty()) break; ... }
///
/// Omits entries that are evicted or found damaged meanwhile. Not thread-safe. `store` must outlive
/// it.
class ArchiveWriter {
 public:
  using Sign = std::function<Signature(std::string_view bytes)>;

  /// `plans`: keys of the plans. `sign` signs each plan and kernel; null: no signatures.
  ArchiveWriter(Store& store, std::vector<Digest> plans, Sign sign = nullptr);
  /// Returns the next frames, at least one; empty at the end. Reads do not count as uses.
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

/// A plan of an archive without a trusted signature, and the contents that the file claims.
struct ClaimedPlan {
  StoredPlan plan;
  std::map<Digest, Digest> kernels;  // its kernels in the file: key to SHA-256 of the binary
  std::string tenant;
};

/// Result of ArchiveTrust::remake.
struct RemadePlan {
  int64_t kernels = 0;  // newly stored kernels
  std::string refused;  // why the plan is rejected; empty: the remade plan equals the file's
};

/// What an import trusts.
struct ArchiveTrust {
  /// Entries signed with one of these keys are stored as they are.
  std::vector<SigningKey> keys = {};
  /// Makes a plan and its kernels from the plan's key alone, compares them with the claim, and
  /// stores its own result. An error aborts the import. Null: plans without a trusted signature are
  /// rejected.
  std::function<absl::StatusOr<RemadePlan>(const ClaimedPlan& claimed)> remake = nullptr;
};

/// Prefix of the reason for which a plan without a trusted signature is rejected.
inline constexpr std::string_view kUnverified = "imported, unverified: ";

/// Result of an import.
struct ImportOutcome {
  int64_t plans = 0;                 // stored
  int64_t kernels = 0;               // stored
  int64_t known = 0;                 // plans that were already stored
  int64_t remade = 0;                // those of `plans` that ArchiveTrust::remake made
  std::vector<StoreDamage> refused;  // the first kMaxNamedDamage rejected plans
  int64_t refused_plans = 0;         // all rejected plans
};

/// Imports the plans of an archive into a store. Each plan is stored with all its kernels or not at
/// all. Kernels of the file are stored only if a key of `trust` signed them.
///
///   ArchiveImport import(store, trust);
///   ... RETURN_IF_ERROR(import.Add(part)) ...;   ASSIGN_OR_RETURN(outcome, import.Finish());
///
/// Holds in memory one frame, the signed kernels of one plan, and the digests of all kernels. If
/// signed kernels exceed kMaxWaitingKernels, they are stored before their plan is known, without a
/// tenant. Not thread-safe. `store` must outlive it.
class ArchiveImport {
 public:
  ArchiveImport(Store& store, ArchiveTrust trust) : store_(store), trust_(std::move(trust)) {}

  /// Processes the next bytes; the file may be split anywhere. What was stored before an error
  /// stays. InvalidArgument: not an archive, or bytes after its end. FailedPrecondition, naming
  /// both versions: unsupported version. DataLoss: a frame does not match its digest, or frames are
  /// missing. Else the error of Store::PutBundle or ArchiveTrust::remake.
  absl::Status Add(std::string_view bytes);
  /// Call it after the last bytes. DataLoss if the file is truncated, InvalidArgument if it is not
  /// an archive; what was stored stays.
  absl::StatusOr<ImportOutcome> Finish();

  const ImportOutcome& outcome() const { return outcome_; }
  /// Bytes of memory in use now.
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
  std::string pending_;  // bytes of an incomplete frame
  bool begun_ = false;
  bool ended_ = false;
  std::optional<Signature> signature_;                          // of the next frame
  std::vector<std::shared_ptr<const KernelArtifact>> kernels_;  // signed, since the last plan
  int64_t waiting_bytes_ = 0;                                   // of kernels_
  std::map<Digest, Digest> claims_;  // contents of all kernels of the file, by key
  std::string bad_kernel_;           // error of the last bad kernel since the last plan
  int64_t plan_frames_ = 0;
  int64_t kernel_frames_ = 0;
  HashStream digests_;
  ImportOutcome outcome_;
};

}  // namespace fusion
