#include "core/plan/outline/layer_sections.h"

#include <algorithm>
#include <optional>

namespace fusion {
namespace {

// Loop ops that are examined behind a product for a residual. Chosen: a bias, a dropout and a norm
// of ten ops, and their casts.
constexpr size_t kMostBehind = 64;

/// The loop ops of a program with the products among them, and walks from op to op.
class Layers {
 public:
  explicit Layers(const Program& program)
      : program_(program),
        known_(KnownBeforeRuns(program)),
        readers_(program.ops.size()),
        product_(program.ops.size(), false),
        depth_(program.ops.size(), 0),
        owner_(program.ops.size(), kNoLoop),
        section_(program.ops.size(), 0),
        seen_(program.ops.size(), 0) {
    for (size_t l = 0; l < program.ops.size(); ++l) Add(static_cast<LoopId>(l));
  }

  /// False: there is no attention, or it took too many steps.
  bool Classify() {
    for (const LoopId l : products_) FindAttention(l);
    if (cores_.empty()) return false;
    for (const auto& [scores, sum] : cores_) FindProjections(scores, sum);
    for (const auto& [scores, sum] : cores_) FindOutputProjection(sum);
    for (const LoopId l : products_) FindFeedForward(l);
    return steps_ <= kMaxSectionSteps;
  }

  std::vector<NodeSections> ByNode(size_t nodes) const {
    std::vector<NodeSections> out(nodes);
    for (size_t l = 0; l < program_.ops.size(); ++l) {
      const NodeId node = program_.ops[l].origin;
      if (node == kNoNode || owner_[l] == kNoLoop) continue;
      NodeSections& of = out[static_cast<size_t>(node)];
      (product_[l] ? of.products : of.others) |= section_[static_cast<size_t>(owner_[l])];
    }
    return out;
  }

 private:
  bool IsProduct(LoopId l) const { return product_[static_cast<size_t>(l)]; }
  int Depth(LoopId l) const { return depth_[static_cast<size_t>(l)]; }
  SectionSet& SectionOf(LoopId l) { return section_[static_cast<size_t>(l)]; }
  LoopId Producer(ValueId v) const { return program_.value(v).producer; }
  bool Known(ValueId v) const { return known_[static_cast<size_t>(v)]; }

  void Add(LoopId l) {
    const LoopOp& op = program_.op(l);
    const auto at = static_cast<size_t>(l);
    for (const ValueId v : op.inputs) {
      const LoopId from = Producer(v);
      if (from == kNoLoop) continue;
      readers_[static_cast<size_t>(from)].push_back(l);
      if (owner_[static_cast<size_t>(from)] == kNoLoop) continue;
      if (owner_[at] == kNoLoop || Depth(from) > depth_[at]) {
        owner_[at] = owner_[static_cast<size_t>(from)];
        depth_[at] = Depth(from);
      }
    }
    // What weights alone decide is computed once, before all runs.
    if (!MultipliesAndAdds(op) || Known(op.output)) return;
    product_[at] = true;
    owner_[at] = l;
    ++depth_[at];
    products_.push_back(l);
  }

  // --- what a loop op computes

  // The inputs that an expression reads, as bits; inputs from the 64th on share one.
  static uint64_t InputsOf(const Expr& e) {
    uint64_t inputs = 0;
    e.VisitOnce([&](const Expr& part) {
      if (part.op() == ScalarOp::kInput) inputs |= uint64_t{1} << std::min(part.index(), 63);
    });
    return inputs;
  }

  static bool Uses(const Expr& e, ScalarOp wanted) {
    bool uses = false;
    e.VisitOnce([&](const Expr& part) { uses = uses || part.op() == wanted; });
    return uses;
  }

  // The axes along which the elements that are read of these inputs differ.
  static std::vector<bool> AxesOf(const LoopBody& body, uint64_t inputs) {
    std::vector<bool> axes(body.axes.size(), false);
    for (size_t i = 0; i < body.reads.size() && i < 63; ++i) {
      if ((inputs >> i & 1) == 0) continue;
      for (const IndexExpr& index : body.reads[i].index) {
        for (const IndexExpr::Term& term : index.terms()) {
          axes[static_cast<size_t>(term.axis)] = true;
        }
      }
    }
    return axes;
  }

