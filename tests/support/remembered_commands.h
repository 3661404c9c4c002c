#pragma once

#include <memory>
#include <string>

#include "core/base/hash.h"
#include "core/compile/command.h"

namespace fusion {

/// A runner for commands whose results follow from their arguments and from the files of their
/// directory, as those of compilers do. What a command that exits with 0 leaves in its directory is
/// kept under `store`, a directory that may not exist yet, and found there the next time, also by
/// other processes; what it printed is not kept. `tools`: identifies the programs that are run.
/// Commands that fail are run again.
std::unique_ptr<CommandRunner> RememberCommands(std::unique_ptr<CommandRunner> runner,
                                                const Digest& tools, const std::string& store);

}  // namespace fusion
