#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace fusion {

enum class RecordFamily : uint8_t {
  kMeasurements,  // reported latencies: many, small, the oldest forgotten; a crash may lose the
                  // last
  kModels,        // fitted models by epoch: few, kept until replaced; durable
};

/// Ordered byte records beside the plans and kernels of a store, for what the service learns.
/// Values are opaque here: whoever reads them checks them. Thread-safe.
class RecordStore {
 public:
  virtual ~RecordStore() = default;

  virtual absl::Status PutRecord(RecordFamily family, std::string_view key,
                                 std::string_view value) = 0;
  /// nullopt if absent.
  virtual absl::StatusOr<std::optional<std::string>> GetRecord(RecordFamily family,
                                                               std::string_view key) = 0;
  /// Calls `visit` for every record whose key starts with `prefix`, in key order, until it returns
  /// false. Sees the state of the moment it was called.
  virtual absl::Status ScanRecords(
      RecordFamily family, std::string_view prefix,
      const std::function<bool(std::string_view key, std::string_view value)>& visit) = 0;
};

}  // namespace fusion
