#include "core/rewrite/layouts.h"

#include <algorithm>
#include <set>
#include <vector>

#include "core/graph/program/half_precision.h"
#include "core/schedule/ir/access.h"

namespace fusion {
namespace {

class Layouts {
 public:
  Layouts(const DeviceSpec& device, Program* program)
      : lanes_(device.vector_bytes / 4),
        program_(*program),
        known_(KnownBeforeRuns(*program)),
        free_(program->values.size(), false),
        wanted_(program->values.size(), false) {}

  bool Run(const LeaveProduct& leave) {
    FindFree();
    FindWanted();
    if (leave != nullptr && Leave(leave)) FindWanted();
    bool any = false;
    for (size_t v = 0; v < wanted_.size(); ++v) {
      if (!wanted_[v] || !free_[v]) continue;
      any = true;
      Value& value = program_.values[v];
      value.order = {0};
      for (int d = 2; d < value.type.shape.rank(); ++d) value.order.push_back(d);
      value.order.push_back(static_cast<int>(kChannelDim));
    }
    return any;
  }

 private:
  // Values whose storage order may be chosen.
  void FindFree() {
    for (size_t v = 0; v < free_.size(); ++v) {
      const Value& value = program_.values[v];
      const bool stored = value.kind == TensorKind::kIntermediate && value.order.empty() &&
                          value.strides.empty() && !value.room && value.lies_in == kNoValue;
      free_[v] = stored && value.type.shape.rank() >= static_cast<int>(kImageRank) &&
                 value.type.shape.is_static();
    }
    for (ValueId v : program_.outputs) free_[static_cast<size_t>(v)] = false;
    for (const LoopOp& op : program_.ops) {
      if (op.kind == LoopOp::kLoop) continue;
      free_[static_cast<size_t>(op.output)] = false;
      for (ValueId v : op.inputs) free_[static_cast<size_t>(v)] = false;
    }
  }

  void FindWanted() {
    std::fill(wanted_.begin(), wanted_.end(), false);
    for (const LoopOp& op : program_.ops) AskFor(op);
    for (bool more = true; more;) {
      more = false;
      for (const LoopOp& op : program_.ops) more |= Spread(op);
    }
  }

  // Excludes the values of ops that `leave` excludes. True if there are any.
  bool Leave(const LeaveProduct& leave) {
    bool any = false;
    for (const LoopOp& op : program_.ops) {
      std::vector<ValueId> values = op.inputs;
      values.push_back(op.output);
      const bool moved = std::any_of(values.begin(), values.end(), [&](ValueId v) {
        return wanted_[static_cast<size_t>(v)] && free_[static_cast<size_t>(v)];
      });
      if (!moved || !leave(op)) continue;
      left_.insert(values.begin(), values.end());
      any = true;
    }
    for (ValueId v : left_) free_[static_cast<size_t>(v)] = false;
    return any;
  }

  // A product of a known operand and images wants channels innermost for both images, if there are
  // enough channels for whole vectors.
  void AskFor(const LoopOp& op) {
    if (op.kind != LoopOp::kLoop || op.inputs.size() != 2 || !op.body.reduce) return;
    const Monoid& sum = *op.body.reduce;
    if (sum.name() != "sum" || !FactorTypes(op.body.value, sum.type())) return;
    const bool first = known_[static_cast<size_t>(op.inputs[0])];
    if (first == known_[static_cast<size_t>(op.inputs[1])]) return;
    const size_t images = first ? 1 : 0;
    const LoopBody& body = op.body;
    const IndexMap& read = body.reads[images].index;
    if (read.size() < kImageRank || body.write.size() != read.size()) return;
    if (!read[kChannelDim].IsPlainAxis() || !body.write[kChannelDim].IsPlainAxis()) return;
    const int summed = read[kChannelDim].terms()[0].axis;
    const int columns = body.write[kChannelDim].terms()[0].axis;
    if (summed == columns || Names(read, columns)) return;
    if (Extent(body, columns) < lanes_) return;
    wanted_[static_cast<size_t>(op.output)] = true;
    wanted_[static_cast<size_t>(op.inputs[images])] = true;
  }

  static int64_t Extent(const LoopBody& body, int axis) {
    const Dim& extent = body.axes[static_cast<size_t>(axis)].extent;
    return extent.is_static() ? extent.value() : 0;
  }

  // An op that keeps channels where they are wants the same order for its input and output. True if
  // that changed anything.
  bool Spread(const LoopOp& op) {
    if (op.kind != LoopOp::kLoop) return false;
    const auto out = static_cast<size_t>(op.output);
    bool news = false;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const auto in = static_cast<size_t>(op.inputs[i]);
      const IndexMap& read = op.body.reads[i].index;
      const IndexMap& write = op.body.write;
      const bool alike = free_[in] && free_[out] && read.size() == write.size() &&
                         read[kChannelDim] == write[kChannelDim];
      if (!alike || wanted_[in] == wanted_[out]) continue;
      wanted_[in] = wanted_[out] = true;
      news = true;
    }
    return news;
  }

  const int64_t lanes_;
  Program& program_;
  const std::vector<bool> known_;
  std::vector<bool> free_;    // by value
  std::vector<bool> wanted_;  // channels innermost
  std::set<ValueId> left_;
};

}  // namespace

bool StoreColumnsInnermost(const DeviceSpec& device, Program* program, const LeaveProduct& leave) {
  if (device.explicit_memory || program->open_dims) return false;
  return Layouts(device, program).Run(leave);
}

}  // namespace fusion
