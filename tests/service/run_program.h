#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/base/files/unique_fd.h"
#include "tests/support/scratch_dir.h"

namespace fusion {

/// A program under test with stdout and stderr in files. Kill and reap it by Wait().
class TestProcess {
 public:
  /// Starts `words[0]`; the program must exist.
  explicit TestProcess(const std::vector<std::string>& words);
  ~TestProcess();

  pid_t pid() const { return pid_; }
  /// Waits for its end: the exit code, or minus the signal.
  int Wait();
  std::string out() const;
  std::string err() const;

 private:
  ScratchDir dir_;
  pid_t pid_ = -1;
};

struct ProgramResult {
  int code = 0;  // minus the signal
  std::string out;
  std::string err;
};
ProgramResult RunProgram(const std::vector<std::string>& words);

/// The same on a terminal of 80 columns, which is stdin, stdout and stderr: all that it shows is in
/// `out`. `environment`: NAME=VALUE, on top of this process's.
ProgramResult RunOnTerminal(const std::vector<std::string>& words,
                            const std::vector<std::string>& environment = {});

/// The child of `parent` whose program is called `name`, held by a descriptor that becomes readable
/// when it ends. Waits for it to appear, and for as long as `parent` runs.
UniqueFd AwaitChild(pid_t parent, const std::string& name, pid_t* child);

/// True once the process behind such a descriptor has ended; false after a minute.
bool AwaitEnd(const UniqueFd& process);

}  // namespace fusion
