// bin/fusionctl: plans, runs and checks ONNX models as fused kernels. See --help.
#include <google/protobuf/stubs/logging.h>
#include <malloc.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/args/exit_code.h"
#include "client/fusionctl/args/user_words.h"
#include "client/fusionctl/commands/commands.h"
#include "client/fusionctl/input/option_files.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "core/base/files/file.h"
#include "core/base/threads/shortage.h"

namespace fusion {
namespace {

using RunCommand = absl::StatusOr<ExitCode> (*)(const Arguments&, Progress*);

RunCommand CommandOf(CommandKind kind) {
  switch (kind) {
    case CommandKind::kPlan:
      return RunPlan;
    case CommandKind::kRun:
      return RunRun;
    case CommandKind::kBench:
      return RunBench;
    case CommandKind::kVerify:
      return RunVerify;
    case CommandKind::kShow:
      return RunShow;
    case CommandKind::kExport:
      return RunExport;
    case CommandKind::kExplain:
      return RunExplain;
    case CommandKind::kDiff:
      return RunDiff;
    case CommandKind::kKernels:
      return RunKernels;
    case CommandKind::kRepro:
      return RunRepro;
    case CommandKind::kReport:
      return RunReport;
    case CommandKind::kTune:
      return RunTune;
    case CommandKind::kEpochs:
      return RunEpochs;
    case CommandKind::kProbe:
      return RunProbe;
    case CommandKind::kList:
      return RunList;
    case CommandKind::kCapabilities:
      return RunCapabilities;
    case CommandKind::kStatus:
      return RunStatus;
    case CommandKind::kTop:
      return RunTop;
    case CommandKind::kToken:
      return RunToken;
    case CommandKind::kStore:
      return RunStore;
    case CommandKind::kCompletion:
      return RunCompletion;
  }
  return nullptr;
}

// --user-cache: sets the user's cache directory (XDG Base Directory).
absl::Status FindUserCache(Arguments* arguments) {
  if (!arguments->user_cache) return absl::OkStatus();
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  // The specification says to ignore relative paths.
  if (cache != nullptr && cache[0] == '/') {
    arguments->cache = StrCat(cache, "/fusiond");
  } else if (home != nullptr && home[0] == '/') {
    arguments->cache = StrCat(home, "/.cache/fusiond");
  } else {
    return InvalidArgument(
        "--user-cache: neither XDG_CACHE_HOME nor HOME is set; expected "
        "--cache DIR");
  }
  return absl::OkStatus();
}

// Checks before the work that output files can be written.
absl::Status CheckOutputs(const Arguments& a) {
  const bool out_is_file = a.command != CommandKind::kRun;  // there it is a directory
  for (const auto& [option, path] : {std::pair{"--write-lock", a.write_lock},
                                     {"--trace", a.trace},
                                     {"--dot", a.dot},
                                     {"--svg", a.svg},
                                     {"--save", a.save},
                                     {"--html", a.html},
                                     {"--out", out_is_file ? a.out : ""}}) {
    if (path.empty()) continue;
    // A file of --out appears complete or not at all.
    const bool replaces = std::string_view(option) == "--out";
    const absl::Status good = replaces ? CheckReplacesFile(path) : CheckWritesFile(path);
    RETURN_IF_ERROR(Annotate(good, StrCat(option, ": file ", Quote(path))));
  }
  return absl::OkStatus();
}

absl::StatusOr<ExitCode> RunWithFiles(Arguments* arguments, Progress* progress) {
  RETURN_IF_ERROR(CheckOutputs(*arguments));
  RETURN_IF_ERROR(LoadRules(arguments));
  RETURN_IF_ERROR(LoadCustomOps(arguments));
  RETURN_IF_ERROR(LoadDeviceConstants(arguments));
  RETURN_IF_ERROR(FindUserCache(arguments));
  return CommandOf(arguments->command)(*arguments, progress);
}

// Makes a message one line, even with a compiler's output in it. Keeps indented lines, which show a
// place in a text.
std::string OneLine(std::string text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const bool shows = text[i] == '\n' && text.compare(i + 1, 2, "  ") == 0;
    if ((text[i] == '\n' && !shows) || text[i] == '\r' || text[i] == '\t') text[i] = ' ';
  }
  return text;
}

void PrintError(bool json, std::string_view code, const std::string& message) {
  PrintWarning(OneLine(message));
  if (json) PrintJson(Json{{"error", {{"code", code}, {"message", message}}}});
}

bool wants_json = false;  // for what is said where the program ends

// The terminate handler. The stack is not unwound: if no thread can be started, gRPC's destructors
// block forever. The next start removes left-over files (Scratch).
[[noreturn]] void EndProgram() {
  if (!IsShortage(std::current_exception())) std::abort();
  // Nothing here allocates memory.
  std::fprintf(stderr, "fusionctl: %s\n", kShortage);
  if (wants_json) {
    std::printf("{\n  \"error\": {\n    \"code\": \"RESOURCE_EXHAUSTED\",\n");
    std::printf("    \"message\": \"%s\"\n  }\n}\n", kShortage);
    std::fflush(stdout);
  }
  std::_Exit(kExitNoMemory);
}

// `code`, or kExitService if output was lost, such as on a full disk. A closed pipe is not an
// error.
ExitCode Flushed(ExitCode code) {
  if (std::fflush(stdout) == 0 || errno == EPIPE || code != kExitOk) return code;
  PrintWarning(StrCat("standard output cannot be written: ", std::strerror(errno)));
  return kExitService;
}

int Main(int argc, char** argv) {
  // Libraries' messages become part of our own errors; a closed pipe is noticed by EPIPE.
  google::protobuf::SetLogHandler(nullptr);
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/1);
  signal(SIGPIPE, SIG_IGN);
  wants_json = std::any_of(argv, argv + argc, [](std::string_view a) { return a == "--json"; });
  std::set_terminate(EndProgram);
  // Otherwise every thread reserves 64 MiB of address space, which may be limited.
  mallopt(M_ARENA_MAX, 2);
  if (std::getenv("NO_COLOR") != nullptr) ForbidColour();
  ParsedArguments parsed = ParseArguments(argc, argv);
  if (parsed.exit_code == kExitOk) {
    PrintAsItIs(parsed.text);  // help has a width of its own
    return Flushed(kExitOk);
  }
  if (parsed.exit_code) {
    PrintError(wants_json, "USAGE",
               StrCat(parsed.text, parsed.text.ends_with('?') ? " " : "; ", "see fusionctl ",
                      parsed.command, parsed.command.empty() ? "" : " ", "--help"));
    return *parsed.exit_code;
  }
  const char* terminal = std::getenv("TERM");
  bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  Progress progress(!parsed.arguments.json && !parsed.arguments.quiet && !dumb);
  // Not options: every process of the machine can read command lines.
  if (const char* token = std::getenv("FUSION_TOKEN")) parsed.arguments.token = token;
  if (const char* trace = std::getenv("TRACEPARENT")) parsed.arguments.traceparent = trace;
  absl::Status loaded = LoadLock(&parsed.arguments);
  absl::StatusOr<ExitCode> code = loaded.ok() ? RunWithFiles(&parsed.arguments, &progress) : loaded;
  progress.Clear();
  if (code.ok()) return Flushed(*code);
  absl::Status status = LocateRule(code.status(), parsed.arguments);
  PrintError(parsed.arguments.json, absl::StatusCodeToString(status.code()),
             InUserWords(Message(status), parsed.arguments));
  return ExitCodeOf(status);
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) { return fusion::Main(argc, argv); }
