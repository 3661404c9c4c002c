#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/op/body/scalar.h"

namespace fusion {

/// Syntax tree of the definition of a custom op, before type checking. A `place` is a byte offset
/// in `text`.
struct CustomOpSyntax {
  /// Index into `nodes`; -1: none.
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
    int depth = 1;  // of the tree below, with lets expanded
  };
  struct Param {
    std::string name;
    size_t place = 0;
    std::vector<std::string> dims;  // only if `loop`
  };
  struct Attribute {
    std::string name;
    bool integer = false;
    std::optional<double> fallback;  // default value
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

  std::shared_ptr<const std::string> text;  // all definitions of the request
  std::string domain;
  std::string name;
  size_t place = 0;
  std::vector<Param> params;
  std::vector<Attribute> attributes;
  /// True: a loop body with "->". False: element-wise.
  bool loop = false;
  std::vector<Axis> result;  // extents not set: they follow from the inputs or from `axes`
  std::vector<Axis> axes;    // the axes of "for"
  std::vector<Let> lets;
  std::string monoid;         // "": no reduction
  std::vector<Axis> reduced;  // extents not set
  NodeRef value = -1;
  std::vector<Node> nodes;

  const Node& node(NodeRef ref) const { return nodes[static_cast<size_t>(ref)]; }
  std::string FullName() const { return StrCat(domain, ".", name); }
};

/// Parses all definitions of `text`; see CustomOps for the grammar, ErrorAt for the errors.
absl::StatusOr<std::vector<std::shared_ptr<const CustomOpSyntax>>> ParseCustomOps(
    std::string_view text);

/// InvalidArgument: "line 3, column 7: <what>", then the line and a caret below `place`. Shows only
/// the part of a long line around `place`.
absl::Status ErrorAt(std::string_view text, size_t place, std::string_view what);

}  // namespace fusion
