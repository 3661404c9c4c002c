#include "core/view/draw_svg.h"

#include <cmath>

#include "core/base/files/scratch.h"
#include "core/base/text/human_numbers.h"
#include "core/base/text/text.h"

namespace fusion {
namespace {

// The exit code of env(1) if there is no such program in a directory of PATH.
constexpr int kNoProgram = 127;

}  // namespace

bool CanDraw(CommandRunner& runner) {
  const absl::StatusOr<CommandResult> ended =
      runner.Run({.argv = {"/usr/bin/env", "dot", "-V"}, .wall_limit = std::chrono::seconds(5)});
  return ended.ok() && ended->end == CommandEnd::kExited && ended->exit_code == 0;
}

absl::StatusOr<std::string> DrawSvg(const std::string& dot, CommandRunner& runner,
                                    const DrawLimits& limits) {
  ASSIGN_OR_RETURN(Scratch directory, Scratch::Create("/tmp", "fusion-dot-"));
  const std::string out = directory.path() + "/plan.svg";
  RETURN_IF_ERROR(WriteFile(directory.path() + "/plan.dot", dot));
  Command command{.argv = {"/usr/bin/env", "dot", "-Tsvg", "-o", "plan.svg", "plan.dot"},
                  .dir = directory.path(),
                  .wall_limit = limits.wall};
  command.limits = {
      .cpu_seconds = static_cast<int64_t>(std::ceil(ToMilliseconds(limits.wall) / 1e3)),
      .memory_bytes = limits.memory_bytes,
      .file_bytes = limits.svg_bytes,
      .open_files = 64};
  ASSIGN_OR_RETURN(const CommandResult ended, runner.Run(command));
  if (ended.end == CommandEnd::kTimedOut) {
    return ResourceExhausted("drawing takes more than ",
                             HumanMicroseconds(ToMicroseconds(limits.wall)));
  }
  if (ended.end == CommandEnd::kExited && ended.exit_code == kNoProgram) {
    return FailedPrecondition("graphviz is not installed, which draws pictures");
  }
  if (ended.end != CommandEnd::kExited || ended.exit_code != 0) {
    return Internal("dot ", ended.how, ": ", ended.output);
  }
  return ReadFile(out, limits.svg_bytes);
}

}  // namespace fusion
