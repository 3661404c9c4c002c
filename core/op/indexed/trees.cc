#include "core/op/indexed/trees.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numbers>

#include "core/op/forms.h"
#include "core/op/repeat.h"

namespace fusion {
namespace {

using Value = Decomposition::Value;

// Replaces each kMember node by a chain of kEqual nodes, one for each member.
void ReplaceSets(TreeEnsemble* trees) {
  const size_t count = trees->nodes.size();
  for (size_t i = 0; i < count; ++i) {
    if (trees->nodes[i].mode != TreeMode::kMember) continue;
    TreeNode node = std::move(trees->nodes[i]);
    const std::vector<double> members = std::move(node.members);
    node.members.clear();
    node.mode = TreeMode::kEqual;
    const int64_t otherwise = node.if_false;
    size_t at = i;
    for (size_t k = 0; k < members.size(); ++k) {
      node.split = members[k];
      node.if_false =
          k + 1 < members.size() ? static_cast<int64_t>(trees->nodes.size()) : otherwise;
      trees->nodes[at] = node;
      at = trees->nodes.size();
      if (k + 1 < members.size()) trees->nodes.emplace_back();
    }
    if (members.empty()) {  // NaN may still be in it
      node.split = std::numeric_limits<double>::quiet_NaN();
      trees->nodes[i] = node;
    }
  }
}

absl::Status CheckNodes(const TreeEnsemble& trees, int64_t features) {
  const auto count = static_cast<int64_t>(trees.nodes.size());
  for (int64_t i = 0; i < count; ++i) {
    const TreeNode& node = trees.nodes[static_cast<size_t>(i)];
    if (node.mode == TreeMode::kLeaf) continue;
    if (node.feature < 0 || node.feature >= features) {
      return InvalidArgument("node ", i, " asks for feature ", node.feature, " of ", features);
    }
    for (int64_t next : {node.if_true, node.if_false}) {
      if (next < 0 || next >= count) {
        return InvalidArgument("node ", i, " leads to node ", next, " of ", count);
      }
    }
  }
  for (int64_t root : trees.roots) {
    if (root < 0 || root >= count)
      return InvalidArgument("a tree begins at node ", root, " of ", count);
  }
  for (const TreeWeight& weight : trees.weights) {
    if (weight.target < 0 || weight.target >= trees.targets) {
      return InvalidArgument("a leaf counts for target ", weight.target, " of ", trees.targets);
    }
  }
  return absl::OkStatus();
}

// Depth of the deepest tree; InvalidArgument for a cycle. Linear in the number of nodes.
absl::StatusOr<int64_t> DepthOf(const TreeEnsemble& trees) {
  constexpr int64_t kUnseen = -1;
  constexpr int64_t kOpen = -2;
  std::vector<int64_t> height(trees.nodes.size(), kUnseen);
  int64_t depth = 0;
  std::vector<int64_t> path;
  for (int64_t root : trees.roots) {
    path.push_back(root);
    while (!path.empty()) {
      const auto at = static_cast<size_t>(path.back());
      const TreeNode& node = trees.nodes[at];
      if (node.mode == TreeMode::kLeaf) height[at] = 0;
      if (height[at] >= 0) {
        path.pop_back();
        continue;
      }
      height[at] = kOpen;
      int64_t most = 0;
      bool ready = true;
      for (int64_t next : {node.if_true, node.if_false}) {
        const int64_t below = height[static_cast<size_t>(next)];
        if (below == kOpen) return InvalidArgument("node ", next, " leads back to itself");
        if (below == kUnseen) {
          path.push_back(next);
          ready = false;
          break;
        }
        most = std::max(most, below);
      }
      if (!ready) {
        continue;
      }
      height[at] = most + 1;
      path.pop_back();
    }
    depth = std::max(depth, height[static_cast<size_t>(root)]);
  }
  return depth;
}

// The nodes as tables; a leaf leads to itself.
struct TreeTables {
  Value feature = 0;  // i64[nodes]
  Value split = 0;
  Value next = 0;  // i64[2 * nodes]: if false, if true
  // bool[nodes], kNone: the same for all. Which of less, equal, greater and NaN is true.
  static constexpr Value kNone = -1;
  Value less = kNone;
  Value equal = kNone;
  Value greater = kNone;
  Value nan = kNone;
};

class TreeWalk {
 public:
  TreeWalk(Decomposition& d, const TreeEnsemble& trees)
      : d_(d), trees_(trees), type_(d.call().dtype(0) == DType::kF64 ? DType::kF64 : DType::kF32) {}

