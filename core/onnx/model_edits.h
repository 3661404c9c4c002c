#pragma once

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/onnx/constant_node.h"

namespace fusion {

/// Helpers for code that rewrites models.

/// Removes the elements of a repeated field that meet the condition.
template <typename List, typename Condition>
void RemoveIf(List* list, const Condition& condition) {
  list->erase(std::remove_if(list->begin(), list->end(), condition), list->end());
}

/// The version at which `opsets` import `domain`; nullopt if they do not. "" and "ai.onnx" are the
/// same domain.
inline std::optional<int64_t> ImportedVersion(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& opsets,
    std::string_view domain) {
  for (const onnx::OperatorSetIdProto& opset : opsets) {
    const bool same =
        opset.domain() == domain || (IsDefaultDomain(opset.domain()) && IsDefaultDomain(domain));
    if (same) return opset.version();
  }
  return std::nullopt;
}

/// Version that a function states for a domain that its model does not import: it must state one.
inline constexpr int64_t kUnimportedVersion = 1;

}  // namespace fusion
