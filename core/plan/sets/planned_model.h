#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/bundle/plan.h"
#include "core/bundle/plan_lock.h"
#include "core/graph/program/program.h"
#include "core/plan/rules/registered.h"
#include "core/schedule/ir/schedule.h"
#include "core/schedule/lower/reference.h"

namespace fusion {

/// One kernel of a plan before it has code.
struct PlannedKernel {
  Schedule schedule;
  std::string text;  // of the schedule: equal texts are one kernel
  KernelReference reference;
  std::shared_ptr<const RegisteredMatch> registered = nullptr;  // null: code is generated
};

/// What a program is of: a graph, or one of its nodes that repeats it.
enum class ProgramOf : uint8_t { kGraph, kBody };

/// A plan and what its kernels are made from. plan.kernels[i] belongs to kernels[i]; their key and
/// symbol are still empty (they need a compiler to be named).
struct PlannedModel {
  Plan plan;
  std::vector<PlannedKernel> kernels;
  Program program;
  std::vector<std::vector<LoopId>> groups;  // loop ops of plan.groups[i]; empty for packing
  std::vector<LockedChoice> choices;        // how kernels of groups are cut, by first use
  // Of plan.groups[i] in `choices`; -1 for packing and for those of bodies.
  std::vector<int> choice_of;
  /// By group that stands for a repeat, see `groups`, the plan of its body.
  std::map<int, std::shared_ptr<const PlannedModel>> bodies = {};
  /// Where registered kernels do not run, and why; in bodies too.
  std::vector<std::string> notes = {};
  std::vector<bool> inner = {};  // of plan.groups: those of bodies
  /// Of the plans of bodies: what the ledger tells of their groups, and candidates weighed.
  std::vector<PlanDecision> inner_decisions = {};
  int64_t inner_candidates = 0;
  /// Of the plan of a family: by Plan::variants, which have no plans yet.
  std::vector<PlannedModel> variants = {};
};

}  // namespace fusion