  absl::StatusOr<Value> Run(int64_t depth) {
    ASSIGN_OR_RETURN(auto x, CastTo(d_, d_.in(0), type_));
    const TreeTables tables = Tables();
    const int64_t rows = d_.call().shape(0).dim(0).value();
    const auto count = static_cast<int64_t>(trees_.roots.size());
    HostTensor roots(DType::kI64, {1, count});
    for (int64_t i = 0; i < count; ++i) roots.SetInt(i, trees_.roots[static_cast<size_t>(i)]);
    ASSIGN_OR_RETURN(auto at, d_.Apply("Expand", {d_.Constant(std::move(roots))},
                                       {{"shape", Dims{rows, count}}}));
    if (depth > kMostTreeLevelsWrittenOut) {
      ASSIGN_OR_RETURN(at, RepeatedLevels(tables, x, at, depth));
    } else {
      for (int64_t level = 0; level < depth; ++level) {
        ASSIGN_OR_RETURN(at, Level(d_, tables, x, at));
      }
    }
    ASSIGN_OR_RETURN(auto y, Summed(at));
    if (!trees_.base.empty()) {
      HostTensor base(type_, {1, trees_.targets});
      for (int64_t i = 0; i < trees_.targets; ++i) {
        base.SetDouble(i, trees_.base[static_cast<size_t>(i)]);
      }
      ASSIGN_OR_RETURN(y, d_.Apply("Add", {y, d_.Constant(std::move(base))}));
    }
    return TransformedScores(d_, y, trees_.transform);
  }

 private:
  Value Number(double value) { return d_.Scalar(type_, value); }

  template <typename F>
  Value Table(DType type, const F& of) {
    HostTensor table(type, {static_cast<int64_t>(trees_.nodes.size())});
    for (size_t i = 0; i < trees_.nodes.size(); ++i) {
      table.SetDouble(static_cast<int64_t>(i), of(trees_.nodes[i]));
    }
    return d_.Constant(std::move(table));
  }

  TreeTables Tables() {
    TreeTables out;
    out.feature = Table(DType::kI64, [](const TreeNode& n) {
      return n.mode == TreeMode::kLeaf ? 0.0 : static_cast<double>(n.feature);
    });
    out.split = Table(type_, [](const TreeNode& n) { return n.split; });
    const auto count = static_cast<int64_t>(trees_.nodes.size());
    HostTensor next(DType::kI64, {2 * count});
    for (int64_t i = 0; i < count; ++i) {
      const TreeNode& node = trees_.nodes[static_cast<size_t>(i)];
      const bool leaf = node.mode == TreeMode::kLeaf;
      next.SetInt(2 * i, leaf ? i : node.if_false);
      next.SetInt(2 * i + 1, leaf ? i : node.if_true);
    }
    out.next = d_.Constant(std::move(next));
    const TreeMode first = FirstMode();
    const bool one_mode = std::all_of(
        trees_.nodes.begin(), trees_.nodes.end(),
        [&](const TreeNode& n) { return n.mode == first || n.mode == TreeMode::kLeaf; });
    auto is = [](std::initializer_list<TreeMode> modes) {
      return [modes = std::vector<TreeMode>(modes)](const TreeNode& n) {
        return std::find(modes.begin(), modes.end(), n.mode) != modes.end() ? 1.0 : 0.0;
      };
    };
    mode_ = first;
    if (!one_mode) {
      out.less =
          Table(DType::kBool, is({TreeMode::kLess, TreeMode::kLessOrEqual, TreeMode::kNotEqual}));
      out.equal = Table(DType::kBool,
                        is({TreeMode::kLessOrEqual, TreeMode::kGreaterOrEqual, TreeMode::kEqual}));
      out.greater = Table(DType::kBool,
                          is({TreeMode::kGreater, TreeMode::kGreaterOrEqual, TreeMode::kNotEqual}));
    }
    const bool any_nan = std::any_of(trees_.nodes.begin(), trees_.nodes.end(), NanIsTrue);
    if (any_nan) {
      out.nan = Table(DType::kBool, [](const TreeNode& n) { return NanIsTrue(n) ? 1.0 : 0.0; });
    }
    return out;
  }

