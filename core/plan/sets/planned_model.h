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

/// One kernel of a plan, before code is generated.
struct PlannedKernel {
  Schedule schedule;
  std::string text;  // text form of the schedule; kernels with equal texts are one kernel
  KernelReference reference;
  std::shared_ptr<const RegisteredMatch> registered = nullptr;  // null: generated code
};

/// Whether a program is that of a whole graph or of the body that one of its nodes repeats.
enum class ProgramOf : uint8_t { kGraph, kBody };

/// A plan with the data from which its kernels are made. kernels[i] belongs to plan.kernels[i],
/// whose key and symbol are still empty: naming them needs a compiler.
struct PlannedModel {
  Plan plan;
  std::vector<PlannedKernel> kernels;
  Program program;
  /// By group of plan.groups: its loop ops. Empty for packing and for groups of loop bodies, except
  /// the one that stands for its repeat.
  std::vector<std::vector<LoopId>> groups;
  std::vector<LockedChoice> choices;  // the tilings of groups, in order of first use
  // By group of plan.groups: position in `choices`; -1 for packing and for groups of loop bodies.
  std::vector<int> choice_of;
  /// By group that stands for a repeat (position in `groups`): the plan of its body.
  std::map<int, std::shared_ptr<const PlannedModel>> bodies = {};
  /// Where registered kernels do not run, with reasons; bodies included.
  std::vector<std::string> notes = {};
  std::vector<bool> inner = {};  // by group of plan.groups: true for groups of loop bodies
  /// From the plans of bodies: the ledger entries of their groups, and the number of candidates.
  std::vector<PlanDecision> inner_decisions = {};
  int64_t inner_candidates = 0;
  /// In the plan of a family: the models of Plan::variants, which have no plans yet.
  std::vector<PlannedModel> variants = {};
};

}  // namespace fusion
