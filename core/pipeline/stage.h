#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/pipeline/dump.h"

namespace fusion {

/// What the stages of one request share. Not thread-safe; refers to its parts.
struct StageContext {
  const CancelToken& cancel;
  const Clock& clock;
  /// Texts the request asked for.
  DumpKinds wanted = {};
  /// What the stages leave behind, in order.
  std::vector<StageTime> times = {};
  std::vector<Dump> dumps = {};
};

/// Runs one stage of a request, a function from value to value: checks that the request still wants
/// an answer, runs, verifies the result if its type has Verify(), records the time, and dumps the
/// result if asked. The only place that does so between stages.
///
///   ASSIGN_OR_RETURN(Graph graph, RunStage(context, "import", [&] { return ImportGraph(...); }));
template <typename Run>
auto RunStage(StageContext& context, std::string_view name, Run run) -> decltype(run()) {
  RETURN_IF_ERROR(context.cancel.Check());
  Nanoseconds start = context.clock.Now();
  auto result = run();
  if constexpr (requires { static_cast<absl::Status>(Verify(*result)); }) {
    if (result.ok()) {
      absl::Status sound = Verify(*result);
      if (!sound.ok()) return Internal("stage ", name, " gave a bad result: ", Message(sound));
    }
  }
  context.times.push_back({std::string(name), context.clock.Now() - start});
  if constexpr (requires { AppendDumps(*result, context.wanted, &context.dumps); }) {
    if (result.ok() && !context.wanted.empty()) {
      AppendDumps(*result, context.wanted, &context.dumps);
    }
  }
  return result;
}

}  // namespace fusion