  // Of NaN nothing else counts: it is not unequal either.
  static bool NanIsTrue(const TreeNode& n) { return n.mode != TreeMode::kLeaf && n.nan_is_true; }

  TreeMode FirstMode() const {
    for (const TreeNode& node : trees_.nodes) {
      if (node.mode != TreeMode::kLeaf) return node.mode;
    }
    return TreeMode::kLessOrEqual;
  }

  // The nodes after those `at`, [rows, trees]. Works on another decomposition's values as well.
  absl::StatusOr<Value> Level(Decomposition& d, const TreeTables& tables, Value x, Value at) {
    auto of = [&](Value table) { return d.Apply("Gather", {table, at}, {{"axis", int64_t{0}}}); };
    ASSIGN_OR_RETURN(auto feature, of(tables.feature));
    ASSIGN_OR_RETURN(auto seen, d.Apply("GatherElements", {x, feature}, {{"axis", int64_t{1}}}));
    ASSIGN_OR_RETURN(auto split, of(tables.split));
    ASSIGN_OR_RETURN(auto is_true, Asked(d, tables, seen, split, of));
    if (tables.nan != TreeTables::kNone) {
      ASSIGN_OR_RETURN(auto nan, d.Apply("IsNaN", {seen}));
      ASSIGN_OR_RETURN(auto counts, of(tables.nan));
      ASSIGN_OR_RETURN(nan, d.Apply("And", {nan, counts}));
      ASSIGN_OR_RETURN(is_true, d.Apply("Or", {is_true, nan}));
    }
    ASSIGN_OR_RETURN(auto place, CastTo(d, is_true, DType::kI64));
    ASSIGN_OR_RETURN(at, d.Apply("Mul", {at, d.Scalar(DType::kI64, 2)}));
    ASSIGN_OR_RETURN(place, d.Apply("Add", {at, place}));
    return d.Apply("Gather", {tables.next, place}, {{"axis", int64_t{0}}});
  }

  template <typename F>
  absl::StatusOr<Value> Asked(Decomposition& d, const TreeTables& tables, Value x, Value split,
                              const F& of) {
    if (tables.less == TreeTables::kNone) {
      switch (mode_) {
        case TreeMode::kLess:
          return d.Apply("Less", {x, split});
        case TreeMode::kGreaterOrEqual:
          return d.Apply("GreaterOrEqual", {x, split});
        case TreeMode::kGreater:
          return d.Apply("Greater", {x, split});
        case TreeMode::kEqual:
          return d.Apply("Equal", {x, split});
        case TreeMode::kNotEqual: {
          ASSIGN_OR_RETURN(auto less, d.Apply("Less", {x, split}));
          ASSIGN_OR_RETURN(auto greater, d.Apply("Greater", {x, split}));
          return d.Apply("Or", {less, greater});
        }
        default:
          return d.Apply("LessOrEqual", {x, split});
      }
    }
    Value any = -1;
    const std::pair<const char*, Value> cases[] = {
        {"Less", tables.less}, {"Equal", tables.equal}, {"Greater", tables.greater}};
    for (const auto& [op, table] : cases) {
      ASSIGN_OR_RETURN(auto holds, d.Apply(op, {x, split}));
      ASSIGN_OR_RETURN(auto counts, of(table));
      ASSIGN_OR_RETURN(holds, d.Apply("And", {holds, counts}));
      if (any < 0) {
        any = holds;
        continue;
      }
      ASSIGN_OR_RETURN(any, d.Apply("Or", {any, holds}));
    }
    return any;
  }

