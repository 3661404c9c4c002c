#include "core/plan/outline/plan_outline.h"

#include <algorithm>

#include "core/plan/outline/layer_sections.h"

namespace fusion {
namespace {

std::vector<SectionSet> SectionsOfGroups(const Plan& plan, const std::vector<NodeSections>& of) {
  std::vector<SectionSet> out;
  for (const PlanGroup& group : plan.groups) {
    SectionSet products = 0;
    SectionSet others = 0;
    for (const int node : group.nodes) {
      products |= of[static_cast<size_t>(node)].products;
      others |= of[static_cast<size_t>(node)].others;
    }
    out.push_back(products != 0 ? products : others);
  }
  return out;
}

// Follows the nodes of a graph and adds up the intermediate tensors that are needed at a time.
class PeakOfNodes {
 public:
  PeakOfNodes(const Graph& graph, const Program& program)
      : graph_(graph), program_(program), memory_of_(graph.tensors().size(), kNoTensor) {}

  int64_t Bytes() {
    FindMemories();
    FindLastReaders();
    int64_t now = 0;
    int64_t peak = 0;
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      for (const TensorId t : graph_.nodes()[n].outputs) {
        if (OwnsMemory(t)) now += BytesOf(t);
      }
      peak = std::max(peak, now);
      for (const TensorId t : ends_[n]) now -= BytesOf(t);
    }
    return peak;
  }

 private:
  bool OwnsMemory(TensorId t) const { return memory_of_[static_cast<size_t>(t)] == t; }

  int64_t BytesOf(TensorId t) const {
    const TensorType& type = graph_.tensor(t).type;
    return NumElements(type.shape.ToDims()) * DTypeBytes(type.dtype);
  }

  // A node whose loop ops are all index maps of its readers has no memory: its outputs are parts of
  // what it reads. Weights, constants and what follows from them are there before a run.
  void FindMemories() {
    std::vector<bool> computes(graph_.nodes().size(), false);
    const std::vector<bool> known = KnownBeforeRuns(program_);
    for (const LoopOp& op : program_.ops) {
      if (op.origin == kNoNode || op.IsAlias() || known[static_cast<size_t>(op.output)]) continue;
      computes[static_cast<size_t>(op.origin)] = true;
    }
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      const TensorId in = node.inputs.empty() ? kNoTensor : node.inputs[0];
      for (const TensorId t : node.outputs) {
        memory_of_[static_cast<size_t>(t)] = computes[n] ? t
                                             : in == kNoTensor
                                                 ? kNoTensor
                                                 : memory_of_[static_cast<size_t>(in)];
      }
    }
    for (const TensorId t : graph_.outputs()) memory_of_[static_cast<size_t>(t)] = kNoTensor;
  }

  // For each node the tensors whose memory is free after it.
  void FindLastReaders() {
    std::vector<size_t> last(graph_.tensors().size(), 0);
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      for (const std::vector<TensorId>& used : {node.inputs, node.outputs}) {
        for (const TensorId t : used) {
          if (t == kNoTensor) continue;
          const TensorId memory = memory_of_[static_cast<size_t>(t)];
          if (memory != kNoTensor) last[static_cast<size_t>(memory)] = n;
        }
      }
    }
    ends_.resize(graph_.nodes().size());
    for (size_t t = 0; t < last.size(); ++t) {
      if (OwnsMemory(static_cast<TensorId>(t))) ends_[last[t]].push_back(static_cast<TensorId>(t));
    }
  }

  const Graph& graph_;
  const Program& program_;
  std::vector<TensorId>
      memory_of_;  // the tensor whose memory a tensor lies in; kNoTensor: another's
  std::vector<std::vector<TensorId>> ends_;
};

}  // namespace

PlanOutline OutlineOf(const Graph& graph, const Plan& plan) {
  const absl::StatusOr<Program> program = BuildProgram(graph);
  if (!program.ok()) return {};
  PlanOutline out{.sections = {}, .op_by_op_peak_bytes = PeakOfNodes(graph, *program).Bytes()};
  const std::vector<NodeSections> sections = LayerSectionsOf(*program, graph.nodes().size());
  if (!sections.empty()) out.sections = SectionsOfGroups(plan, sections);
  return out;
}

}  // namespace fusion