  // c[m,n] = sum over k of a[m,k] * b[k,n], whatever else is done to the factors: both depend on k,
  // and one of them on an axis of the result that the other does not depend on.
  static bool MultipliesAndAdds(const LoopOp& op) {
    if (op.kind != LoopOp::kLoop || !Sums(op)) return false;
    const LoopBody& body = op.body;
    bool found = false;
    body.value.VisitOnce([&](const Expr& part) {
      if (found || part.op() != ScalarOp::kMul) return;
      const uint64_t left = InputsOf(part.arg(0));
      const uint64_t right = InputsOf(part.arg(1));
      if (left == 0 || right == 0 || (left & right) != 0) return;
      const std::vector<bool> of_left = AxesOf(body, left);
      const std::vector<bool> of_right = AxesOf(body, right);
      std::vector<bool> reduced(body.axes.size(), false);
      for (const int axis : body.ReducedAxes()) reduced[static_cast<size_t>(axis)] = true;
      bool along = false;
      bool apart = false;
      for (size_t a = 0; a < body.axes.size(); ++a) {
        if (body.axes[a].extent == Dim(1)) continue;
        along = along || (reduced[a] && of_left[a] && of_right[a]);
        apart = apart || (!reduced[a] && of_left[a] != of_right[a]);
      }
      found = along && apart;
    });
    return found;
  }

  static bool Sums(const LoopOp& op) { return op.body.reduce && op.body.reduce->name() == "sum"; }

  // More than sums, differences, copies and products with something known before the run.
  bool IsActivation(const LoopOp& op) const {
    if (op.kind != LoopOp::kLoop) return false;
    bool other = false;
    op.body.value.VisitOnce([&](const Expr& part) {
      switch (part.op()) {
        case ScalarOp::kInput:
        case ScalarOp::kConst:
        case ScalarOp::kAdd:
        case ScalarOp::kSub:
        case ScalarOp::kNeg:
        case ScalarOp::kCast:
          return;
        case ScalarOp::kMul:
          other = other || (Varies(op, part.arg(0)) && Varies(op, part.arg(1)));
          return;
        case ScalarOp::kDiv:
          other = other || Varies(op, part.arg(1));
          return;
        default:
          other = true;
      }
    });
    return other;
  }

  bool Varies(const LoopOp& op, const Expr& e) const {
    bool varies = false;
    e.VisitOnce([&](const Expr& part) {
      if (part.op() != ScalarOp::kInput) return;
      varies = varies || !Known(op.inputs[static_cast<size_t>(part.index())]);
    });
    return varies;
  }

  // --- walks

