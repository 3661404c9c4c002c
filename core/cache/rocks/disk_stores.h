#pragma once

#include <functional>
#include <memory>

#include "core/cache/rocks/rocks_store.h"

namespace fusion {

/// The stores in one directory.
struct DiskStores {
  std::unique_ptr<Store> store;
  std::unique_ptr<MeasurementStore> measurements;  // these may outlive `store`
  std::unique_ptr<TimingStore> timings;
};

/// Opens RocksStore and its records such that a server can start on a full disk. If there is
/// no space to open them (ResourceExhausted), they are opened read-only. If that fails too (nothing
/// stored yet, or another schema), they are empty. Until there is space, writes fail with that
/// error, and StoreStats::not_writable has it. Writes and calls of CheckWritable and Stats retry to
/// open them normally, at most once per second. Other errors: as RocksStore::Open. `logger` and
/// `clock` must outlive the stores.
absl::StatusOr<DiskStores> OpenDiskStores(RocksStoreOptions options, Logger& logger,
                                          const Clock& clock = Clock::Real());

/// Opens stores for OpenDiskStores, for reading and writing or read-only.
using OpenDisk = std::function<absl::StatusOr<DiskStores>(bool read_only)>;

/// As above, for stores that `open` makes. `options`: only dir, budget_bytes and min_free_bytes are
/// used, for Facts and Stats.
absl::StatusOr<DiskStores> OpenDiskStores(const RocksStoreOptions& options, OpenDisk open,
                                          Logger& logger, const Clock& clock);

}  // namespace fusion
