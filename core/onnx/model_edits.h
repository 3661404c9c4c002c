#pragma once

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/onnx/constant_node.h"

namespace fusion {

/// Small steps of those who rewrite models.

/// Removes the elements of a repeated field that meet the condition.
template <typename List, typename Condition>
void RemoveIf(List* list, const Condition& condition) {
  list->erase(std::remove_if(list->begin(), list->end(), condition), list->end());
}

/// The version of a domain that a list imports; "" and "ai.onnx" are one domain.
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

/// Of a domain that a model does not import, as writers of functions have to name one.
inline constexpr int64_t kUnimportedVersion = 1;

}  // namespace fusion