  /// Every loop op behind the inputs of `from`, ascending, through ops that are no products. Of
  /// depth `depth` only, unless it is nullopt. Products end a walk and are part of it.
  std::vector<LoopId> Behind(LoopId from, std::optional<int> depth) {
    std::vector<LoopId> found;
    std::vector<LoopId> open = {from};
    ++mark_;
    while (!open.empty() && steps_ <= kMaxSectionSteps) {
      const LoopId l = open.back();
      open.pop_back();
      for (const ValueId v : program_.op(l).inputs) {
        const LoopId next = Producer(v);
        if (next == kNoLoop || !Visit(next) || (depth.has_value() && Depth(next) != *depth)) {
          continue;
        }
        found.push_back(next);
        if (!IsProduct(next)) open.push_back(next);
      }
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  /// Loop ops that read the result of `from`, through ops that are no products, at most `most`.
  /// Products end a walk and are part of it.
  std::vector<LoopId> Readers(LoopId from, std::optional<int> depth, size_t most) {
    std::vector<LoopId> found;
    std::vector<LoopId> open = {from};
    ++mark_;
    while (!open.empty() && found.size() < most && steps_ <= kMaxSectionSteps) {
      const LoopId l = open.back();
      open.pop_back();
      for (const LoopId next : readers_[static_cast<size_t>(l)]) {
        if (!Visit(next)) continue;
        if (depth.has_value() && !IsProduct(next) && Depth(next) != *depth) continue;
        found.push_back(next);
        if (!IsProduct(next)) open.push_back(next);
      }
    }
    return found;
  }

  bool Visit(LoopId l) {
    ++steps_;
    int& seen = seen_[static_cast<size_t>(l)];
    if (seen == mark_) return false;
    seen = mark_;
    return true;
  }

  // --- sections

  /// How far the way from a product to a loop op has come.
  enum class Stage : uint8_t { kNone, kProduct, kActivated, kSummed };

  Stage StageBefore(LoopId l, const std::vector<std::pair<LoopId, Stage>>& stages) {
    Stage stage = Stage::kNone;
    for (const ValueId v : program_.op(l).inputs) {
      const LoopId from = Producer(v);
      auto known = std::lower_bound(stages.begin(), stages.end(), std::pair(from, Stage::kNone));
      if (known != stages.end() && known->first == from) stage = std::max(stage, known->second);
      ++steps_;
    }
    return stage;
  }

  /// The largest stage that an input of `to` has on the way from `from`. `between`: Behind(to).
  /// `is_activation(op)` and, after it, a sum advance the stage.
  template <typename IsActivation>
  Stage StageAt(LoopId to, LoopId from, const std::vector<LoopId>& between,
                const IsActivation& is_activation) {
    std::vector<std::pair<LoopId, Stage>> stages;
    for (const LoopId l : between) {
      if (l == from) stages.emplace_back(l, Stage::kProduct);
      if (IsProduct(l)) continue;
      Stage stage = StageBefore(l, stages);
      if (stage == Stage::kNone) continue;
      if (stage == Stage::kProduct && is_activation(program_.op(l))) stage = Stage::kActivated;
      if (stage == Stage::kActivated && Sums(program_.op(l))) stage = Stage::kSummed;
      stages.emplace_back(l, stage);
    }
    return StageBefore(to, stages);
  }

  // Is `sum` the second product of an attention?
  void FindAttention(LoopId sum) {
    if (Depth(sum) < 2) return;
    const std::vector<LoopId> between = Behind(sum, Depth(sum) - 1);
    for (const LoopId scores : between) {
      if (!IsProduct(scores) || !BothVary(scores)) continue;
      const Stage stage = StageAt(sum, scores, between, [](const LoopOp& op) {
        return op.kind == LoopOp::kLoop && Uses(op.body.value, ScalarOp::kExp);
      });
      if (stage != Stage::kSummed) continue;
      cores_.emplace_back(scores, sum);
      SectionOf(scores) = kAttentionSection;
      SectionOf(sum) = kAttentionSection;
    }
  }

  bool BothVary(LoopId l) const {
    const std::vector<ValueId>& inputs = program_.op(l).inputs;
    return std::none_of(inputs.begin(), inputs.end(), [&](ValueId v) { return Known(v); });
  }

  void FindProjections(LoopId scores, LoopId sum) {
    for (const LoopId of : {scores, sum}) {
      for (const LoopId l : Behind(of, std::nullopt)) {
        if (IsProduct(l) && SectionOf(l) == 0) SectionOf(l) = kQkvSection;
      }
    }
  }

  void FindOutputProjection(LoopId sum) {
    for (const LoopId l : Readers(sum, Depth(sum), program_.ops.size())) {
      if (IsProduct(l) && SectionOf(l) == 0 && !BothVary(l)) SectionOf(l) = kPostAttentionSection;
    }
  }

  // Is `second` the second product of a feed-forward part?
  void FindFeedForward(LoopId second) {
    if (SectionOf(second) != 0 || Depth(second) < 2) return;
    const std::vector<LoopId> between = Behind(second, Depth(second) - 1);
    for (const LoopId first : between) {
      if (!IsProduct(first) || SectionOf(first) != 0) continue;
      const Stage stage =
          StageAt(second, first, between, [&](const LoopOp& op) { return IsActivation(op); });
      if (stage < Stage::kActivated || !HasResidual(first, second)) continue;
      SectionOf(first) = kFeedForwardSection;
      SectionOf(second) = kFeedForwardSection;
    }
  }

  // Does the result of `second` meet a value that `first` was computed from?
  bool HasResidual(LoopId first, LoopId second) {
    const std::vector<LoopId> before = Behind(first, Depth(first) - 1);
    std::vector<LoopId> after = Readers(second, std::nullopt, kMostBehind);
    after.push_back(second);
    std::sort(after.begin(), after.end());
    for (const LoopId l : after) {
      if (IsProduct(l)) continue;
      for (const ValueId v : program_.op(l).inputs) {
        const LoopId from = Producer(v);
        if (from == kNoLoop) {
          if (program_.value(v).kind == TensorKind::kInput && Depth(first) == 1) return true;
        } else if (std::binary_search(before.begin(), before.end(), from)) {
          return true;
        }
      }
    }
    return false;
  }

  const Program& program_;
  const std::vector<bool> known_;
  std::vector<std::vector<LoopId>> readers_;
  std::vector<bool> product_;
  std::vector<LoopId> products_;
  std::vector<int> depth_;           // most products on a way to the op, itself included
  std::vector<LoopId> owner_;        // the deepest product behind an op; of a product: itself
  std::vector<SectionSet> section_;  // of products
  std::vector<std::pair<LoopId, LoopId>> cores_;  // the two products of each attention
  std::vector<int> seen_;
  int mark_ = 0;
  int64_t steps_ = 0;
};

}  // namespace

std::vector<NodeSections> LayerSectionsOf(const Program& program, size_t nodes) {
  Layers layers(program);
  if (!layers.Classify()) return {};
  return layers.ByNode(nodes);
}

}  // namespace fusion
