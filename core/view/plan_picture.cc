#include "core/view/plan_picture.h"

#include <algorithm>
#include <set>

#include "core/base/text/human_numbers.h"
#include "core/base/text/text.h"
#include "core/view/dot_text.h"

namespace fusion {
namespace {

// Above this number of nodes edges are straight and graphviz makes fewer attempts to reduce
// crossings: seconds instead of minutes for twelve layers of BERT.
constexpr size_t kManyNodes = 200;

// Light enough for black text; neighbours in the list are easy to tell apart.
constexpr std::string_view kColours[] = {"#a6cee3", "#fdbf6f", "#b2df8a", "#cab2d6",
                                         "#fb9a99", "#ffed6f", "#8dd3c7", "#f4cae4",
                                         "#d9d9d9", "#b3cde3", "#ccebc5", "#fed9a6"};

class Painter {
 public:
  Painter(const Graph& graph, const PlanExplanation& explanation)
      : graph_(graph), plan_(explanation.plan), group_of_(graph.nodes().size(), -1) {
    int colour = 0;
    for (size_t g = 0; g < plan_.groups.size(); ++g) {
      colours_.push_back(kColours[static_cast<size_t>(colour) % std::size(kColours)]);
      if (!plan_.groups[g].nodes.empty()) ++colour;
      for (int n : plan_.groups[g].nodes) {
        if (group_of_[static_cast<size_t>(n)] < 0) {
          group_of_[static_cast<size_t>(n)] = static_cast<int>(g);
        }
      }
    }
  }

  std::string Run() {
    out_ =
        "digraph \"plan\" {\n  rankdir=TB;\n  newrank=true;\n  nodesep=0.2;\n  ranksep=0.3;\n"
        "  fontname=\"sans-serif\";\n"
        "  node [shape=box, style=\"rounded,filled\", fillcolor=white, color=\"#606060\", "
        "fontname=\"sans-serif\", fontsize=11, height=0.3];\n"
        "  edge [color=\"#404040\", fontname=\"sans-serif\", fontsize=9, arrowsize=0.6];\n";
    if (graph_.nodes().size() > kManyNodes) {
      out_ += "  mclimit=0.1;\n  nslimit=8;\n  splines=line;\n";
    }
    Side("before", "one kernel a node", plan_.op_by_op, /*grouped=*/false);
    Side("after", "this plan", plan_.totals, /*grouped=*/true);
    return out_ + "}\n";
  }

 private:
  static std::string Title(std::string_view what, const PlanTotals& totals) {
    return StrCat(what, ": ", Count(totals.kernels, "kernel"), ", ",
                  HumanBytes(totals.activation_bytes), " moved, ",
                  HumanMicroseconds(totals.estimated_us));
  }

  void Side(std::string_view side, std::string_view what, const PlanTotals& totals, bool grouped) {
    StrAppend(&out_, StrCat("  subgraph cluster_", side,
                            " {\n    label=", DotString(StrCat(side, ", ", Title(what, totals))),
                            ";\n    fontsize=14;\n    color=white;\n    margin=16;\n"));
    for (size_t g = 0; g < plan_.groups.size(); ++g) {
      if (plan_.groups[g].nodes.empty()) continue;  // packs weights
      if (grouped) OpenGroup(side, g);
      for (int n : plan_.groups[g].nodes) {
        if (group_of_[static_cast<size_t>(n)] == static_cast<int>(g)) AddNode(side, n, grouped);
      }
      if (grouped) out_ += "    }\n";
    }
    auto nodes = static_cast<NodeId>(graph_.nodes().size());
    for (NodeId n = 0; n < nodes; ++n) {
      if (group_of_[static_cast<size_t>(n)] < 0) AddNode(side, n, grouped);
    }
    AddInputs(side);
    AddOutputs(side);
    for (NodeId n = 0; n < nodes; ++n) AddEdges(side, n, grouped);
    out_ += "  }\n";
  }

