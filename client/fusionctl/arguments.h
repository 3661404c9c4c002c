#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/bundle/options.h"

namespace fusion {

/// What the process answers; the same for every command.
enum ExitCode : int {
  kExitOk = 0,
  kExitMismatch = 1,  // verify: outputs differ
  kExitUsage = 2,
  kExitBadInput = 3,  // a file is missing or malformed, an op is not supported, data do not fit
  kExitService = 4,   // fusiond cannot be reached or started, or failed
  kExitNoMemory = 5,  // this process has too little memory for the model
};

enum class CommandKind : uint8_t { kPlan, kRun, kVerify, kShow, kKernels, kStatus };
enum class ShowWhat : uint8_t { kGraph, kProgram, kSmg, kSchedule, kPlan, kSource };
enum class ShowFormat : uint8_t { kText, kJson, kDot };

/// The command line, checked as far as it goes without looking at a file.
struct Arguments {
  CommandKind command = CommandKind::kPlan;
  std::string model;
  bool json = false;

  // Where the plan comes from.
  std::string server;   // empty: an embedded one
  std::string fusiond;  // program of the embedded server; empty: beside this one
  std::string store;    // of the embedded server; empty: none
  int workers = 0;      // of the embedded server; 0: its default

  // What is asked for.
  int threads = 0;  // 0: usable cores
  std::string isa;  // empty: this machine's
  PlanOptions options;

  // Of single commands.
  std::string data;            // run, verify
  std::optional<double> atol;  // verify
  std::optional<double> rtol;  // verify
  uint64_t seed = 1;           // run, verify
  int repeat = 50;             // run
  bool node_names = false;     // plan
  bool compile = true;         // plan
  ShowWhat what = ShowWhat::kPlan;
  ShowFormat format = ShowFormat::kText;
};

/// The outcome of reading the command line.
struct ParsedArguments {
  Arguments arguments;
  /// Set if the program should print `text` and leave: kExitOk for --help and --version (stdout),
  /// kExitUsage (one line, stderr).
  std::optional<ExitCode> exit_code;
  std::string text;
};

ParsedArguments ParseArguments(int argc, const char* const* argv);

}  // namespace fusion
