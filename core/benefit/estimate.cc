#include "core/benefit/estimate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <set>

#include "core/base/contains.h"
#include "core/benefit/estimator.h"
#include "core/benefit/kernel_form.h"
#include "core/benefit/opaque_cost.h"
#include "core/benefit/terms.h"
#include "core/schedule/ir/access.h"
#include "core/schedule/ir/phase_pipeline.h"
#include "core/schedule/ir/sum_order.h"
#include "core/schedule/lower/product_shape.h"
#include "core/schedule/memory/block_windows.h"
#include "core/schedule/tiles/legality.h"

namespace fusion {
namespace {

// Weights above this part of the last shared cache come from memory at every run.
constexpr double kResidentPart = 0.25;

// An element copied in runs as long as a block of the target, in additions: 3x3 windows of 64
// channels gathered in blocks of 12, 0.13 ns each; measured with kJumpsOfFarRows
// (core/schedule/ir/sum_order.cc).
constexpr double kBlockedElement = 5;

// Comparing a place that was read with the block's, and going there, in additions. A choice, not a
// measurement.
constexpr double kPlaceCost = 4;

}  // namespace

Estimate Estimator::Run() {
  Estimate e;
  double threads = device_.threads;
  double compute = 0;
  double busy = 0;
  for (const Phase& phase : s_.phases) {
    double phase_tasks = 0;
    double work = 0;
    double exchanges = 0;
    std::vector<TaskLengths> lengths;
    for (const Segment& segment : phase.segments) {
      TaskLengths of = WalkSegment(segment, &exchanges);
      phase_tasks += of.tasks;
      work += of.tasks * of.seconds;
      of.seconds *= tile_fill_;
      lengths.push_back(of);
    }
    double even = work / threads;
    double waves = std::ceil(phase_tasks / threads);
    compute += even;
    busy += std::max(even, BusySeconds(lengths));
    e.tasks += static_cast<int64_t>(phase_tasks);
    double start = &phase == &s_.phases.front() ? device_.launch_s : device_.barrier_s;
    e.launch_us += (start + (device_.task_s + exchanges * device_.exchange_s) * waves) * 1e6;
  }
  CountDistinct(&e);
  e.compute_us = compute * 1e6;
  e.product_us = products_ / threads * 1e6;
  e.tiling_loss_us = (busy - compute) * 1e6;
  SetMemoryTimes(&e);
  e.stall_us = (1 - device_.overlap) * std::min(e.compute_us, e.memory_us);
  OnChipNeed need = NeedOnChip(s_, device_);
  e.on_chip_bytes = need.staged;
  if (device_.explicit_memory) {
    e.on_chip_bytes = need.ByLevel(device_).at(device_.staged_level);
  } else {
    // Scratch beyond the private cache slows every pass over it.
    double over = static_cast<double>(e.on_chip_bytes) /
                  static_cast<double>(std::max<int64_t>(device_.OnChipBytes(), 1));
    if (over > 1) e.stall_us += e.compute_us * 0.15 * std::min(over - 1, 4.0);
  }
  e.time_us = std::max(e.compute_us, e.memory_us) + e.stall_us + e.launch_us + e.tiling_loss_us;
  e.flops = flops_;
  e.waves = static_cast<double>(e.tasks) / threads;
  return e;
}

Estimator::TaskLengths Estimator::WalkSegment(const Segment& segment, double* exchanges) {
  TaskLengths out{.tasks = 1, .seconds = 0};
  tile_fill_ = 1;
  window_.clear();
  std::map<DimId, double> tiles;
  halos_.clear();
  blocks_ = WindowsOfBlocks(s_.dims, segment.grid, segment.halos);
  for (const BlockWindows& w : blocks_) window_.push_back(w.average);
  for (const GridDim& g : segment.grid) {
    const BlockWindows& w = blocks_[static_cast<size_t>(g.dim)];
    out.tasks *= w.blocks;
    tiles[g.dim] = w.blocks;
    tile_fill_ *= w.average > 0 ? static_cast<double>(w.longest()) / w.average : 1;
  }
  for (const Halo& h : segment.halos) halos_.push_back(h.dim);
  slice_window_ = window_;
  slice_bytes_.clear();
  std::map<BufferId, int> stages_at;
  for (const Stage& stage : StagesOf(segment)) {
    window_ = slice_window_;
    grid_tiles_ = tiles;
    double times = 1;
    for (const GridDim& loop : stage.loops) {
      const double trips = Narrow(loop.dim, loop.tile);
      times *= trips;
      grid_tiles_.try_emplace(loop.dim, 1.0).first->second *= trips;
    }
    block_window_ = window_;
    seconds_ = 0;
    product_seconds_ = 0;
    fetched_bytes_ = 0;
    exchanged_bytes_ = 0;
    exchanges_ = 0;
    touched_.clear();
    Walk(*stage.body, 1);
    out.seconds += times * seconds_;
    block_traffic_ += out.tasks * times * (BlockBytes() + fetched_bytes_);
    exchange_traffic_ += out.tasks * times * exchanged_bytes_;
    products_ += out.tasks * times * product_seconds_;
    *exchanges = std::max(*exchanges, times * exchanges_);
    for (const auto& [memory, bytes] : touched_) ++stages_at[memory];
  }
  KeepNear(stages_at, out.tasks);
  return out;
}

void Estimator::KeepNear(const std::map<BufferId, int>& stages_at, double tasks) {
  double slices = 0;
  double whole = 0;
  for (const auto& [memory, stages] : stages_at) {
    if (stages < 2 || s_.buffer(memory).level != Level::kWorkspace) continue;
    slices += slice_bytes_.at(memory);
    whole += 2 * distinct_.at(memory);
  }
  const double at_work = slices * std::min(tasks, static_cast<double>(device_.threads));
  if (at_work <= Resident()) near_bytes_ += whole;
}

double Estimator::Narrow(DimId d, int64_t tile) {
  double& w = window_[static_cast<size_t>(d)];
  double trips = std::ceil(w / static_cast<double>(tile) - 1e-9);
  if (trips >= 1) w /= trips;
  return trips;
}

double Estimator::Resident() const {
  return static_cast<double>(device_.SharedLevel().bytes) * kResidentPart;
}

double Estimator::BusySeconds(std::vector<TaskLengths> segments) const {
  if (segments.size() == 1) {
    return std::ceil(segments[0].tasks / device_.threads) * segments[0].seconds;
  }
  double whole = 0;
  for (TaskLengths& s : segments) {
    double waves = std::floor(s.tasks / device_.threads);
    whole += waves * s.seconds;
    s.tasks -= waves * device_.threads;
  }
  std::stable_sort(segments.begin(), segments.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  std::priority_queue<double, std::vector<double>, std::greater<>> units;
  for (int i = 0; i < device_.threads; ++i) units.push(0);
  double last = 0;
  for (const TaskLengths& s : segments) {
    for (double i = 0; i < s.tasks; ++i) {
      double end = units.top() + s.seconds;
      units.pop();
      units.push(end);
      last = std::max(last, end);
    }
  }
  return whole + last;
}

void Estimator::Walk(const Block& block, double times) {
  for (const Stmt& stmt : block) {
    if (const auto* loop = std::get_if<LoopStmt>(&stmt.node)) {
      double& w = window_[static_cast<size_t>(loop->dim)];
      double saved = w;
      double length =
          loop->end >= 0 ? std::min(w, static_cast<double>(loop->end - loop->begin)) : w;
      double trips = std::ceil(length / static_cast<double>(loop->tile) - 1e-9);
      if (trips < 1) continue;
      w = length / trips;
      Walk(loop->body, times * trips);
      w = saved;
    } else if (const auto* branch = std::get_if<IfStmt>(&stmt.node)) {
      Walk(branch->body, times * ShareOf(*branch));
    } else if (const auto* each = std::get_if<EachStmt>(&stmt.node)) {
      Add(*each, times);
    } else if (const auto* mma = std::get_if<MmaStmt>(&stmt.node)) {
      Add(*mma, times);
    } else if (const auto* copy = std::get_if<CopyStmt>(&stmt.node)) {
      Add(*copy, times);
    } else if (const auto* merge = std::get_if<MergeStmt>(&stmt.node)) {
      double points = 1;
      for (DimId d : merge->dims) points *= window(d);
      seconds_ += times * points * 4 / device_.scalar_ops_per_s;
    } else if (const auto* call = std::get_if<CallStmt>(&stmt.node)) {
      seconds_ += times * OpaqueSeconds(s_, *call, window_, device_);
      for (const auto* list : {&call->inputs, &call->outputs}) {
        for (BufferId b : *list) TouchPart(b);
      }
    }
  }
}

void Estimator::TouchPart(BufferId id) {
  const Buffer& b = s_.buffer(id);
  const auto bytes = static_cast<double>(StoredBytes(b));
  const BufferId memory = s_.MemoryOf(id);
  touched_[memory] = std::max(touched_[memory], bytes / TotalTiles());
  distinct_[memory] = std::max(distinct_[memory], bytes);
  slice_bytes_[memory] = std::max(slice_bytes_[memory], bytes / TotalTiles());
}

double Estimator::ShareOf(const IfStmt& branch) const {
  std::set<DimId> dims;
  for (const IndexExpr& e : branch.somewhere) {
    for (const IndexExpr::Term& t : e.terms()) dims.insert(t.axis);
  }
  if (branch.first >= 0) dims.insert(branch.first);
  constexpr size_t kMostDims = 3;
  if (dims.size() > kMostDims) return 1;
  std::map<DimId, double> begin;
  double tried = 0;
  double held = 0;
  CountWindows(branch, {dims.begin(), dims.end()}, &begin, &tried, &held);
  return tried > 0 ? held / tried : 1;
}

void Estimator::CountWindows(const IfStmt& branch, std::vector<DimId> open,
                             std::map<DimId, double>* begin, double* tried, double* held) const {
  if (!open.empty()) {
    DimId d = open.back();
    open.pop_back();
    double extent = extents_[static_cast<size_t>(d)];
    double places = std::ceil(extent / std::max(window(d), 1e-9) - 1e-9);
    double step = std::max(1.0, places / 16);
    for (double at = 0; at < places; at += step) {
      (*begin)[d] = std::floor(at) * window(d);
      CountWindows(branch, open, begin, tried, held);
    }
    return;
  }
  *tried += 1;
  bool holds = std::all_of(branch.somewhere.begin(), branch.somewhere.end(), [&](const auto& e) {
    auto largest = static_cast<double>(e.constant());
    for (const IndexExpr::Term& t : e.terms()) {
      double at = begin->at(t.axis) + (t.coefficient > 0 ? window(t.axis) - 1 : 0);
      largest += static_cast<double>(t.coefficient) * at;
    }
    return largest >= 0;
  });
  const bool first = branch.first >= 0 && begin->at(branch.first) == 0;
  *held += holds || first ? 1 : 0;
}

int64_t Estimator::StrideAlong(const Access& a, DimId d) const {
  if (!Names(a.index, d)) return 0;
  Dims windows;
  windows.reserve(window_.size());
  for (double length : window_) windows.push_back(static_cast<int64_t>(length));
  return fusion::StrideAlong(s_, a, windows, d);
}

double Estimator::CostOf(const ElementOp& compute) const {
  return GetScalarInfo(compute.op).cost * device_.scalar_ops_per_s /
         device_.Rates(compute.type).scalar_ops_per_s;
}

double Estimator::CostOf(const EachStmt& each, const Access& access, DimId vector) const {
  const ElementCosts& costs = device_.costs;
  if (vector < 0) return 0.1;
  const bool scattered =
      std::any_of(access.index.begin(), access.index.end(), [&](const IndexExpr& e) {
        return e.indirect() >= 0 && MovesAlong(each, e.indirect(), vector);
      });
  const int64_t stride = StrideAlong(access, vector);
  if (scattered || stride > 1 || stride < 0) return costs.strided;
  if (stride == 0) return 0.1;
  const bool acc = s_.buffer(access.buffer).level == Level::kAcc;
  return acc ? costs.accumulator : costs.contiguous;
}

void Estimator::AddPlaced(const EachStmt& each, double times) {
  const DimId vector = each.dims.back();
  const double along = std::max(window(vector), 1e-9);
  const double fill = std::ceil(along / lanes_ - 1e-9) * lanes_ / along;
  double points = 1;
  double share = 1;
  for (DimId d : each.dims) {
    if (!each.Places(d)) {
      points *= window(d);
    } else {
      share *= window(d) / std::max(extents_[static_cast<size_t>(d)], 1.0);
    }
  }
  const bool scattered = MovesAlong(each, each.place, vector);
  double finding = kPlaceCost;
  double going = 1;  // the merge
  bool found = false;
  for (const ElementOp& op : each.ops) {
    double& cost = found ? going : finding;
    if (op.kind == ElementOp::kCompute) cost += CostOf(op);
    if (op.kind == ElementOp::kLoad) cost += CostOf(each, op.access[0], vector);
    if (op.kind == ElementOp::kReduce) {
      const bool alone = scattered || StrideAlong(op.access[0], vector) != 1;
      going += 2 * (alone ? device_.costs.strided : device_.costs.contiguous);
    }
    for (const Access& a : op.access) TouchIn(each, a);
    found |= op.result == each.place;
  }
  const double finds = scattered ? points * fill : points / along * lanes_;
  seconds_ += times * (finds * finding + points * share * going * fill) / device_.scalar_ops_per_s;
  CountRecompute(each);
}

void Estimator::Add(const EachStmt& each, double times) {
  if (each.IsPlaced()) return AddPlaced(each, times);
  double points = 1;
  for (DimId d : each.dims) points *= window(d);
  DimId vector = each.dims.empty() ? -1 : each.dims.back();
  double along = vector >= 0 ? std::max(window(vector), 1e-9) : 1;
  // Lanes that hold nothing still cost.
  double fill = std::ceil(along / lanes_ - 1e-9) * lanes_ / along;
  double cost = 0;
  double folds = 0;
  for (const ElementOp& op : each.ops) {
    switch (op.kind) {
      case ElementOp::kCompute:
        cost += CostOf(op);
        break;
      case ElementOp::kLoad:
      case ElementOp::kStore:
        cost += CostOf(each, op.access[0], vector);
        TouchIn(each, op.access[0]);
        break;
      case ElementOp::kReduce: {
        cost += 1;
        bool horizontal = vector >= 0 && StrideAlong(op.access[0], vector) == 0;
        if (horizontal) folds += points / along * device_.costs.fold * lanes_;
        break;
      }
    }
  }
  CountResultExchange(each, times);
  seconds_ += times * (points * cost * fill + folds) / device_.scalar_ops_per_s;
  flops_ += 2 * Contractions(each) * points * times * TotalTiles();
  CountRecompute(each);
}

int Estimator::Contractions(const EachStmt& each) {
  auto defining = [&](int value) -> const ElementOp* {
    for (const ElementOp& op : each.ops) {
      if (op.kind != ElementOp::kStore && op.kind != ElementOp::kReduce && op.result == value) {
        return &op;
      }
    }
    return nullptr;
  };
  int count = 0;
  for (const ElementOp& op : each.ops) {
    if (op.kind != ElementOp::kReduce || op.monoid != "sum") continue;
    const ElementOp* value = defining(op.args[0]);
    while (value != nullptr && value->kind == ElementOp::kCompute && value->op == ScalarOp::kCast) {
      value = defining(value->args[0]);
    }
    bool product = value != nullptr && value->kind == ElementOp::kCompute &&
                   value->op == ScalarOp::kMul && value->args[0] != value->args[1];
    if (product) ++count;
  }
  return count;
}

void Estimator::CountRecompute(const EachStmt& each) {
  double repeats = 1;
  for (const auto& [d, tiles] : grid_tiles_) {
    if (!Contains(each.dims, d)) repeats *= std::max(tiles, 1.0);
  }
  for (DimId d : halos_) {
    if (!Contains(each.dims, d)) continue;
    repeats *=
        blocks_[static_cast<size_t>(d)].average / std::max(extents_[static_cast<size_t>(d)], 1.0);
  }
  if (repeats <= 1) return;
  bool stores_result = false;
  for (const ElementOp& op : each.ops) {
    stores_result |= op.kind == ElementOp::kStore && !s_.buffer(op.access[0].buffer).IsLocal();
  }
  if (stores_result) return;
  for (const ElementOp& op : each.ops) {
    if (op.kind != ElementOp::kLoad) continue;
    const Buffer& b = s_.buffer(op.access[0].buffer);
    if (b.level != Level::kGlobal || b.kind != ParamKind::kInput) continue;
    recompute_bytes_ += Footprint(op.access[0], extents_) * (repeats - 1);
  }
}

void Estimator::Add(const MmaStmt& mma, double times) {
  double rows = mma.m >= 0 ? window(mma.m) : 1;
  double columns = window(mma.n);
  double depth = 1;
  for (DimId d : mma.over) depth *= window(d);
  double padded = std::ceil(columns / lanes_ - 1e-9) * lanes_;
  double flops = 2 * rows * columns * depth;
  double per_row = flops / std::max(columns, 1e-9) * padded;
  const DType type = RateType({s_.buffer(mma.a.buffer).dtype, s_.buffer(mma.b.buffer).dtype},
                              mma.flushes, device_);
  double seconds = times * per_row /
                   (device_.Rates(type).flops_per_s * device_.product_efficiency *
                    device_.BlockRate(type, rows, padded));
  seconds += times * Turns(mma) * device_.turn_s;
  seconds_ += seconds;
  product_seconds_ += seconds;
  flops_ += times * flops * TotalTiles();
  for (const Access* operand : {&mma.a, &mma.b}) Fetch(*operand, times);
  Touch(mma.c);
}

double Estimator::Turns(const MmaStmt& mma) const {
  std::vector<SumDim> dims;
  for (DimId d : mma.over) {
    dims.push_back({d, window(d), StrideAlong(mma.a, d), StrideAlong(mma.b, d)});
  }
  return JumpsOfSum(dims);
}

void Estimator::Fetch(const Access& operand, double times) {
  if (!device_.explicit_memory) return Touch(operand);
  const Buffer& b = s_.buffer(operand.buffer);
  if (!b.IsLocal()) {
    double& whole = distinct_[operand.buffer];
    whole = std::max(whole, Footprint(operand, extents_));
    fetched_bytes_ += times * Footprint(operand, window_);
  } else if (!device_.exchange_level.empty()) {
    exchanged_bytes_ += 2 * times * TileBytes(b);
    exchanges_ += times;
  }
}

double Estimator::TileBytes(const Buffer& b) const {
  auto bytes = static_cast<double>(DTypeBytes(b.dtype));
  for (DimId d : b.dims) bytes *= window(d);
  return bytes;
}

void Estimator::CountResultExchange(const EachStmt& each, double times) {
  if (device_.exchange_level.empty()) return;
  double bytes = 0;
  bool on_the_way = true;
  for (const ElementOp& op : each.ops) {
    bool acc = op.kind == ElementOp::kLoad && s_.buffer(op.access[0].buffer).level == Level::kAcc;
    if (acc) bytes += TileBytes(s_.buffer(op.access[0].buffer));
    bool converts =
        op.kind == ElementOp::kCompute && (op.op == ScalarOp::kCast || op.op == ScalarOp::kMax ||
                                           op.op == ScalarOp::kMin || op.op == ScalarOp::kConst);
    bool leaves = op.kind == ElementOp::kStore && !s_.buffer(op.access[0].buffer).IsLocal();
    on_the_way = on_the_way && (acc || converts || leaves);
  }
  if (bytes == 0 || on_the_way) return;
  exchanged_bytes_ += 2 * times * bytes;
  exchanges_ += times;
}

double Estimator::TotalTiles() const {
  double tiles = 1;
  for (const auto& [d, n] : grid_tiles_) tiles *= n;
  return tiles;
}

void Estimator::Add(const CopyStmt& copy, double times) {
  double points = 1;
  for (DimId d : copy.dims) points *= window(d);
  DimId vector = copy.dims.empty() ? -1 : copy.dims.back();
  bool contiguous = vector >= 0 && StrideAlong(copy.source, vector) == 1;
  bool blocked = s_.buffer(copy.target.buffer).layout.blocked >= 0;
  double cost = !contiguous                           ? device_.costs.strided
                : blocked && !device_.explicit_memory ? kBlockedElement
                                                      : 2 * device_.costs.contiguous;
  seconds_ += times * points * cost / device_.scalar_ops_per_s;
  Touch(copy.source);
  Touch(copy.target);
}

double Estimator::Footprint(const Access& a, const std::vector<double>& lengths,
                            double places) const {
  const Buffer& b = s_.buffer(a.buffer);
  double elements = 1;
  for (size_t i = 0; i < a.index.size(); ++i) {
    double span = 1;
    for (const IndexExpr::Term& t : a.index[i].terms()) {
      double length = lengths[static_cast<size_t>(t.axis)];
      for (const Guard& g : a.guards) {
        if (g.axis == t.axis) length = std::min(length, static_cast<double>(g.end - g.begin));
      }
      span += std::fabs(static_cast<double>(t.coefficient)) * std::max(length - 1, 0.0);
    }
    if (a.index[i].indirect() >= 0) span = places;
    elements *= std::min(span, static_cast<double>(b.shape[i]));
  }
  for (const ScheduleDim& d : s_.dims) {
    if (d.extent == 0) return 0;
  }
  return elements * static_cast<double>(DTypeBytes(b.dtype));
}

void Estimator::TouchIn(const EachStmt& each, const Access& a) {
  std::set<DimId> along;
  for (const IndexExpr& e : a.index) {
    if (e.indirect() < 0) continue;
    for (DimId d : each.dims) {
      if (MovesAlong(each, e.indirect(), d)) along.insert(d);
    }
  }
  Touch(a, along);
}

void Estimator::Touch(const Access& a, const std::set<DimId>& along) {
  const Buffer& b = s_.buffer(a.buffer);
  if (b.IsLocal()) return;
  auto bytes = [&](const std::vector<double>& lengths) {
    double places = 1;
    for (DimId d : along) places *= lengths[static_cast<size_t>(d)];
    return Footprint(a, lengths, places);
  };
  BufferId memory = s_.MemoryOf(a.buffer);
  double& block = touched_[memory];
  block = std::max(block, bytes(block_window_));
  double& whole = distinct_[memory];
  whole = std::max(whole, bytes(extents_));
  double& slice = slice_bytes_[memory];
  slice = std::max(slice, bytes(slice_window_));
}

double Estimator::BlockBytes() const {
  double bytes = 0;
  for (const auto& [b, n] : touched_) bytes += n;
  return bytes;
}

void Estimator::CountDistinct(Estimate* e) const {
  for (const auto& [id, bytes] : distinct_) {
    const Buffer& b = s_.buffer(id);
    auto n = static_cast<int64_t>(bytes);
    if (b.level == Level::kGlobal && b.kind == ParamKind::kWeight) {
      e->weight_bytes += n;
    } else {
      // Workspace is written and read again.
      e->activation_bytes += b.level == Level::kWorkspace ? 2 * n : n;
    }
  }
  e->recompute_bytes = static_cast<int64_t>(recompute_bytes_);
}

double Estimator::ActiveUnits(const Estimate& e) const {
  return std::max(1.0,
                  std::min(static_cast<double>(device_.threads), static_cast<double>(e.tasks)));
}

// Activations were written by the kernel before, unless there is none, and lie in the private
// caches if all data of the kernel fit there. Which unit gets which block is not known, so one of n
// units finds an n-th of them. Weights come from farther away at every run.
double Estimator::LocalBytes(const Estimate& e, double bytes) const {
  if (device_.explicit_memory) return 0;
  const double units = ActiveUnits(e);
  const auto weights = static_cast<double>(e.weight_bytes);
  const double fits = units * static_cast<double>(device_.OnChipBytes());
  if (static_cast<double>(e.activation_bytes) + weights > fits) return 0;
  return std::max(0.0, bytes - weights) / units;
}

double Estimator::RateOf(const MemoryLevel& level, const Estimate& e) const {
  return std::min(level.total_bytes_per_s, level.bytes_per_s * ActiveUnits(e));
}

void Estimator::SetMemoryTimes(Estimate* e) const {
  const MemoryLevel& shared = device_.SharedLevel();
  const MemoryLevel& memory = device_.levels.back();
  double resident = Resident();
  auto weights = static_cast<double>(e->weight_bytes);
  double activations = static_cast<double>(e->activation_bytes) - near_bytes_;
  double far = (weights > resident ? weights : 0) + std::max(0.0, activations - 2 * resident);
  // The first fetch may come from memory; whatever blocks fetch again comes from the shared
  // cache.
  const double near_bytes = std::max(0.0, block_traffic_ - far);
  const double local_bytes = LocalBytes(*e, near_bytes);
  double near_us = (near_bytes - local_bytes) / RateOf(shared, *e) * 1e6;
  e->local_us = local_bytes / RateOf(shared, *e) * device_.local_part * 1e6;
  double far_us = far / RateOf(memory, *e) * 1e6;
  if (exchange_traffic_ > 0) {
    near_us += exchange_traffic_ / RateOf(device_.level(device_.exchange_level), *e) * 1e6;
  }
  e->off_chip_us = far_us;
  e->memory_us = far_us + near_us + e->local_us;
}

Estimate EstimateKernel(const Schedule& schedule, const DeviceSpec& device) {
  return OfItsClass(Estimator(schedule, device).Run(), schedule, device);
}

Estimate OfItsClass(const Estimate& e, const Schedule& schedule, const DeviceSpec& device) {
  if (device.class_factors.empty()) return e;
  const std::string bound = ClassBoundOf(
      TermsOf(e, static_cast<int>(schedule.phases.size()), /*product_type=*/"", device));
  const auto of_bound = device.class_factors.lower_bound({bound, ""});
  if (of_bound == device.class_factors.end() || of_bound->first.first != bound) return e;
  const auto factor = device.class_factors.find({bound, FormOf(schedule)});
  return factor == device.class_factors.end() ? e : WithWork(e, factor->second);
}

}  // namespace fusion
