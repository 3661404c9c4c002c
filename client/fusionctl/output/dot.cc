#include "client/fusionctl/output/dot.h"

#include <map>
#include <set>

#include "client/fusionctl/output/plan_output.h"
#include "core/base/text/text.h"
#include "core/view/dot_text.h"

namespace fusion {
namespace {

std::string Header(std::string_view name) {
  return StrCat("digraph ", DotString(name),
                " {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\"];\n"
                "  edge [fontname=\"sans-serif\", fontsize=10];\n");
}

std::string TypeText(const Tensor& t) {
  return StrCat(DTypeName(t.type.dtype), t.type.shape.ToString());
}

std::string NodeStatement(const Graph& graph, NodeId id, std::string_view indent) {
  const Node& node = graph.node(id);
  std::string label(node.def->name);
  if (!node.name.empty()) label += StrCat("\n", node.name);
  return StrCat(indent, "n", id, " [label=", DotString(label), "];\n");
}

// The DOT text of inputs, weights and constants that nodes read, outputs, and the edges between
// them.
std::string Flow(const Graph& graph) {
  std::string out;
  std::set<TensorId> drawn;
  auto source = [&](TensorId id) {
    const Tensor& t = graph.tensor(id);
    if (t.producer != kNoNode) return StrCat("n", t.producer);
    if (drawn.insert(id).second) {
      std::string label = t.name.empty() ? StrCat("%", id) : t.name;
      StrAppend(&out, StrCat("  t", id,
                             " [shape=", t.kind == TensorKind::kInput ? "ellipse" : "plaintext",
                             ", label=", DotString(StrCat(label, "\n", TypeText(t))), "];\n"));
    }
    return StrCat("t", id);
  };
  auto nodes = static_cast<NodeId>(graph.nodes().size());
  for (NodeId n = 0; n < nodes; ++n) {
    for (TensorId id : graph.node(n).inputs) {
      if (id == kNoTensor) continue;
      std::string from = source(id);
      StrAppend(&out, StrCat("  ", from, " -> n", n));
      if (from[0] == 'n') out += StrCat(" [label=", DotString(TypeText(graph.tensor(id))), "]");
      out += ";\n";
    }
  }
  for (size_t i = 0; i < graph.model_outputs(); ++i) {
    const Tensor& t = graph.tensor(graph.outputs()[i]);
    std::string from = source(graph.outputs()[i]);
    StrAppend(&out, StrCat("  o", i,
                           " [shape=ellipse, label=", DotString(StrCat(t.name, "\n", TypeText(t))),
                           "];\n  ", from, " -> o", i, ";\n"));
  }
  return out;
}

}  // namespace

std::string GraphDot(const Graph& graph) {
  std::string out = Header(graph.name().empty() ? "graph" : graph.name());
  auto nodes = static_cast<NodeId>(graph.nodes().size());
  for (NodeId n = 0; n < nodes; ++n) out += NodeStatement(graph, n, "  ");
  return StrCat(out, Flow(graph), "}\n");
}

std::string PlanDot(const Graph& graph, const FusionReply& reply) {
  std::string out = Header("plan");
  const Plan& plan = reply.plan;
  std::set<int> grouped;
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const PlanGroup& group = plan.groups[g];
    if (group.nodes.empty()) continue;  // packs weights
    StrAppend(&out,
              StrCat("  subgraph cluster_", g, " {\n    style=rounded;\n    label=",
                     DotString(StrCat(
                         "group ", g, ": ", KindName(group.kind), ", ",
                         Count(plan.kernels[static_cast<size_t>(group.kernel)].phases, "phase"))),
                     ";\n"));
    for (int n : group.nodes) {
      if (grouped.insert(n).second) out += NodeStatement(graph, n, "    ");
    }
    out += "  }\n";
  }
  auto nodes = static_cast<NodeId>(graph.nodes().size());
  for (NodeId n = 0; n < nodes; ++n) {
    if (!grouped.contains(n)) out += NodeStatement(graph, n, "  ");
  }
  return StrCat(out, Flow(graph), "}\n");
}

std::string SmgDot(const std::vector<std::pair<std::string, Smg>>& smgs) {
  std::string out = Header("smg");
  for (size_t g = 0; g < smgs.size(); ++g) {
    const auto& [name, smg] = smgs[g];
    StrAppend(&out, StrCat("  subgraph cluster_", g, " {\n    label=", DotString(name), ";\n"));
    std::set<ValueId> drawn;
    for (size_t i = 0; i < smg.ops.size(); ++i) {
      const SmgOp& op = smg.ops[i];
      StrAppend(&out, StrCat("    g", g, "op", i, " [label=",
                             DotString(StrCat(op.label, "\n", smg.DimNames(op.dims))), "];\n"));
    }
    for (const SmgMapping& m : Mappings(smg)) {
      if (drawn.insert(m.value).second) {
        StrAppend(&out, StrCat("    g", g, "v", m.value,
                               " [shape=ellipse, label=", DotString(StrCat("%", m.value)), "];\n"));
      }
    }
    // The text form names ops by their loop, mappings by their position.
    for (const SmgMapping& m : Mappings(smg)) {
      std::string data = StrCat("g", g, "v", m.value);
      std::string op = StrCat("g", g, "op", m.op);
      StrAppend(&out, StrCat("    ", m.from_data ? data : op, " -> ", m.from_data ? op : data,
                             " [label=", DotString(LabelOf(smg, m)), "];\n"));
    }
    out += "  }\n";
  }
  return out + "}\n";
}

}  // namespace fusion
