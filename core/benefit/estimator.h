#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "core/benefit/estimate.h"
#include "core/device/device_spec.h"
#include "core/schedule/ir/access.h"
#include "core/schedule/ir/schedule.h"
#include "core/schedule/memory/block_windows.h"

namespace fusion {

/// Computes the terms of an Estimate from the statements of a schedule; see EstimateKernel. Call
/// Run once; not thread-safe. Schedule and device outlive it.
class Estimator {
 public:
  Estimator(const Schedule& s, const DeviceSpec& device)
      : s_(s), device_(device), lanes_(std::max(device.vector_bytes / 4, 1)) {
    for (const ScheduleDim& d : s.dims) extents_.push_back(static_cast<double>(d.extent));
  }

  Estimate Run();

 private:
  // A number of tasks of equal duration.
  struct TaskLengths {
    double tasks;
    double seconds;
  };

  // Tasks of a segment and the seconds of one. In a pipeline each stage is counted in the tiles of
  // its loops, as if they were blocks.
  TaskLengths WalkSegment(const Segment& segment, double* exchanges);

  // Counts the workspace between stages of a pipeline as cached if the slices of all running tasks
  // fit the shared cache together with everything else.
  void KeepNear(const std::map<BufferId, int>& stages_at, double tasks);

  // Tiles the window of a dim by `tile`; returns the number of tiles.
  double Narrow(DimId d, int64_t tile);

  // Bytes of the last shared cache that one kind of data may use.
  double Resident() const;

  // Seconds until the last unit is idle. Full waves of each segment run on all units; the remaining
  // tasks go, longest first, to the unit that is idle first.
  double BusySeconds(std::vector<TaskLengths> segments) const;

  double window(DimId d) const { return window_[static_cast<size_t>(d)]; }

  void Walk(const Block& block, double times);

  // Counts the bytes of a whole buffer as distinct; each block touches an equal part of them.
  void TouchPart(BufferId id);

  // The part of the iterations for which a condition holds, found by trying up to 16 values of each
  // of its dims.
  double ShareOf(const IfStmt& branch) const;

  void CountWindows(const IfStmt& branch, std::vector<DimId> open, std::map<DimId, double>* begin,
                    double* tried, double* held) const;

  // Elements between neighbours along `d`; 0 if the access does not depend on `d`.
  int64_t StrideAlong(const Access& a, DimId d) const;

  double CostOf(const ElementOp& compute) const;

  // Cost of loading or storing an element. If lanes access different places, each lane is counted
  // separately.
  double CostOf(const EachStmt& each, const Access& access, DimId vector) const;

  // Adds a scatter. A step that finds one place for a vector costs the time of a vector. Each point
  // whose place lies in the block also costs a load, a merge and a store.
  void AddPlaced(const EachStmt& each, double times);

  void Add(const EachStmt& each, double times);

  // Number of sums of products of two different values: products whose types no MmaStmt supports.
  static int Contractions(const EachStmt& each);

  // Counts recomputation. Every block along a grid dim that a region lacks computes the region
  // again and reads its inputs again, except for blocks that each compute their own part of a halo.
  void CountRecompute(const EachStmt& each);

  void Add(const MmaStmt& mma, double times);

  double Turns(const MmaStmt& mma) const;

  // Counts the fetch of an operand. With caches, an operand that a block has read stays cached.
  // Explicit memory holds only the slices in flight: every product fetches its operands, unless
  // they are tiles of this block in memory that the product unit shares.
  void Fetch(const Access& operand, double times);

  double TileBytes(const Buffer& b) const;

  // Counts results of products that element-wise operations read. If the two share no memory,
  // results are written to the exchange level and read back. Operations that only convert or clip
  // them are done on the way out and not counted.
  void CountResultExchange(const EachStmt& each, double times);

  double TotalTiles() const;

  void Add(const CopyStmt& copy, double times);

  // Bytes of a param that an access covers if each dim has the length in `lengths`. `places`: most
  // elements along a dim that an index from a tensor selects.
  double Footprint(const Access& a, const std::vector<double>& lengths,
                   double places = std::numeric_limits<double>::infinity()) const;

  // Touches an access of the steps of `each`. An index from a tensor selects at most as many
  // elements as it has different values.
  void TouchIn(const EachStmt& each, const Access& a);

  // `along`: dims along which the index tensors of the access vary.
  void Touch(const Access& a, const std::set<DimId>& along = {});

  double BlockBytes() const;

  void CountDistinct(Estimate* e) const;

  // Units that are busy.
  double ActiveUnits(const Estimate& e) const;

  // Of `bytes` that blocks fetch, those that a private cache may hold.
  double LocalBytes(const Estimate& e, double bytes) const;

  // Rate of a level for the active units.
  double RateOf(const MemoryLevel& level, const Estimate& e) const;

  void SetMemoryTimes(Estimate* e) const;

  const Schedule& s_;
  const DeviceSpec& device_;
  double lanes_;
  std::vector<double> extents_;         // of each dim
  std::vector<double> window_;          // average length of each dim at the current statement
  std::vector<double> block_window_;    // in the whole block; of a pipeline in a block of the stage
  std::vector<double> slice_window_;    // in all stages of a pipeline; else as block_window_
  std::map<DimId, double> grid_tiles_;  // of the segment
  std::vector<BlockWindows> blocks_;    // of the segment, by dim
  std::vector<DimId> halos_;            // of the segment
  std::map<BufferId, double> touched_;  // bytes of each param that one block touches
  std::map<BufferId, double> distinct_;     // bytes of each param that the kernel touches
  std::map<BufferId, double> slice_bytes_;  // as touched_, over all stages of a segment
  double tile_fill_ = 1;                    // of the segment: longest block / average block
  double seconds_ = 0;                      // of one block
  double product_seconds_ = 0;              // of one block, in products
  double fetched_bytes_ = 0;                // of one block: operands, counted for every use
  double exchanged_bytes_ = 0;              // of one block, between product and element-wise units
  double exchanges_ = 0;                    // of one block
  double products_ = 0;                     // seconds in products
  double near_bytes_ = 0;                   // of workspace that stays in the shared cache
  double block_traffic_ = 0;
  double exchange_traffic_ = 0;
  double recompute_bytes_ = 0;
  double flops_ = 0;
};

}  // namespace fusion
