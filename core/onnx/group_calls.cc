#include "core/onnx/group_calls.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/base/text/text.h"
#include "core/onnx/model_edits.h"

namespace fusion {
namespace {

using NodeList = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
using OpsetList = google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>;

// The first node, among `nodes` and the nodes of all nested subgraphs, for which `visit` is true.
template <typename Visit>
const onnx::NodeProto* FindNode(const NodeList& nodes, const Visit& visit) {
  std::vector<const NodeList*> open = {&nodes};
  while (!open.empty()) {
    const NodeList& list = *open.back();
    open.pop_back();
    for (const onnx::NodeProto& node : list) {
      if (visit(node)) return &node;
      for (const onnx::AttributeProto& attribute : node.attribute()) {
        if (attribute.has_g()) open.push_back(&attribute.g().node());
        for (const onnx::GraphProto& graph : attribute.graphs()) open.push_back(&graph.node());
      }
    }
  }
  return nullptr;
}

// Functions of kGroupDomain by name; null where two have the same.
using Groups = std::unordered_map<std::string_view, const onnx::FunctionProto*>;

Groups GroupsOf(const onnx::ModelProto& model) {
  Groups out;
  for (const onnx::FunctionProto& function : model.functions()) {
    if (function.domain() != kGroupDomain) continue;
    auto [it, added] = out.emplace(function.name(), &function);
    if (!added) it->second = nullptr;
  }
  return out;
}

template <typename Names>
bool AreDistinct(const Names& names) {
  std::unordered_set<std::string_view> seen;
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return !name.empty() && seen.insert(name).second;
  });
}

// Whether the nodes of a function can be inlined in the main graph of a model with `opsets`.
bool StandsAlone(const onnx::FunctionProto& function, const OpsetList& opsets) {
  if (!AreDistinct(function.input()) || !AreDistinct(function.output())) return false;
  std::unordered_set<std::string_view> known(function.input().begin(), function.input().end());
  std::unordered_set<std::string_view> made;
  for (const onnx::NodeProto& node : function.node()) {
    const auto version = ImportedVersion(function.opset_import(), node.domain());
    const int64_t outside = ImportedVersion(opsets, node.domain()).value_or(kUnimportedVersion);
    if (version != outside) return false;
    for (const onnx::AttributeProto& a : node.attribute()) {
      if (a.has_g() || a.graphs_size() > 0 || !a.ref_attr_name().empty()) return false;
    }
    for (const std::string& name : node.output()) {
      if (!name.empty() && (!known.insert(name).second || !made.insert(name).second)) return false;
    }
  }
  for (const onnx::NodeProto& node : function.node()) {
    for (const std::string& name : node.input()) {
      if (!name.empty() && known.count(name) == 0) return false;
    }
  }
  return std::all_of(function.output().begin(), function.output().end(),
                     [&](const std::string& name) { return made.count(name) > 0; });
}

class Opener {
 public:
  explicit Opener(onnx::ModelProto* model) : model_(*model), groups_(GroupsOf(*model)) {
    const onnx::GraphProto& graph = model->graph();
    for (const auto& input : graph.input()) taken_.insert(input.name());
    for (const auto& tensor : graph.initializer()) taken_.insert(tensor.name());
    for (const onnx::NodeProto& node : graph.node()) {
      taken_.insert(node.output().begin(), node.output().end());
    }
    for (auto& [name, function] : groups_) {
      if (function != nullptr && !StandsAlone(*function, model->opset_import())) function = nullptr;
    }
  }

  void Run() {
    NodeList nodes;
    nodes.Swap(model_.mutable_graph()->mutable_node());
    NodeList& out = *model_.mutable_graph()->mutable_node();
    for (onnx::NodeProto& node : nodes) {
      const onnx::FunctionProto* function = GroupOf(node);
      if (function == nullptr) {
        out.Add()->Swap(&node);
      } else {
        Open(node, *function, &out);
      }
    }
  }

