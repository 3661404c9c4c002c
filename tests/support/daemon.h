#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/status.h"
#include "tests/support/http.h"
#include "tests/support/scratch_dir.h"

namespace fusion {

/// How a program ended.
struct ProgramEnd {
  int exit_code = -1;  // -1: by a signal
  int signal = 0;
  std::string output;  // stdout and stderr
};

/// A real fusiond for tests. It ends with its test program at the latest.
///
///   auto daemon = TestDaemon::Start(FUSIOND, {"--store", dir.path("store")});
///   ... grpc::CreateChannel((*daemon)->address(), ...) ...
///   EXPECT_EQ((*daemon)->Stop().exit_code, 0);
///
/// Not thread-safe, but for output(). Start and destroy it on one thread.
class TestDaemon {
 public:
  /// Listens on a free port and a socket file, has an admin port and does not drain, unless `args`
  /// say otherwise.
  /// Returns when the server says that it is listening; Unavailable with its words if it ends.
  static absl::StatusOr<std::unique_ptr<TestDaemon>> Start(const std::string& program,
                                                           std::vector<std::string> args = {});
  /// Runs the program to its end: for what must not start.
  static ProgramEnd RunToEnd(const std::string& program, const std::vector<std::string>& args);

  /// Kills it if it still runs.
  ~TestDaemon();

  /// The first address it listens on.
  const std::string& address() const { return address_; }
  /// The first unix socket, on which this process is an administrator; empty: there is none.
  const std::string& local_address() const { return local_; }
  const std::string& admin_address() const { return admin_; }
  pid_t pid() const { return pid_; }
  /// Its log so far.
  std::string output() const;
  /// True once the log contains `text`; false after some 30 s, or if the program has ended.
  bool WaitForOutput(const std::string& text);

  void Send(int signal) const;
  /// Waits for the end; kills it after 60 s.
  ProgramEnd Wait();
  /// SIGTERM and Wait().
  ProgramEnd Stop();

 private:
  TestDaemon() = default;
  absl::Status Spawn(const std::string& program, const std::vector<std::string>& args);
  bool Ended();

  ScratchDir dir_;
  pid_t pid_ = -1;
  int wait_status_ = -1;  // once it has ended
  std::string address_;
  std::string local_;
  std::string admin_;
};

}  // namespace fusion
