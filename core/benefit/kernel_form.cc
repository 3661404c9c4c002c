#include "core/benefit/kernel_form.h"

#include <algorithm>
#include <map>

#include "core/schedule/lower/product_shape.h"

namespace fusion {
namespace {

// What the statements of a block contain, those of inner blocks included.
struct Contents {
  bool opaque = false;
  bool placed = false;
  bool product = false;
  bool reduction = false;
  bool arithmetic = false;
  bool merge = false;
  bool streamed = false;  // a loop has products and reductions
  std::map<DType, double> multiplications;

  void Add(const Contents& other) {
    opaque |= other.opaque;
    placed |= other.placed;
    product |= other.product;
    reduction |= other.reduction;
    arithmetic |= other.arithmetic;
    merge |= other.merge;
    streamed |= other.streamed;
    for (const auto& [type, count] : other.multiplications) multiplications[type] += count;
  }
};

class Reader {
 public:
  Reader(const Schedule& schedule, const DeviceSpec* device)
      : schedule_(schedule), device_(device) {}

  Contents Read() const {
    Contents all;
    for (const Phase& phase : schedule_.phases) {
      for (const Segment& segment : phase.segments) all.Add(ReadBlock(segment.body));
    }
    return all;
  }

 private:
  Contents ReadBlock(const Block& block) const {
    Contents all;
    for (const Stmt& stmt : block) {
      all.Add(std::visit([&](const auto& of) { return ReadStmt(of); }, stmt.node));
    }
    return all;
  }

  Contents ReadStmt(const LoopStmt& loop) const {
    Contents out = ReadBlock(loop.body);
    out.streamed |= out.product && out.reduction;
    return out;
  }
  Contents ReadStmt(const IfStmt& branch) const { return ReadBlock(branch.body); }
  Contents ReadStmt(const EachStmt& each) const {
    Contents out{.placed = each.IsPlaced()};
    for (const ElementOp& op : each.ops) {
      out.reduction |= op.kind == ElementOp::kReduce;
      out.arithmetic |= op.kind == ElementOp::kReduce || op.kind == ElementOp::kCompute;
    }
    return out;
  }
  Contents ReadStmt(const MmaStmt& mma) const {
    Contents out{.product = true, .arithmetic = true};
    if (device_ == nullptr) return out;
    double count = ExtentOf(mma.m) * ExtentOf(mma.n);
    for (DimId d : mma.over) count *= ExtentOf(d);
    const DType type =
        RateType({schedule_.buffer(mma.a.buffer).dtype, schedule_.buffer(mma.b.buffer).dtype},
                 mma.flushes, *device_);
    out.multiplications[device_->other_types.contains(type) ? type : DType::kF32] += count;
    return out;
  }
  Contents ReadStmt(const MergeStmt& /*merge*/) const {
    return {.reduction = true, .arithmetic = true, .merge = true};
  }
  Contents ReadStmt(const CallStmt& /*call*/) const { return {.opaque = true, .arithmetic = true}; }
  Contents ReadStmt(const AllocStmt& /*alloc*/) const { return {}; }
  Contents ReadStmt(const InitStmt& /*init*/) const { return {}; }
  Contents ReadStmt(const CopyStmt& /*copy*/) const { return {}; }

  double ExtentOf(DimId d) const {
    return d < 0 ? 1 : static_cast<double>(schedule_.dim(d).extent);
  }

  const Schedule& schedule_;
  const DeviceSpec* device_;  // null: multiplications are not counted
};

}  // namespace

std::string FormOf(const Schedule& schedule) {
  const Contents all = Reader(schedule, nullptr).Read();
  if (all.opaque) return "opaque";
  if (all.placed) return "scatter";
  if (all.streamed) return "streamed product";
  if (all.product) return "product";
  if (all.merge) return "split reduction";
  if (all.reduction) return "reduction";
  return all.arithmetic ? "element-wise" : "copy";
}

std::string ProductTypeOf(const Schedule& schedule, const DeviceSpec& device) {
  const Contents all = Reader(schedule, &device).Read();
  const auto most =
      std::max_element(all.multiplications.begin(), all.multiplications.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == all.multiplications.end() ? "" : std::string(DTypeName(most->first));
}

}  // namespace fusion
