#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "core/compile/toolchain.h"

namespace fusion {

/// Answers like g++ and ld without running anything; `on_compile` (if set) decides about compile
/// commands.
class FakeTools final : public CommandRunner {
 public:
  std::function<CommandResult(const Command&)> on_compile;
  /// What -print-prog-name answers.
  std::string program_path = "/bin/true\n";

  absl::StatusOr<CommandResult> Run(const Command& command) override {
    CommandResult result;
    result.exit_code = 0;
    result.how = "exited with 0";
    const std::string& what = command.argv[1];
    if (what == "--version") {
      result.output = "g++ (Fake) 99.1\nCopyright (C) Free Software Foundation, Inc.\n";
    } else if (what.starts_with("-print-prog-name=")) {
      result.output = program_path;
    } else if (what != "-shared" && on_compile) {
      return on_compile(command);
    }
    return result;
  }
};

inline ToolchainOptions FakeToolchainOptions() {
  ToolchainOptions options;
  options.allowed = {"/bin/true"};
  options.linker = "/bin/true";
  options.scratch_dir = testing::TempDir();
  return options;
}

}  // namespace fusion
