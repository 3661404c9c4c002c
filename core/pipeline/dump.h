#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/graph/canonical.h"
#include "core/pipeline/kernels.h"
#include "core/plan/planner.h"

namespace fusion {

/// Texts for people, made from the values between stages.
enum class DumpKind : uint8_t {
  kGraph,     // the normalised graph
  kProgram,   // its loop ops
  kSmg,       // space-mapping graph of each group
  kSchedule,  // schedule of each kernel
  kSource,    // generated source of each kernel
};
using DumpKinds = std::set<DumpKind>;

struct Dump {
  DumpKind kind = DumpKind::kGraph;
  std::string name;  // "graph", "program", "group 3", or the key of a kernel in hex
  std::string text;
};

/// One overload per stage result that has something to show; RunStage calls them.
void AppendDumps(const CanonicalGraph& graph, const DumpKinds& wanted, std::vector<Dump>* out);
void AppendDumps(const PlannedModel& model, const DumpKinds& wanted, std::vector<Dump>* out);
void AppendDumps(const NamedKernels& kernels, const DumpKinds& wanted, std::vector<Dump>* out);

}  // namespace fusion