  absl::StatusOr<Value> RepeatedLevels(const TreeTables& tables, Value x, Value at, int64_t depth) {
    auto repeat = std::make_shared<Repeat>();
    repeat->most = depth;
    std::vector<Value> operands;
    std::vector<std::optional<TensorType>> types;
    auto add = [&](Repeat::Port port, Value operand) {
      types.emplace_back(d_.type(operand));
      repeat->inputs.push_back({port, d_.type(operand)});
      operands.push_back(operand);
      return static_cast<Value>(operands.size()) - 1;
    };
    const Value inner_at = add(Repeat::Port::kCarried, at);
    const Value inner_x = add(Repeat::Port::kWhole, x);
    TreeTables inner;
    for (Value TreeTables::*table :
         {&TreeTables::feature, &TreeTables::split, &TreeTables::next, &TreeTables::less,
          &TreeTables::equal, &TreeTables::greater, &TreeTables::nan}) {
      if (tables.*table != TreeTables::kNone) {
        inner.*table = add(Repeat::Port::kWhole, tables.*table);
      }
    }
    OpCall call(d_.call().def(), std::move(types), {});
    Decomposition body(call);
    ASSIGN_OR_RETURN(auto after, Level(body, inner, inner_x, inner_at));
    repeat->steps = std::move(body).TakeSteps();
    repeat->outputs = {{after}};
    AttrMap attrs;
    attrs.Set("body", std::shared_ptr<const Repeat>(std::move(repeat)));
    ASSIGN_OR_RETURN(std::vector<Value> given,
                     d_.ApplyMulti("Repeat", std::move(operands), std::move(attrs), 1));
    return given[0];
  }

  // The combined weights of the reached leaves of all trees: [rows, targets].
  absl::StatusOr<Value> Summed(Value at) {
    const bool extremum = trees_.sum == TreeSum::kMin || trees_.sum == TreeSum::kMax;
    const double none = !extremum ? 0
                                  : std::copysign(std::numeric_limits<double>::infinity(),
                                                  trees_.sum == TreeSum::kMin ? 1 : -1);
    HostTensor table(type_, {static_cast<int64_t>(trees_.nodes.size()), trees_.targets});
    for (int64_t i = 0; i < table.elements(); ++i) table.SetDouble(i, none);
    for (const TreeWeight& weight : trees_.weights) {
      const int64_t place = weight.leaf * trees_.targets + weight.target;
      table.SetDouble(place, extremum ? weight.weight : table.GetDouble(place) + weight.weight);
    }
    ASSIGN_OR_RETURN(
        auto y, d_.Apply("Gather", {d_.Constant(std::move(table)), at}, {{"axis", int64_t{0}}}));
    const AttrMap over = {{"axes", Dims{1}}, {"keepdims", int64_t{0}}};
    if (trees_.sum == TreeSum::kAverage) return d_.Apply("ReduceMean", {y}, over);
    if (trees_.sum == TreeSum::kSum) return d_.Apply("ReduceSum", {y}, over);
    ASSIGN_OR_RETURN(y,
                     d_.Apply(trees_.sum == TreeSum::kMin ? "ReduceMin" : "ReduceMax", {y}, over));
    // Targets without a contribution of any leaf become 0.
    ASSIGN_OR_RETURN(auto untouched, d_.Apply("Equal", {y, Number(none)}));
    return d_.Apply("Where", {untouched, Number(0), y});
  }