  void OpenGroup(std::string_view side, size_t g) {
    const PlanGroup& group = plan_.groups[g];
    std::string label = group.kind == GroupKind::kPrepare
                            ? StrCat("group ", g, ", once per set of weights")
                            : StrCat("group ", g, ", ", HumanMicroseconds(group.estimate.time_us));
    StrAppend(&out_,
              StrCat("    subgraph cluster_", side, "_", g, " {\n      label=", DotString(label),
                     ";\n      labeljust=l;\n      fontsize=11;\n      style=\"rounded,filled\";\n"
                     "      color=\"#606060\";\n      fillcolor=\"",
                     colours_[g], "\";\n      margin=10;\n"));
  }

  void AddNode(std::string_view side, int n, bool grouped) {
    const Node& node = graph_.node(n);
    int group = group_of_[static_cast<size_t>(n)];
    // A node inside the box of its group is white; a single node has the group's colour.
    std::string fill;
    if (!grouped && group >= 0) {
      fill = StrCat(", fillcolor=\"", colours_[static_cast<size_t>(group)], "\"");
    }
    StrAppend(&out_, StrCat("      ", side, "_n", n, " [label=", DotString(node.def->name),
                            ", tooltip=", DotString(node.name), fill, "];\n"));
  }

  void AddInputs(std::string_view side) {
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      AddEnd(side, "input", i, graph_.tensor(graph_.inputs()[i]));
    }
  }

  void AddOutputs(std::string_view side) {
    for (size_t i = 0; i < graph_.model_outputs(); ++i) {
      const Tensor& t = graph_.tensor(graph_.outputs()[i]);
      AddEnd(side, "output", i, t);
      if (t.producer == kNoNode) continue;
      StrAppend(&out_, StrCat("    ", side, "_n", t.producer, " -> ", side, "_o", i, ";\n"));
    }
  }

  void AddEnd(std::string_view side, std::string_view what, size_t i, const Tensor& t) {
    StrAppend(&out_, StrCat("    ", side, "_", what.substr(0, 1), i,
                            " [shape=ellipse, style=solid, label=",
                            DotString(t.name.empty() ? StrCat(what, " ", i) : t.name), "];\n"));
  }

  // Activations only; weights would fill the picture.
  void AddEdges(std::string_view side, NodeId n, bool grouped) {
    std::set<TensorId> drawn;
    for (TensorId id : graph_.node(n).inputs) {
      if (id == kNoTensor || !drawn.insert(id).second) continue;
      const Tensor& t = graph_.tensor(id);
      std::string from;
      if (t.producer != kNoNode) {
        from = StrCat("n", t.producer);
      } else {
        auto input = std::find(graph_.inputs().begin(), graph_.inputs().end(), id);
        if (input == graph_.inputs().end()) continue;
        from = StrCat("i", input - graph_.inputs().begin());
      }
      bool inside = grouped && t.producer != kNoNode && SameGroup(t.producer, n);
      StrAppend(&out_, StrCat("    ", side, "_", from, " -> ", side, "_n", n));
      if (inside) {
        out_ += " [color=\"#808080\", style=dashed]";
      } else if (grouped && t.producer != kNoNode) {
        // A kernel that reads it in several places fetches it once.
        bool first = carried_.insert({id, group_of_[static_cast<size_t>(n)]}).second;
        out_ += StrCat(" [penwidth=1.6, label=", DotString(first ? SizeText(t) : ""), "]");
      }
      out_ += ";\n";
    }
  }

  bool SameGroup(NodeId a, NodeId b) const {
    int group = group_of_[static_cast<size_t>(a)];
    return group >= 0 && group == group_of_[static_cast<size_t>(b)];
  }

  static std::string SizeText(const Tensor& t) {
    if (!t.type.shape.is_static()) return "";
    int64_t bytes = DTypeBytes(t.type.dtype);
    for (int64_t d : t.type.shape.ToDims()) bytes *= d;
    return HumanBytes(bytes);
  }

  const Graph& graph_;
  const Plan& plan_;
  std::vector<int> group_of_;  // by node: the first one that has it
  std::vector<std::string_view> colours_;
  std::set<std::pair<TensorId, int>> carried_;  // into which group
  std::string out_;
};

}  // namespace

std::string PlanPicture(const Graph& graph, const PlanExplanation& explanation) {
  return Painter(graph, explanation).Run();
}

}  // namespace fusion
