#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/build/builder.h"
#include "core/import/model/flatten.h"

namespace fusion {

/// Sequences and optionals whose elements are known when the model is imported leave no trace in
/// the graph: the importer knows which tensors they hold.
struct Collection {
  /// An optional without an element. One with an element is that element.
  bool is_none = false;
  std::vector<TensorId> elements;
};

/// "a sequence" or "an optional without an element".
std::string KindOf(const Collection& collection);

/// What a node reads or gives where that may be a collection: one of both, or neither, an input
/// that is absent.
struct Item {
  TensorId tensor = kNoTensor;
  std::optional<Collection> collection;
};

/// True for the ops below, and SequenceMap, which the importer adds itself.
bool IsCollectionOp(const FlatNode& node);

/// Their names and first opsets.
struct CollectionOp {
  std::string_view name;
  int first_opset;
};
const std::vector<CollectionOp>& CollectionOps();

/// Adds what SequenceAt, SequenceConstruct, SequenceEmpty, SequenceErase, SequenceInsert,
/// SequenceLength, SplitToSequence, ConcatFromSequence, Optional, OptionalGetElement,
/// OptionalHasElement or an Identity of a collection stands for, under the name of its output.
/// `count` is called for every node that is added and may refuse it.
///
/// Unimplemented where a position or a length is known to a run only; InvalidArgument for what does
/// not fit: a position outside, elements of several types, a tensor where a sequence belongs.
/// Messages start with the node.
absl::StatusOr<Item> AddCollectionOp(const FlatNode& node, const std::vector<Item>& inputs,
                                     const std::string& output,
                                     const std::function<absl::Status()>& count,
                                     GraphBuilder* builder);

/// "'n' (Op): input 1 "s" is a sequence ...": for nodes that take none.
absl::Status RefuseCollection(const FlatNode& node, size_t input, std::string_view name,
                              const Collection& collection);

}  // namespace fusion