  Decomposition& d_;
  const TreeEnsemble& trees_;
  DType type_;
  TreeMode mode_ = TreeMode::kLessOrEqual;
};

Value NumberLike(Decomposition& d, Value y, double value) {
  return d.Scalar(d.type(y).dtype, value);
}

// Softmax of the non-zero scores; zeros stay 0. If all scores are zero, each result is 0.5.
absl::StatusOr<Value> SoftmaxZero(Decomposition& d, Value y) {
  const Value tiny = NumberLike(d, y, 1e-7);
  ASSIGN_OR_RETURN(auto magnitude, d.Apply("Abs", {y}));
  ASSIGN_OR_RETURN(auto zero, d.Apply("LessOrEqual", {magnitude, tiny}));
  ASSIGN_OR_RETURN(auto most, d.Apply("ReduceMax", {magnitude}, {{"axes", Dims{1}}}));
  ASSIGN_OR_RETURN(auto none, d.Apply("LessOrEqual", {most, tiny}));
  ASSIGN_OR_RETURN(
      auto shown,
      d.Apply("Where", {zero, NumberLike(d, y, -std::numeric_limits<double>::infinity()), y}));
  ASSIGN_OR_RETURN(shown, d.Apply("Softmax", {shown}, {{"axis", int64_t{-1}}}));
  ASSIGN_OR_RETURN(shown, d.Apply("Where", {zero, NumberLike(d, y, 0), shown}));
  return d.Apply("Where", {none, NumberLike(d, y, 0.5), shown});
}

// sqrt(2) erfinv(2 y - 1), erfinv by Winitzki's approximation, as ONNX Runtime has it.
absl::StatusOr<Value> Probit(Decomposition& d, Value y) {
  constexpr double kA = 0.147;
  ASSIGN_OR_RETURN(auto x, d.Apply("Mul", {y, NumberLike(d, y, 2)}));
  ASSIGN_OR_RETURN(x, d.Apply("Sub", {x, NumberLike(d, y, 1)}));
  ASSIGN_OR_RETURN(auto square, d.Apply("Mul", {x, x}));
  ASSIGN_OR_RETURN(auto log, d.Apply("Sub", {NumberLike(d, y, 1), square}));
  ASSIGN_OR_RETURN(log, d.Apply("Log", {log}));
  ASSIGN_OR_RETURN(auto half, d.Apply("Mul", {log, NumberLike(d, y, 0.5)}));
  ASSIGN_OR_RETURN(auto v, d.Apply("Add", {half, NumberLike(d, y, 2 / (std::numbers::pi * kA))}));
  ASSIGN_OR_RETURN(auto root, d.Apply("Mul", {v, v}));
  ASSIGN_OR_RETURN(auto part, d.Apply("Mul", {log, NumberLike(d, y, 1 / kA)}));
  ASSIGN_OR_RETURN(root, d.Apply("Sub", {root, part}));
  ASSIGN_OR_RETURN(root, d.Apply("Sqrt", {root}));
  ASSIGN_OR_RETURN(root, d.Apply("Sub", {root, v}));
  ASSIGN_OR_RETURN(root, d.Apply("Sqrt", {root}));
  ASSIGN_OR_RETURN(auto sign, d.Apply("Sign", {x}));
  ASSIGN_OR_RETURN(root, d.Apply("Mul", {root, sign}));
  ASSIGN_OR_RETURN(auto end, d.Apply("Equal", {square, NumberLike(d, y, 1)}));
  ASSIGN_OR_RETURN(root, d.Apply("Where", {end, NumberLike(d, y, 0), root}));
  return d.Apply("Mul", {root, NumberLike(d, y, std::numbers::sqrt2)});
}

}  // namespace

absl::StatusOr<Value> TransformedScores(Decomposition& d, Value y, TreeTransform transform) {
  switch (transform) {
    case TreeTransform::kNone:
      return y;
    case TreeTransform::kSoftmax:
      return d.Apply("Softmax", {y}, {{"axis", int64_t{-1}}});
    case TreeTransform::kLogistic:
      return d.Apply("Sigmoid", {y});
    case TreeTransform::kSoftmaxZero:
      return SoftmaxZero(d, y);
    case TreeTransform::kProbit:
      return Probit(d, y);
  }
  return y;
}

absl::StatusOr<Value> TreeScores(Decomposition& d, TreeEnsemble trees) {
  const OpCall& call = d.call();
  ASSIGN_OR_RETURN(Dims x, StaticDims(call, 0));
  if (x.size() != 2 || call.dtype(0) == DType::kBool) {
    return InvalidArgument("input 0 is ", call.in(0).ToString(),
                           ", expected numbers [rows, features]");
  }
  if (trees.roots.empty()) return InvalidArgument("there is no tree");
  if (trees.targets < 1) {
    return InvalidArgument("attribute \"n_targets\" is ", trees.targets, ", expected at least 1");
  }
  ReplaceSets(&trees);
  const auto nodes = static_cast<int64_t>(trees.nodes.size());
  if (nodes > kMaxTreeNodes / trees.targets) {
    return Unimplemented("trees of ", nodes, " nodes for ", trees.targets,
                         " targets; supported: a product of at most ", kMaxTreeNodes);
  }
  RETURN_IF_ERROR(CheckNodes(trees, x[1]));
  RETURN_IF_ERROR(
      CheckedNumElements({x[0], static_cast<int64_t>(trees.roots.size()), trees.targets}, 8)
          .status());
  ASSIGN_OR_RETURN(const int64_t depth, DepthOf(trees));
  return TreeWalk(d, trees).Run(depth);
}

}  // namespace fusion
