#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/build/builder.h"
#include "core/import/model/flatten.h"

namespace fusion {

/// A sequence or optional whose elements are known at import. It does not appear in the graph: the
/// importer tracks the tensors that it holds.
struct Collection {
  /// An optional without an element. An optional with an element is represented by that element.
  bool is_none = false;
  std::vector<TensorId> elements;
};

/// "a sequence" or "an optional without an element".
std::string KindOf(const Collection& collection);

/// An input or output of a node that may be a collection. At most one field is set; neither for an
/// absent input.
struct Item {
  TensorId tensor = kNoTensor;
  std::optional<Collection> collection;
};

/// True for the ops of AddCollectionOp, and for SequenceMap, which the importer itself adds.
bool IsCollectionOp(const FlatNode& node);

/// Name and first opset of such an op.
struct CollectionOp {
  std::string_view name;
  int first_opset;
};
const std::vector<CollectionOp>& CollectionOps();

/// Adds SequenceAt, SequenceConstruct, SequenceEmpty, SequenceErase, SequenceInsert,
/// SequenceLength, SplitToSequence, ConcatFromSequence, Optional, OptionalGetElement,
/// OptionalHasElement or an Identity of a collection. The result is named `output`. `count` is
/// called for every node that is added; an error stops the import.
///
/// Unimplemented if a position or a length is known only at run time. InvalidArgument for a
/// position out of range, elements of different types, or a tensor in place of a sequence. Messages
/// start with the node.
absl::StatusOr<Item> AddCollectionOp(const FlatNode& node, const std::vector<Item>& inputs,
                                     const std::string& output,
                                     const std::function<absl::Status()>& count,
                                     GraphBuilder* builder);

/// The error for a node that accepts no collections: "'n' (Op): input 1 "s" is a sequence ...".
absl::Status RefuseCollection(const FlatNode& node, size_t input, std::string_view name,
                              const Collection& collection);

}  // namespace fusion
