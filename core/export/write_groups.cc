#include "core/export/write_groups.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>

#include "core/export/model_graph.h"
#include "core/onnx/group_calls.h"
#include "core/onnx/model_edits.h"

namespace fusion {
namespace {

// The first with functions of a model.
constexpr int64_t kFunctionIrVersion = 8;
// The first in which an initialiser need not be an input, and one that is may be overridden.
constexpr int64_t kFreeInitializersIrVersion = 4;
constexpr size_t kMaxLabelBytes = 64;

using NodeList = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

// Letters, digits and '_' of a label; of a long one the first ops.
std::string CleanLabel(std::string_view label) {
  if (label.size() > kMaxLabelBytes) {
    const size_t end = label.rfind('+', kMaxLabelBytes);
    label = label.substr(0, end == std::string_view::npos ? kMaxLabelBytes : end);
  }
  std::string out;
  for (char c : label) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (plain) {
      out += c;
    } else if (!out.empty() && out.back() != '_') {
      out += '_';
    }
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  return out;
}

// Ops that ONNX Runtime has under ONNX's name where ONNX itself has none: below this opset. Its
// optimiser writes them into models of any opset. In the main graph it runs them; one in a function
// makes it crash (1.32.0).
bool CrashesInFunctions(const onnx::NodeProto& node, int64_t opset) {
  if (!IsDefaultDomain(node.domain())) return false;
  return (node.op_type() == "LayerNormalization" && opset < 17) ||
         node.op_type() == "SimplifiedLayerNormalization";
}

class GroupWriter {
 public:
  GroupWriter(const std::vector<ModelGroup>& groups, ModelGraph graph, onnx::ModelProto* model)
      : groups_(groups), graph_(std::move(graph)), model_(*model) {
    written_.groups.resize(groups.size());
    for (const onnx::FunctionProto& function : model->functions()) {
      if (function.domain() == kGroupDomain) function_names_.insert(function.name());
    }
    for (const onnx::NodeProto& node : model->graph().node()) node_names_.insert(node.name());
  }

  WrittenModel Run(const Properties& metadata) {
    std::vector<NodePart> parts = Contract(graph_.nodes, Sets());
    CountParts(parts);
    NodeList nodes;
    nodes.Swap(model_.mutable_graph()->mutable_node());
    for (const NodePart& part : parts) Write(part, &nodes);
    DropInnerTypes();
    FinishModel(metadata);
    return std::move(written_);
  }

 private:
  // Of each group the nodes that may be inside; a node of several groups is the last one's.
  std::vector<std::vector<int>> Sets() {
    std::vector<int> group_of(graph_.nodes.free.size(), -1);
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (int node : groups_[g].nodes) group_of[static_cast<size_t>(node)] = static_cast<int>(g);
    }
    std::vector<std::vector<int>> sets(groups_.size());
    for (int node : graph_.nodes.order) {
      const auto at = static_cast<size_t>(node);
      const onnx::NodeProto& proto = model_.graph().node(node);
      const bool stays = IsConstantNode(proto) || HasBodies(proto) || !IsRead(proto) ||
                         CrashesInFunctions(proto, VersionOf(""));
      if (stays || group_of[at] >= 0) graph_.nodes.free[at] = false;
      if (!stays && group_of[at] >= 0) sets[static_cast<size_t>(group_of[at])].push_back(node);
    }
    for (size_t g = 0; g < groups_.size(); ++g) {
      const std::set<int> all(groups_[g].nodes.begin(), groups_[g].nodes.end());
      written_.groups[g].left_out = static_cast<int>(all.size() - sets[g].size());
    }
    return sets;
  }

  // A function must give something.
  bool IsRead(const onnx::NodeProto& node) const {
    return std::any_of(node.output().begin(), node.output().end(), [&](const std::string& name) {
      if (name.empty()) return false;
      const ModelValue& value = graph_.values.at(name);
      return value.is_output || !value.readers.empty();
    });
  }

  void CountParts(const std::vector<NodePart>& parts) {
    parts_of_.assign(groups_.size(), 0);
    for (const NodePart& part : parts) {
      if (part.set >= 0) ++parts_of_[static_cast<size_t>(part.set)];
    }
  }

  // Moves the nodes of a part into the model.
  void Write(const NodePart& part, NodeList* nodes) {
    onnx::GraphProto* graph = model_.mutable_graph();
    if (part.set < 0) {
      for (int node : part.nodes) graph->add_node()->Swap(nodes->Mutable(node));
      written_.plain_nodes += static_cast<int>(part.nodes.size());
      return;
    }
    const auto at = static_cast<size_t>(part.set);
    const ModelGroup& group = groups_[at];
    onnx::FunctionProto* function = model_.add_functions();
    onnx::NodeProto* call = graph->add_node();
    function->set_domain(std::string(kGroupDomain));
    function->set_name(FunctionName(group, at));
    function->set_doc_string(StrCat("group ", group.number, " of a plan: ", group.label));
    SetInterface(part, *nodes, function);
    std::set<std::string> domains;
    for (int node : part.nodes) {
      const std::string& domain = nodes->Get(node).domain();
      domains.insert(IsDefaultDomain(domain) ? std::string() : domain);
      function->add_node()->Swap(nodes->Mutable(node));
    }
    for (const std::string& domain : domains) {
      onnx::OperatorSetIdProto* import = function->add_opset_import();
      import->set_domain(domain);
      import->set_version(VersionOf(domain));
    }
    call->set_name(Unique(StrCat("group_", group.number), &node_names_));
    call->set_domain(function->domain());
    call->set_op_type(function->name());
    *call->mutable_input() = function->input();
    *call->mutable_output() = function->output();
    for (const auto& [key, value] : group.properties) {
      function->add_attribute(key);
      onnx::AttributeProto* attribute = call->add_attribute();
      attribute->set_name(key);
      attribute->set_type(onnx::AttributeProto::STRING);
      attribute->set_s(value);
    }
    written_.groups[at].functions.push_back(function->name());
    written_.groups[at].nodes += static_cast<int>(part.nodes.size());
  }

