#pragma once

#include <functional>
#include <memory>

#include "core/cache/rocks/rocks_store.h"

namespace fusion {

/// What lies on one disk.
struct DiskStores {
  std::unique_ptr<Store> store;
  std::unique_ptr<MeasurementStore> measurements;  // may outlive `store`
};

/// Opens RocksStore and its measurements for a server, which a full disk must not keep from
/// serving. Where there is no room to open them (ResourceExhausted) they are opened to be read
/// only, or, where even that cannot be (nothing was stored yet, or by another schema), are empty.
/// Writes are refused with the reason then, which Stats has too, and every now and then whoever
/// writes or asks for Stats opens them anew: once there is room they are as any other.
/// Else fails as RocksStore::Open. `logger` and `clock` outlive them.
absl::StatusOr<DiskStores> OpenDiskStores(RocksStoreOptions options, Logger& logger,
                                          const Clock& clock = Clock::Real());

/// How OpenDiskStores opens: to write as well, or only to read.
using OpenDisk = std::function<absl::StatusOr<DiskStores>(bool read_only)>;

/// The same of any stores, of which `dir` and `budget_bytes` are for Facts and Stats.
absl::StatusOr<DiskStores> OpenDiskStores(const RocksStoreOptions& options, OpenDisk open,
                                          Logger& logger, const Clock& clock);

}  // namespace fusion
