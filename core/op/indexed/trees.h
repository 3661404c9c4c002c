#pragma once

#include <cstdint>
#include <vector>

#include "core/op/op_def.h"

namespace fusion {

/// Decision trees of ONNX's ai.onnx.ml. All rows descend all trees in parallel, one level at a
/// time; the nodes are constant tables that are read by index.

/// The condition of a node, between its feature x and its split s. kMember: x is in `members`.
enum class TreeMode : uint8_t {
  kLessOrEqual,
  kLess,
  kGreaterOrEqual,
  kGreater,
  kEqual,
  kNotEqual,
  kMember,
  kLeaf,
};
/// How the weights of the leaves that a row reaches are combined over all trees.
enum class TreeSum : uint8_t { kAverage, kSum, kMin, kMax };
/// "post_transform" of scores.
enum class TreeTransform : uint8_t { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };

struct TreeNode {
  TreeMode mode = TreeMode::kLeaf;
  int64_t feature = 0;
  double split = 0;
  bool nan_is_true = false;     // the condition holds for x = NaN
  std::vector<double> members;  // kMember
  int64_t if_true = 0;          // number of the next node
  int64_t if_false = 0;
};

/// The contribution of a leaf to a target.
struct TreeWeight {
  int64_t leaf = 0;  // number of the node
  int64_t target = 0;
  double weight = 0;
};

/// Trees over one list of nodes; each root starts a tree.
struct TreeEnsemble {
  std::vector<TreeNode> nodes;
  std::vector<int64_t> roots;  // numbers of nodes
  std::vector<TreeWeight> weights;
  int64_t targets = 1;
  TreeSum sum = TreeSum::kSum;
  TreeTransform transform = TreeTransform::kNone;
  std::vector<double> base;  // added to each target; empty: nothing
};

/// Largest product of the number of nodes (each member of a set counts as one) and of targets.
inline constexpr int64_t kMaxTreeNodes = int64_t{1} << 22;
/// Largest depth that is unrolled; deeper trees become a Repeat.
inline constexpr int64_t kMostTreeLevelsWrittenOut = 12;

/// Scores [rows, targets] of input 0, [rows, features], with `base` and `transform` applied; f64 if
/// that is its type, else f32. InvalidArgument if the trees are invalid (missing features, nodes or
/// targets, cycles); Unimplemented for symbolic dims and beyond kMaxTreeNodes.
absl::StatusOr<Decomposition::Value> TreeScores(Decomposition& d, TreeEnsemble trees);

/// Applies `transform` to scores [rows, targets].
absl::StatusOr<Decomposition::Value> TransformedScores(Decomposition& d,
                                                       Decomposition::Value scores,
                                                       TreeTransform transform);

}  // namespace fusion
