#pragma once

#include <cstddef>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/bundle/plan.h"

namespace fusion {

/// The launches of a plan in the order in which a run makes them: those of loops once in every
/// pass. Keeps where the places of loops are in the pass under way. For one run at a time.
class LoopWalk {
 public:
  /// `where` gives the memory of a tensor that is at no place; `launch` makes one launch.
  struct Steps {
    absl::FunctionRef<std::byte*(int tensor)> where;
    absl::FunctionRef<absl::Status(int launch)> launch;
  };

  /// `plan`, which passes Verify, outlives it.
  explicit LoopWalk(const Plan& plan);

  /// Where the symbols have these values. ResourceExhausted where a loop would go on behind the
  /// passes that there is room for, else as the launches.
  absl::Status Run(const Steps& steps, const std::vector<int64_t>& units);

  /// Of a launch under way.
  std::byte* place(size_t number) const { return places_[number]; }

 private:
  // What a loop is where the symbols have the values of the run.
  struct Sizes {
    int64_t most = 0;               // passes
    std::vector<int64_t> carried;   // bytes
    std::vector<int64_t> elements;  // bytes of one
  };

  void SetSizes(const std::vector<int64_t>& units);
  absl::Status Range(int begin, int end, size_t loop, const Steps& steps);
  absl::Status Passes(size_t l, const Steps& steps);
  std::byte* Where(int tensor, const Steps& steps) const;
  // `most`: passes that this run may make.
  void Begin(size_t l, int64_t pass, int64_t most, const Steps& steps);
  void End(size_t l, int64_t passes, const Steps& steps);

  const Plan& plan_;
  std::vector<std::byte*> places_;
  std::vector<int64_t> units_;  // that the sizes are for
  std::vector<Sizes> sizes_;    // by loop
};

}  // namespace fusion
