#pragma once

#include <onnx/onnx_pb.h>

#include <string_view>

namespace fusion {

/// Models in which groups of a plan are nodes, as core/export writes them: a group is a call, in
/// the main graph, of a function of this domain whose body holds the group's nodes.
inline constexpr std::string_view kGroupDomain = "fusiond";
/// What keys of the model's metadata about the plan begin with.
inline constexpr std::string_view kGroupMetadata = "fusiond.";

/// The first node of the model, its bodies or its functions that calls a function of kGroupDomain;
/// nullptr if there is none.
const onnx::NodeProto* FindGroupCall(const onnx::ModelProto& model);

/// Puts the nodes of each group in the place of its call, under the names that they had: after
/// core/export the model is again what it was, but for the order of nodes. Names that something
/// else of the main graph has by now get the name of the call and a '/' in front.
///
/// Only calls of the main graph that are like those of core/export: a body without bodies of its
/// own, that refers to no attribute, names every value once and has the model's opsets. Others, and
/// what is beyond kMaxOpenedBytes, stay as they are, for the importer to
/// inline or to refuse. Functions and metadata of groups go when no call of them is left. Files
/// come from strangers: every model is fine. Pure.
void OpenGroups(onnx::ModelProto* model);

/// Bytes of nodes that OpenGroups writes.
inline constexpr int64_t kMaxOpenedBytes = int64_t{64} << 20;
/// Nodes that calls of groups become, together.
inline constexpr int64_t kMaxOpenedNodes = 1 << 16;

}  // namespace fusion
