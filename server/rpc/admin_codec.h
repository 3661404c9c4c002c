#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/cache/store_archive.h"
#include "server/rpc/server_status.h"

namespace fusion {

namespace v1 {
class StoreTier;
}

// FusionAdmin's requests and responses as plain values. Each Decode* parses an untrusted serialised
// request: InvalidArgument, naming the field; ResourceExhausted above kMaxRequestObjects. Each
// Encode* returns a serialised response. Pure, any thread.

/// Requests without fields: only checks that they parse.
absl::Status CheckStoreStatsRequest(std::string_view bytes);
absl::Status CheckVerifyRequest(std::string_view bytes);
absl::Status CheckCompactRequest(std::string_view bytes);
absl::Status CheckServerStatusRequest(std::string_view bytes);

struct PinQuery {
  std::vector<Digest> plans;  // 1 to kMaxAdminKeys
  bool pinned = false;
};
absl::StatusOr<PinQuery> DecodePinQuery(std::string_view bytes);

struct InvalidateQuery {
  ForgetQuery what;
  std::string reason;
};
absl::StatusOr<InvalidateQuery> DecodeInvalidateQuery(std::string_view bytes);

struct SteerQuery {
  bool train = false;
  int64_t roll_back = 0;  // number of an epoch; 0: none
  std::string reason;
};
absl::StatusOr<SteerQuery> DecodeSteerQuery(std::string_view bytes);

/// The keys of the plans to export; empty: all plans.
absl::StatusOr<std::vector<Digest>> DecodeExportQuery(std::string_view bytes);

/// Part of an archive file, at most kMaxArchiveChunk bytes.
absl::StatusOr<std::string> DecodeChunk(std::string_view bytes);
std::string EncodeChunk(std::string_view data);
inline constexpr size_t kMaxArchiveChunk = 1 << 20;

/// Part of other answers.
void EncodeTier(const StoreStats& tier, v1::StoreTier* out);
std::string EncodeStoreStats(const std::vector<StoreStats>& tiers, const DiskFacts& disk,
                             const std::map<std::string, int64_t>& tenants);
std::string EncodeCheck(const StoreCheck& check);
std::string EncodeCompaction(const StoreCompaction& sizes);
std::string EncodePinOutcome(const PinOutcome& outcome);
std::string EncodeForgotten(const Forgotten& gone, int64_t failures);
std::string EncodeImport(const ImportOutcome& outcome);
std::string EncodeOutcomes(const std::vector<std::string>& outcomes);
std::string EncodeServerStatus(const ServerStatus& status);

}  // namespace fusion
