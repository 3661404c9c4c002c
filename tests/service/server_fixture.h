#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/service/fusion_caller.h"
#include "tests/support/daemon.h"

namespace fusion {

/// Waits before it compiles until a file is there, and fails where another one is.
inline constexpr std::string_view kGatedCompiler = R"(#!/bin/sh
case "$1" in --version|-print-prog-name=*) exec /usr/bin/g++ "$@";; esac
while [ ! -e "$(dirname "$0")/open" ]; do sleep 0.01; done
[ ! -e "$(dirname "$0")/broken" ] || exit 1
exec /usr/bin/g++ "$@"
)";

/// False if it does not come true within half a minute.
template <typename Condition>
bool Eventually(Condition condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

/// A compiler whose kernels crash or hang as long as there is a file "bomb" or "hang" beside it.
inline constexpr std::string_view kBombingCompiler = R"sh(#!/bin/sh
case "$1" in --version|-print-prog-name=*) exec /usr/bin/g++ "$@";; esac
if [ -e "$(dirname "$0")/bomb" ]; then
  echo '__attribute__((constructor)) static void Bomb() { __builtin_trap(); }' >> kernel.cc
elif [ -e "$(dirname "$0")/hang" ]; then
  echo '__attribute__((constructor)) static void Hang() { for (;;) __builtin_ia32_pause(); }' >> kernel.cc
fi
exec /usr/bin/g++ "$@"
)sh";

/// A real fusiond and a caller.
class ServerTest : public testing::Test {
 protected:
  void Start(std::vector<std::string> args = {}) {
    absl::StatusOr<std::unique_ptr<TestDaemon>> daemon = TestDaemon::Start(FUSIOND, args);
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
    caller_ = std::make_unique<FusionCaller>(daemon_->address());
    if (daemon_->local_address().empty()) return;
    admin_ = std::make_unique<FusionCaller>(daemon_->local_address());
  }
  void StartWithStore() { Start({"--store", dir_.path("store")}); }

  // A program for --allow-compiler, which needs --sandbox none to see files beside it.
  std::string WriteCompiler(std::string_view text) {
    std::string path = dir_.Write("own-g++", std::string(text));
    EXPECT_EQ(chmod(path.c_str(), 0700), 0);
    return path;
  }
  // With a compiler that waits while the gate is closed.
  void StartGated(std::vector<std::string> args = {}) {
    const std::string compiler = WriteCompiler(kGatedCompiler);
    OpenGate();  // for the probes of the start
    // Its gate is a file beside it, which is out of sight where bubblewrap works.
    args.insert(args.end(), {"--allow-compiler", compiler, "--sandbox", "none"});
    Start(args);
  }
  void OpenGate() { dir_.Write("open", ""); }
  void CloseGate() { std::filesystem::remove(dir_.path("open")); }

  nlohmann::json Status() const {
    return nlohmann::json::parse(HttpGet(daemon_->admin_address(), "/statusz").body, nullptr,
                                 false);
  }
  std::string Metrics() const { return HttpGet(daemon_->admin_address(), "/metrics").body; }
  // The value of one series, by its text; -1 if it is not there.
  double Metric(const std::string& series) const {
    std::string text = "\n" + Metrics();
    size_t at = text.find("\n" + series + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + series.size() + 2));
  }

  static std::vector<std::string> KeysOf(const v1::PlanFusionResponse& response) {
    std::vector<std::string> keys;
    for (const v1::PlanKernel& kernel : response.plan().kernels()) keys.push_back(kernel.key());
    return keys;
  }
  static std::vector<v1::KernelState> StatesOf(const v1::PlanFusionResponse& response) {
    std::vector<v1::KernelState> states;
    for (const v1::KernelStatus& kernel : response.kernels()) states.push_back(kernel.state());
    return states;
  }

  ScratchDir dir_;
  std::unique_ptr<TestDaemon> daemon_;
  std::unique_ptr<FusionCaller> caller_;
  std::unique_ptr<FusionCaller> admin_;  // on the socket file, if there is one
};

}  // namespace fusion
