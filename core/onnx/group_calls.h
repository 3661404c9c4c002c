#pragma once

#include <onnx/onnx_pb.h>

#include <string_view>

namespace fusion {

/// Domain of group functions. In a model of core/export each group of a plan is one node of the
/// main graph, which calls a function of this domain; the body of the function holds the group's
/// nodes.
inline constexpr std::string_view kGroupDomain = "fusiond";
/// Prefix of the model metadata keys that describe the plan.
inline constexpr std::string_view kGroupMetadata = "fusiond.";

/// A node that calls a function of kGroupDomain, in the main graph, its subgraphs or the functions
/// of the model; nullptr if there is none. The model owns it.
const onnx::NodeProto* FindGroupCall(const onnx::ModelProto& model);

/// Inlines the group calls of the main graph. Nodes get their original names back: the result is
/// the model that core/export read, except for the order of nodes. A name that is in use in the
/// main graph gets the prefix "<name of the call>/".
///
/// Inlines only calls in the form of core/export: the function has no subgraphs and no attribute
/// references, defines every value once and imports the opsets of the model. Other calls, and those
/// beyond kMaxOpenedBytes or kMaxOpenedNodes, remain: the importer inlines or refuses them. When no
/// call is left, the group functions and the metadata with prefix kGroupMetadata are removed.
/// Accepts every model, also a malformed one. Changes only `model`.
void OpenGroups(onnx::ModelProto* model);

/// Limit of the bytes of nodes that one OpenGroups call creates.
inline constexpr int64_t kMaxOpenedBytes = int64_t{64} << 20;
/// Limit of the nodes that one OpenGroups call creates.
inline constexpr int64_t kMaxOpenedNodes = 1 << 16;

}  // namespace fusion
