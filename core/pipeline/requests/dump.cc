#include "core/pipeline/requests/dump.h"

#include "core/graph/build/text.h"

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
    // Packing of a weight is a copy; what runs in a loop is of another program.
    if (model.groups[g].empty() || model.choice_of[g] < 0) continue;
    auto add = [&](std::string name, const std::vector<LoopId>& loops) {
      absl::StatusOr<Smg> smg = BuildSmg(model.program, loops);
      std::string text = smg.ok() ? ToString(*smg) : StrCat("# ", Message(smg.status()), "\n");
      out->push_back({DumpKind::kSmg, std::move(name), std::move(text)});
    };
    const std::vector<LoopId>& loops = model.groups[g];
    const auto& turns = model.choices[static_cast<size_t>(model.choice_of[g])].turns;
    if (turns.empty()) add(StrCat("group ", g), loops);
    for (size_t t = 0; t < turns.size(); ++t) {
      std::vector<LoopId> turn;
      for (int op : turns[t].ops) turn.push_back(loops[static_cast<size_t>(op)]);
      add(StrCat("group ", g, ", turn ", t), turn);
    }
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
