#pragma once

#include <cstddef>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/bundle/plan.h"

namespace fusion {

/// Walks the launches of a plan in the order in which a run makes them: those of loops (PlanLoop)
/// once in every pass. Keeps the current address of each place (Space::kPass): a tensor whose
/// memory differs in each pass. For one run at a time.
class LoopWalk {
 public:
  /// `where` returns the memory of a tensor that is not at a place of a loop. `launch` makes one
  /// launch.
  struct Steps {
    absl::FunctionRef<std::byte*(int tensor)> where;
    absl::FunctionRef<absl::Status(int launch)> launch;
  };

  /// `plan` must pass Verify and outlive this object.
  explicit LoopWalk(const Plan& plan);

  /// Makes all launches of one run. `units`: the values of the symbols (SymbolUnits); empty if
  /// there are none. ResourceExhausted if a loop that must end would make more passes than it has
  /// room for. Errors of `launch` are passed on.
  absl::Status Run(const Steps& steps, const std::vector<int64_t>& units);

  /// The address of place `number`. Valid during Steps::launch.
  std::byte* place(size_t number) const { return places_[number]; }

 private:
  // The sizes of a loop for the symbols' values of the run.
  struct Sizes {
    int64_t most = 0;               // maximal number of passes
    std::vector<int64_t> carried;   // bytes, by PlanLoop::carried
    std::vector<int64_t> elements;  // bytes of one element, by PlanLoop::elements
  };

  void SetSizes(const std::vector<int64_t>& units);
  absl::Status Range(int begin, int end, size_t loop, const Steps& steps);
  absl::Status Passes(size_t l, const Steps& steps);
  std::byte* Where(int tensor, const Steps& steps) const;
  // `most`: maximal number of passes in this run.
  void Begin(size_t l, int64_t pass, int64_t most, const Steps& steps);
  void End(size_t l, int64_t passes, const Steps& steps);

  const Plan& plan_;
  std::vector<std::byte*> places_;
  std::vector<int64_t> units_;  // those that sizes_ is for
  std::vector<Sizes> sizes_;    // by loop
};

}  // namespace fusion
