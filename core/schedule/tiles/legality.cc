#include "core/schedule/tiles/legality.h"

#include <algorithm>

#include "core/base/refusal.h"
#include "core/schedule/memory/block_windows.h"
#include "core/schedule/memory/scratch.h"

namespace fusion {
namespace {

// Walks the blocks of a schedule with the longest windows.
class NeedFinder {
 public:
  NeedFinder(const Schedule& s, const DeviceSpec& device) : s_(s), device_(device) {}

  OnChipNeed Run() {
    need_.staged = PlanScratch(s_, device_.vector_bytes, device_.alignment).bytes;
    if (!device_.explicit_memory) return need_;
    for (const Phase& phase : s_.phases) {
      for (const Segment& segment : phase.segments) {
        window_ = LongestWindows(s_.dims, segment.grid, segment.halos);
        Walk(segment.body);
      }
    }
    return need_;
  }

 private:
  void Narrow(DimId d, int64_t tile) {
    int64_t& w = window_[static_cast<size_t>(d)];
    w = std::min(w, tile);
  }
  int64_t Window(DimId d) const { return std::max<int64_t>(window_[static_cast<size_t>(d)], 1); }

  void Walk(const Block& block) {
    int64_t accumulators = 0;
    for (const Stmt& stmt : block) {
      if (const auto* loop = std::get_if<LoopStmt>(&stmt.node)) {
        int64_t saved = window_[static_cast<size_t>(loop->dim)];
        Narrow(loop->dim, loop->tile);
        Walk(loop->body);
        window_[static_cast<size_t>(loop->dim)] = saved;
      } else if (const auto* branch = std::get_if<IfStmt>(&stmt.node)) {
        Walk(branch->body);
      } else if (const auto* alloc = std::get_if<AllocStmt>(&stmt.node)) {
        const Buffer& b = s_.buffer(alloc->buffer);
        if (b.level != Level::kAcc) continue;
        int64_t bytes = DTypeBytes(b.dtype);
        for (DimId d : b.dims) bytes *= Window(d);
        accumulators += bytes;
      } else if (const auto* mma = std::get_if<MmaStmt>(&stmt.node)) {
        Add(*mma);
      }
    }
    need_.accumulators = std::max(need_.accumulators, accumulators);
  }

  void Add(const MmaStmt& mma) {
    int64_t depth = 1;
    for (DimId d : mma.over) depth = std::min<int64_t>(depth * Window(d), device_.operand_slice);
    auto slice = [&](const Access& operand, int64_t length) {
      const Buffer& b = s_.buffer(operand.buffer);
      bool in_place = b.IsLocal() && device_.exchange_level.empty();
      return in_place ? 0 : length * depth * DTypeBytes(b.dtype) * device_.operand_stages;
    };
    int64_t bytes = slice(mma.a, mma.m >= 0 ? Window(mma.m) : 1) + slice(mma.b, Window(mma.n));
    need_.operands = std::max(need_.operands, bytes);
  }

  const Schedule& s_;
  const DeviceSpec& device_;
  Dims window_;
  OnChipNeed need_;
};

}  // namespace

std::map<std::string, int64_t> OnChipNeed::ByLevel(const DeviceSpec& device) const {
  std::map<std::string, int64_t> bytes;
  bytes[device.staged_level] += staged;
  bytes[device.operand_level] += operands;
  bytes[device.accumulator_level] += accumulators;
  return bytes;
}

OnChipNeed NeedOnChip(const Schedule& schedule, const DeviceSpec& device) {
  return NeedFinder(schedule, device).Run();
}

std::string Misfit(const OnChipNeed& need, const DeviceSpec& device) {
  if (!device.explicit_memory) return "";
  for (const auto& [name, bytes] : need.ByLevel(device)) {
    int64_t usable = device.level(name).UsableBytes();
    if (bytes > usable) {
      return Refuse(RefusalCode::kOnChip, "the tiles of a block take ", bytes, " B, ", name,
                    " has ", usable, " B")
          .ToString();
    }
  }
  return "";
}

}  // namespace fusion
