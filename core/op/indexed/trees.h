#pragma once

#include <cstdint>
#include <vector>

#include "core/op/op_def.h"

namespace fusion {

/// Decision trees as ONNX's ai.onnx.ml has them: all rows go down all trees side by side, one level
/// at a time, by reads of tables that hold the nodes.

/// What a node asks of the feature x and its split s.
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
enum class TreeSum : uint8_t { kAverage, kSum, kMin, kMax };
enum class TreeTransform : uint8_t { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };

struct TreeNode {
  TreeMode mode = TreeMode::kLeaf;
  int64_t feature = 0;
  double split = 0;
  bool nan_is_true = false;
  std::vector<double> members;  // kMember
  int64_t if_true = 0;          // nodes
  int64_t if_false = 0;
};

/// A share of a leaf in a target.
struct TreeWeight {
  int64_t leaf = 0;  // node
  int64_t target = 0;
  double weight = 0;
};

struct TreeEnsemble {
  std::vector<TreeNode> nodes;
  std::vector<int64_t> roots;
  std::vector<TreeWeight> weights;
  int64_t targets = 1;
  TreeSum sum = TreeSum::kSum;
  TreeTransform transform = TreeTransform::kNone;
  std::vector<double> base;  // added to each target; empty: nothing
};

/// Nodes, members of sets among them, and numbers that all leaves have for all targets, at most.
inline constexpr int64_t kMaxTreeNodes = int64_t{1} << 22;
/// Levels that are written out; deeper trees are a repeat.
inline constexpr int64_t kMostTreeLevelsWrittenOut = 12;

/// Scores [rows, targets] of input 0, [rows, features], in f64 if that is its type, else in f32.
/// InvalidArgument where nodes name what there is not or go round in circles; Unimplemented beyond
/// kMaxTreeNodes.
absl::StatusOr<Decomposition::Value> TreeScores(Decomposition& d, TreeEnsemble trees);

/// What a post_transform makes of scores [rows, targets].
absl::StatusOr<Decomposition::Value> TransformedScores(Decomposition& d,
                                                       Decomposition::Value scores,
                                                       TreeTransform transform);

}  // namespace fusion
