#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/op/body/scalar.h"

namespace fusion {

/// What a definition of a custom op says, before it meets types. Places are offsets into the text.
struct CustomOpSyntax {
  /// Positions in `nodes`; -1: none.
  using NodeRef = int;

  struct Node {
    enum Kind : uint8_t {
      kNumber,
      kName,  // an input, attribute, let or axis
      kRead,  // input `name` at the indices `args`
      kApply,
      kCast,
    };
    Kind kind = kNumber;
    size_t place = 0;
    std::string name;
    double number = 0;
    bool integer = false;  // kNumber: written without point or exponent
    ScalarOp op = ScalarOp::kConst;
    DType type = DType::kF32;  // kCast
    std::vector<NodeRef> args;
    int depth = 1;  // of the tree below it, lets included
  };
  struct Param {
    std::string name;
    size_t place = 0;
    std::vector<std::string> dims;  // only of a loop body
  };
  struct Attribute {
    std::string name;
    bool integer = false;
    std::optional<double> fallback;
  };
  struct Axis {
    std::string name;
    size_t place = 0;
    NodeRef extent = -1;
  };
  struct Let {
    std::string name;
    NodeRef value = -1;
  };

  std::shared_ptr<const std::string> text;
  std::string domain;
  std::string name;
  size_t place = 0;
  std::vector<Param> params;
  std::vector<Attribute> attributes;
  /// False: element by element.
  bool loop = false;
  std::vector<Axis> result;  // without extents: those of inputs or of `axes`
  std::vector<Axis> axes;
  std::vector<Let> lets;
  std::string monoid;  // "": nothing is reduced
  std::vector<Axis> reduced;
  NodeRef value = -1;
  std::vector<Node> nodes;

  const Node& node(NodeRef ref) const { return nodes[static_cast<size_t>(ref)]; }
  std::string FullName() const { return StrCat(domain, ".", name); }
};

/// All definitions of a text; see CustomOps for the grammar and the errors.
absl::StatusOr<std::vector<std::shared_ptr<const CustomOpSyntax>>> ParseCustomOps(
    std::string_view text);

/// InvalidArgument: "line 3, column 7: <what>", the line and a caret below `place`.
absl::Status ErrorAt(std::string_view text, size_t place, std::string_view what);

}  // namespace fusion
