#include "core/pipeline/dump.h"

#include "core/graph/text.h"

namespace fusion {

void AppendDumps(const CanonicalGraph& graph, const DumpKinds& wanted, std::vector<Dump>* out) {
  if (wanted.contains(DumpKind::kGraph)) {
    out->push_back({DumpKind::kGraph, "graph", ToString(graph.graph)});
  }
}

void AppendDumps(const PlannedModel& model, const DumpKinds& wanted, std::vector<Dump>* out) {
  if (wanted.contains(DumpKind::kProgram)) {
    out->push_back({DumpKind::kProgram, "program", ToString(model.program)});
  }
  if (!wanted.contains(DumpKind::kSmg)) return;
  for (size_t g = 0; g < model.groups.size(); ++g) {
    if (model.groups[g].empty()) continue;  // packing of a weight: a copy
    absl::StatusOr<Smg> smg = BuildSmg(model.program, model.groups[g]);
    std::string text = smg.ok() ? ToString(*smg) : StrCat("# ", Message(smg.status()), "\n");
    out->push_back({DumpKind::kSmg, StrCat("group ", g), std::move(text)});
  }
}

void AppendDumps(const NamedKernels& kernels, const DumpKinds& wanted, std::vector<Dump>* out) {
  for (DumpKind kind : {DumpKind::kSchedule, DumpKind::kSource}) {
    if (!wanted.contains(kind)) continue;
    for (const CompileJob& job : kernels.jobs) {
      const std::string& text = kind == DumpKind::kSource ? job.source : job.schedule;
      // No code generator, no source.
      if (!text.empty()) out->push_back({kind, job.key.ToHex(), text});
    }
  }
}

}  // namespace fusion