  // Names inside are those outside.
  void SetInterface(const NodePart& part, const NodeList& nodes, onnx::FunctionProto* function) {
    const std::set<int> inside(part.nodes.begin(), part.nodes.end());
    std::unordered_set<std::string_view> seen;
    for (int node : part.nodes) {
      for (const std::string& name : nodes.Get(node).input()) {
        if (name.empty() || !seen.insert(name).second) continue;
        if (inside.count(graph_.values.at(name).writer) == 0) function->add_input(name);
      }
      for (const std::string& name : nodes.Get(node).output()) {
        if (name.empty()) continue;
        const ModelValue& value = graph_.values.at(name);
        const bool leaves =
            value.is_output || std::any_of(value.readers.begin(), value.readers.end(),
                                           [&](int reader) { return inside.count(reader) == 0; });
        if (leaves) {
          function->add_output(name);
        } else {
          inner_.insert(name);
        }
      }
    }
  }

  // That the model has of a domain.
  int64_t VersionOf(std::string_view domain) const {
    return ImportedVersion(model_.opset_import(), domain).value_or(kUnimportedVersion);
  }

  std::string FunctionName(const ModelGroup& group, size_t at) {
    std::string name = StrCat("Group", group.number);
    if (parts_of_[at] > 1) {
      StrAppend(&name, StrCat("_part", written_.groups[at].functions.size() + 1));
    }
    const std::string label = CleanLabel(group.label);
    if (!label.empty()) StrAppend(&name, StrCat("_", label));
    return Unique(name, &function_names_);
  }

  static std::string Unique(const std::string& name, std::unordered_set<std::string>* taken) {
    std::string out = name;
    for (int i = 2; !taken->insert(out).second; ++i) out = StrCat(name, "_", i);
    return out;
  }

  // What is declared of values that the main graph has no more.
  void DropInnerTypes() {
    RemoveIf(model_.mutable_graph()->mutable_value_info(),
             [&](const onnx::ValueInfoProto& info) { return inner_.count(info.name()) > 0; });
  }

  void FinishModel(const Properties& metadata) {
    if (model_.ir_version() < kFreeInitializersIrVersion) {
      std::unordered_set<std::string_view> constants;
      for (const auto& tensor : model_.graph().initializer()) constants.insert(tensor.name());
      RemoveIf(model_.mutable_graph()->mutable_input(), [&](const onnx::ValueInfoProto& input) {
        return constants.count(input.name()) > 0;
      });
    }
    model_.set_ir_version(std::max<int64_t>(model_.ir_version(), kFunctionIrVersion));
    for (const std::string& domain : {std::string(), std::string(kGroupDomain)}) {
      if (ImportedVersion(model_.opset_import(), domain)) continue;
      onnx::OperatorSetIdProto* import = model_.add_opset_import();
      import->set_domain(domain);
      import->set_version(kUnimportedVersion);
    }
    RemoveIf(model_.mutable_metadata_props(), [](const onnx::StringStringEntryProto& entry) {
      return entry.key().compare(0, kGroupMetadata.size(), kGroupMetadata) == 0;
    });
    for (const auto& [key, value] : metadata) {
      onnx::StringStringEntryProto* entry = model_.add_metadata_props();
      entry->set_key(key);
      entry->set_value(value);
    }
  }

  const std::vector<ModelGroup>& groups_;
  ModelGraph graph_;
  onnx::ModelProto& model_;
  WrittenModel written_;
  std::vector<int> parts_of_;  // by group
  std::unordered_set<std::string> function_names_;
  std::unordered_set<std::string> node_names_;
  std::unordered_set<std::string> inner_;
};

}  // namespace

absl::StatusOr<WrittenModel> WriteGroups(const std::vector<ModelGroup>& groups,
                                         const Properties& metadata, onnx::ModelProto* model) {
  const int count = model->graph().node_size();
  for (const ModelGroup& group : groups) {
    for (int node : group.nodes) {
      if (node >= 0 && node < count) continue;
      return InvalidArgument("group ", group.number, ": node ", node, "; the model has ", count);
    }
  }
  ASSIGN_OR_RETURN(ModelGraph graph, ReadModelGraph(model->graph()));
  return GroupWriter(groups, std::move(graph), model).Run(metadata);
}

}  // namespace fusion