 private:
  // The group function that `call` calls, or nullptr if it cannot be inlined.
  const onnx::FunctionProto* GroupOf(const onnx::NodeProto& call) {
    if (call.domain() != kGroupDomain) return nullptr;
    auto found = groups_.find(call.op_type());
    if (found == groups_.end() || found->second == nullptr) return nullptr;
    const onnx::FunctionProto& function = *found->second;
    if (call.input_size() > function.input_size() || call.output_size() > function.output_size()) {
      return nullptr;
    }
    opened_nodes_ += function.node_size();
    if (opened_nodes_ > kMaxOpenedNodes || opened_bytes_ > kMaxOpenedBytes) return nullptr;
    opened_bytes_ += CopiedBytes(call, function);
    return opened_bytes_ > kMaxOpenedBytes ? nullptr : &function;
  }

  // Upper bound of the bytes of the inlined nodes: each name may become the longest one.
  int64_t CopiedBytes(const onnx::NodeProto& call, const onnx::FunctionProto& function) {
    auto [known, fresh] = bytes_.try_emplace(&function, 0);
    if (fresh) known->second = static_cast<int64_t>(function.ByteSizeLong());
    size_t longest = call.name().size() + 64;
    for (const auto* names : {&call.input(), &call.output()}) {
      for (const std::string& name : *names) longest = std::max(longest, name.size());
    }
    int64_t uses = 0;
    for (const onnx::NodeProto& node : function.node()) {
      uses += node.input_size() + node.output_size();
    }
    return known->second + uses * static_cast<int64_t>(longest);
  }

  void Open(const onnx::NodeProto& call, const onnx::FunctionProto& function, NodeList* out) {
    std::unordered_map<std::string_view, std::string> names = {{"", ""}};
    for (int i = 0; i < function.input_size(); ++i) {
      names[function.input(i)] = i < call.input_size() ? call.input(i) : "";
    }
    for (int i = 0; i < call.output_size(); ++i) {
      if (!call.output(i).empty()) names[function.output(i)] = call.output(i);
    }
    for (const onnx::NodeProto& node : function.node()) {
      for (const std::string& name : node.output()) {
        if (names.count(name) == 0) names[name] = NewName(call, name);
      }
    }
    for (const onnx::NodeProto& node : function.node()) {
      onnx::NodeProto* copy = out->Add();
      *copy = node;
      for (std::string& name : *copy->mutable_input()) name = names.at(name);
      for (std::string& name : *copy->mutable_output()) name = names.at(name);
    }
  }

  // For a value inside of a group.
  std::string NewName(const onnx::NodeProto& call, const std::string& name) {
    std::string out = name;
    if (taken_.count(out) > 0) out = StrCat(call.name(), "/", name);
    const std::string behind_call = out;
    while (!taken_.insert(out).second) out = StrCat(behind_call, "_", ++copies_);
    return out;
  }

  onnx::ModelProto& model_;
  Groups groups_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<const onnx::FunctionProto*, int64_t> bytes_;  // of functions
  int64_t opened_bytes_ = 0;
  int64_t opened_nodes_ = 0;
  int64_t copies_ = 0;
};

}  // namespace

const onnx::NodeProto* FindGroupCall(const onnx::ModelProto& model) {
  const Groups groups = GroupsOf(model);
  if (groups.empty()) return nullptr;
  auto calls = [&](const onnx::NodeProto& node) {
    return node.domain() == kGroupDomain && groups.count(node.op_type()) > 0;
  };
  const onnx::NodeProto* found = FindNode(model.graph().node(), calls);
  for (int i = 0; found == nullptr && i < model.functions_size(); ++i) {
    found = FindNode(model.functions(i).node(), calls);
  }
  return found;
}

void OpenGroups(onnx::ModelProto* model) {
  if (FindGroupCall(*model) == nullptr) return;
  Opener(model).Run();
  if (FindGroupCall(*model) != nullptr) return;
  RemoveIf(model->mutable_functions(),
           [](const onnx::FunctionProto& f) { return f.domain() == kGroupDomain; });
  RemoveIf(model->mutable_opset_import(),
           [](const onnx::OperatorSetIdProto& o) { return o.domain() == kGroupDomain; });
  RemoveIf(model->mutable_metadata_props(), [](const onnx::StringStringEntryProto& entry) {
    return entry.key().compare(0, kGroupMetadata.size(), kGroupMetadata) == 0;
  });
}

}  // namespace fusion
