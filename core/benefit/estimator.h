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

/// Works out the terms of an Estimate from what a schedule does: EstimateKernel. One use; not
/// thread-safe. Schedule and device outlive it.
class Estimator {
 public:
  Estimator(const Schedule& s, const DeviceSpec& device)
      : s_(s), device_(device), lanes_(std::max(device.vector_bytes / 4, 1)) {
    for (const ScheduleDim& d : s.dims) extents_.push_back(static_cast<double>(d.extent));
  }

  Estimate Run();

 private:
  // Tasks of one length.
  struct TaskLengths {
    double tasks;
    double seconds;
  };

  // Tasks of a segment and what one takes. Of a pipeline every stage is done in the tiles of its
  // loops, as if they were blocks.
  TaskLengths WalkSegment(const Segment& segment, double* exchanges);

  // What one stage of a pipeline leaves for another one stays near if the slices at work fit the
  // shared cache beside everything else.
  void KeepNear(const std::map<BufferId, int>& stages_at, double tasks);

  // Cuts the window of a dim into tiles of this length; how many.
  double Narrow(DimId d, int64_t tile);

  // Bytes of the last shared cache that one kind of data may fill.
  double Resident() const;

  // Until the last unit is done. Tasks of a segment fill all units as often as they can; what is
  // left of the segments then goes, longest first, to the unit that is free first.
  double BusySeconds(std::vector<TaskLengths> segments) const;

  double window(DimId d) const { return window_[static_cast<size_t>(d)]; }

  void Walk(const Block& block, double times);

  // Counts a whole buffer in memory; each block touches its own part of it.
  void TouchPart(BufferId id);

  // Part of the windows of its dims for which a condition holds, found by trying up to 16 places of
  // each.
  double ShareOf(const IfStmt& branch) const;

  void CountWindows(const IfStmt& branch, std::vector<DimId> open, std::map<DimId, double>* begin,
                    double* tried, double* held) const;

  // Elements between neighbours along `d`; 0 if the access does not move with it.
  int64_t StrideAlong(const Access& a, DimId d) const;

  double CostOf(const ElementOp& compute) const;

  // Of an element that is loaded or stored. Where other lanes look at other places, each lane moves
  // alone.
  double CostOf(const EachStmt& each, const Access& access, DimId vector) const;

  // A step that finds one place for a vector costs a vector's time. Each point whose place lies in
  // the block then costs a load, a merge and a store.
  void AddPlaced(const EachStmt& each, double times);

  void Add(const EachStmt& each, double times);

  // Sums of products of two different values: products that no MmaStmt has the types for.
  static int Contractions(const EachStmt& each);

  // A region that lacks a grid dim is done again by every block along it, but for blocks that each
  // do their part of a halo: what it reads from outside is read again.
  void CountRecompute(const EachStmt& each);

  void Add(const MmaStmt& mma, double times);

  double Turns(const MmaStmt& mma) const;

  // Behind caches an operand that a block has read once stays near. Explicit memory holds the
  // slices in flight only: every product fetches its operands, unless they are tiles of this block
  // in memory that the product unit shares.
  void Fetch(const Access& operand, double times);

  double TileBytes(const Buffer& b) const;

  // Results of products that element-wise work reads: where the two share no memory they are
  // written to the exchange level and read back. What only converts or clips them is done on the
  // way out.
  void CountResultExchange(const EachStmt& each, double times);

  double TotalTiles() const;

  void Add(const CopyStmt& copy, double times);

  // Bytes of a param that an access covers when each dim has the length `lengths` says; `places`:
  // how many of a dim at most are looked at by an index that is read.
  double Footprint(const Access& a, const std::vector<double>& lengths,
                   double places = std::numeric_limits<double>::infinity()) const;

  // An access of the steps of `each`: what indices that are read look at is no more than there are
  // different ones.
  void TouchIn(const EachStmt& each, const Access& a);

  // `along`: dims along which indices of the access are read.
  void Touch(const Access& a, const std::set<DimId>& along = {});

  double BlockBytes() const;

  void CountDistinct(Estimate* e) const;

  // Rate of a level for the units at work.
  double RateOf(const MemoryLevel& level, const Estimate& e) const;

  void SetMemoryTimes(Estimate* e) const;

  const Schedule& s_;
  const DeviceSpec& device_;
  double lanes_;
  std::vector<double> extents_;          // of each dim
  std::vector<double> window_;           // average length of each dim's window at the statement
  std::vector<double> block_window_;     // and in the whole block, of a pipeline in one of a stage
  std::vector<double> slice_window_;     // of a pipeline in all its stages; else as block_window_
  std::map<DimId, double> grid_tiles_;   // of the segment
  std::vector<BlockWindows> blocks_;     // of the segment, by dim
  std::vector<DimId> halos_;             // of the segment
  std::map<BufferId, double> touched_;   // bytes of each param that one block touches
  std::map<BufferId, double> distinct_;  // and that the kernel touches
  std::map<BufferId, double> slice_bytes_;  // as touched_, in all stages of a segment
  double tile_fill_ = 1;                    // of the segment: its longest block in average ones
  double seconds_ = 0;                      // of one block
  double product_seconds_ = 0;              // of one block, in products
  double fetched_bytes_ = 0;                // of one block: operands, each time they are needed
  double exchanged_bytes_ = 0;              // of one block, between product and element-wise units
  double exchanges_ = 0;                    // of one block
  double products_ = 0;                     // seconds in products
  double near_bytes_ = 0;  // of workspace that is not seen by the memory behind the shared cache
  double block_traffic_ = 0;
  double exchange_traffic_ = 0;
  double recompute_bytes_ = 0;
  double flops_ = 0;
};

}  // namespace fusion
