#include "core/compile/toolchain.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/base/files/file.h"
#include "core/base/files/server_state.h"
#include "core/compile/freestanding.h"

namespace fusion {
namespace {

constexpr int64_t kMaxToolBytes = int64_t{1} << 30;
constexpr size_t kMaxQuotedLog = 400;

// Never -ffast-math (it removes the rounding trick of exp and the result is silently wrong) and
// never -march=native (the caller's machine decides, not ours).
constexpr const char* kCommonFlags[] = {
    "-std=c++17",
    "-O2",
    "-fPIC",
    "-pipe",  // saves 3 ms of 30: no temporary file between compiler and assembler
    "-g0",
    "-w",
    "-ffreestanding",  // no calls to libc or libm are made up
    "-nostdinc",
    "-nostdinc++",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-threadsafe-statics",
    "-fno-stack-protector",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-asynchronous-unwind-tables",
    "-march=x86-64-v2",
};
constexpr const char* kAvx2Flags[] = {"-mavx2", "-mfma", "-mbmi2", "-mf16c"};
constexpr const char* kAvx512Flags[] = {"-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl",
                                        "-mprefer-vector-width=512"};
constexpr const char* kAvx512VnniFlags[] = {"-mavx512vnni"};
constexpr const char* kAvx512Bf16Flags[] = {"-mavx512bf16"};
constexpr const char* kAvx512AmxFlags[] = {"-mamx-tile", "-mamx-bf16", "-mamx-int8"};
// "-z defs": a stray memset would otherwise be found in whatever process loads the kernel.
constexpr const char* kLinkFlags[] = {"-shared",
                                      "-z",
                                      "defs",
                                      "-z",
                                      "noexecstack",
                                      "-z",
                                      "relro",
                                      "-z",
                                      "now",
                                      "--build-id=none",
                                      "--hash-style=gnu"};

// Vectors, a contraction and a zeroed array (which becomes a memset): what kernels are made of.
constexpr std::string_view kProbeSource = R"(
typedef float V __attribute__((vector_size(64)));
extern "C" void fusion_probe(V* a, const V* b, long n) {
  V sum[8] = {};
  for (long i = 0; i < n; ++i) sum[i % 8] += a[i] * b[i];
  for (int k = 0; k < 8; ++k) a[k] = sum[k];
}
)";

std::string BaseName(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::string FirstLine(const std::string& text) {
  return std::string(StripSpace(std::string_view(text).substr(0, text.find('\n'))));
}

absl::StatusOr<std::string> Choose(const ToolchainOptions& options) {
  auto executable = [](const std::string& path) { return access(path.c_str(), X_OK) == 0; };
  for (const std::string& path : options.allowed) {
    if (path.empty() || path[0] != '/') {
      return InvalidArgument("compiler ", Quote(path), ": expected an absolute path");
    }
  }
  if (!options.compiler.empty()) {
    const auto& allowed = options.allowed;
    if (std::find(allowed.begin(), allowed.end(), options.compiler) == allowed.end()) {
      return InvalidArgument("compiler ", Quote(options.compiler),
                             " is not allowed; allowed: ", StrJoin(options.allowed, ", "));
    }
    if (executable(options.compiler)) return options.compiler;
    return FailedPrecondition("compiler ", Quote(options.compiler), " cannot be executed");
  }
  for (const std::string& path : options.allowed) {
    if (executable(path)) return path;
  }
  return FailedPrecondition("no compiler found; looked for ", StrJoin(options.allowed, ", "));
}

// The output of `argv`, which must succeed.
absl::StatusOr<std::string> Ask(CommandRunner& runner, const std::string& dir,
                                std::vector<std::string> argv) {
  Command command;
  command.argv = std::move(argv);
  command.dir = dir;
  ASSIGN_OR_RETURN(CommandResult result, runner.Run(command));
  if (result.end == CommandEnd::kExited && result.exit_code == 0) return result.output;
  return FailedPrecondition(StrJoin(command.argv, " "), " ", result.how, ": ",
                            StripSpace(result.output.substr(0, kMaxQuotedLog)));
}

// What g++, the driver, runs.
absl::StatusOr<std::vector<std::string>> GccPrograms(CommandRunner& runner, const std::string& dir,
                                                     const std::string& compiler) {
  std::vector<std::string> programs;
  for (const char* name : {"cc1plus", "as"}) {
    ASSIGN_OR_RETURN(std::string path,
                     Ask(runner, dir, {compiler, StrCat("-print-prog-name=", name)}));
    path = FirstLine(path);
    if (path.empty()) {
      return FailedPrecondition("compiler ", Quote(compiler),
                                " is neither GCC nor clang; it does not know where its ", name,
                                " is");
    }
    // GCC prints the bare name of a program that it will look up in PATH.
    programs.push_back(path.find('/') == std::string::npos ? StrCat("/usr/bin/", path) : path);
  }
  return programs;
}

// The libraries that clang's driver, a small program, does its work in.
absl::StatusOr<std::vector<std::string>> ClangLibraries(CommandRunner& runner,
                                                        const std::string& dir,
                                                        const std::string& compiler) {
  ASSIGN_OR_RETURN(std::string listing,
                   Ask(runner, dir, {"/lib64/ld-linux-x86-64.so.2", "--list", compiler}));
  std::vector<std::string> libraries;
  for (std::string_view line : StrSplit(listing, '\n')) {
    if (line.find("libclang") == std::string_view::npos &&
        line.find("libLLVM") == std::string_view::npos) {
      continue;
    }
    size_t begin = line.find('/');
    if (begin == std::string_view::npos) continue;
    line = line.substr(begin);
    libraries.emplace_back(line.substr(0, line.find(' ')));
  }
  return libraries;
}

absl::Status AddTool(const std::string& path, FieldHasher* hasher) {
  absl::StatusOr<std::string> bytes = ReadFile(path, kMaxToolBytes);
  if (!bytes.ok()) return FailedPrecondition("toolchain: ", Message(bytes.status()));
  hasher->Add(BaseName(path), Sha256(*bytes).ToHex());
  return absl::OkStatus();
}

// Members of an untrusted record. Empty, or false, if they have another type: `value()` of the
// library would throw.
std::string TextIn(const nlohmann::json& record, const char* name) {
  const auto it = record.find(name);
  return it != record.end() && it->is_string() ? it->get<std::string>() : std::string();
}

bool FlagIn(const nlohmann::json& record, const char* name) {
  const auto it = record.find(name);
  return it != record.end() && it->is_boolean() && it->get<bool>();
}

bool Lists(const nlohmann::json& record, const char* name, std::string_view text) {
  const auto it = record.find(name);
  return it != record.end() && it->is_array() &&
         std::find(it->begin(), it->end(), nlohmann::json(std::string(text))) != it->end();
}

template <size_t N>
void Append(const char* const (&flags)[N], std::vector<std::string>* argv) {
  argv->insert(argv->end(), flags, flags + N);
}

}  // namespace

absl::StatusOr<Toolchain> Toolchain::Open(const ToolchainOptions& options, CommandRunner& runner) {
  Toolchain toolchain;
  ASSIGN_OR_RETURN(toolchain.compiler_, Choose(options));
  toolchain.linker_ = options.linker;
  ASSIGN_OR_RETURN(TempDir dir, TempDir::Create(options.scratch_dir, "probe-"));
  RETURN_IF_ERROR(toolchain.Identify(runner, dir.path()));
  RETURN_IF_ERROR(WriteSource(dir.path(), kProbeSource));
  bool any = false;
  for (Isa isa : kIsas) {
    absl::Status& supported = toolchain.supported_[static_cast<size_t>(isa)];
    supported = toolchain.Probe(runner, dir.path(), isa);
    any |= supported.ok();
  }
  if (!any) return toolchain.SupportsIsa(Isa::kX86V2);
  return toolchain;
}

Toolchain Toolchain::Without(const ToolchainOptions& options, absl::Status why,
                             std::string_view record) {
  Toolchain toolchain;
  toolchain.missing_ = std::move(why);
  toolchain.supported_.fill(toolchain.missing_);
  // Untrusted: others with write access beside the store may have changed it.
  const nlohmann::json known = nlohmann::json::parse(record, nullptr, /*allow_exceptions=*/false);
  if (!known.is_object()) return toolchain;
  const std::string compiler = TextIn(known, "compiler");
  const auto& allowed = options.allowed;
  const bool named = options.compiler.empty() || options.compiler == compiler;
  Digest identity;
  if (!named || std::find(allowed.begin(), allowed.end(), compiler) == allowed.end() ||
      !Digest::FromHex(TextIn(known, "identity"), &identity) ||
      TextIn(known, "linker") != options.linker) {
    return toolchain;
  }
  toolchain.compiler_ = compiler;
  toolchain.linker_ = options.linker;
  toolchain.family_ = FlagIn(known, "clang") ? CompilerFamily::kClang : CompilerFamily::kGcc;
  toolchain.version_ = TextIn(known, "version");
  toolchain.identity_ = identity;
  for (Isa isa : kIsas) {
    if (!Lists(known, "isas", IsaName(isa))) continue;
    toolchain.supported_[static_cast<size_t>(isa)] = absl::OkStatus();
  }
  return toolchain;
}

std::string Toolchain::Record() const {
  std::vector<std::string> isas;
  for (Isa isa : kIsas) {
    if (SupportsIsa(isa).ok()) isas.emplace_back(IsaName(isa));
  }
  const nlohmann::ordered_json record = {{"compiler", compiler_},
                                         {"linker", linker_},
                                         {"clang", family_ == CompilerFamily::kClang},
                                         {"version", version_},
                                         {"identity", identity_.ToHex()},
                                         {"isas", isas}};
  // Paths may be no UTF-8.
  return record.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

absl::Status Toolchain::Available() const {
  RETURN_IF_ERROR(missing_);
  for (const std::string& file : files_) {
    if (access(file.c_str(), R_OK) != 0) {
      return ServerPrecondition("no compiler now: ", file, " of ", version_,
                                " is gone; put it back, or restart with another --compiler");
    }
  }
  return absl::OkStatus();
}

absl::Status Toolchain::WriteSource(const std::string& dir, std::string_view source) {
  return WriteFile(StrCat(dir, "/", kSourceName), StrCat(source, FreestandingSource()));
}

absl::Status Toolchain::Identify(CommandRunner& runner, const std::string& dir) {
  ASSIGN_OR_RETURN(std::string version, Ask(runner, dir, {compiler_, "--version"}));
  version_ = FirstLine(version);
  if (version.find("clang") != std::string::npos) {
    family_ = CompilerFamily::kClang;
  } else if (version.find("Free Software Foundation") != std::string::npos) {
    family_ = CompilerFamily::kGcc;
  } else {
    return FailedPrecondition("compiler ", Quote(compiler_), " is neither GCC nor clang; it says ",
                              Quote(version_));
  }
  ASSIGN_OR_RETURN(std::vector<std::string> parts, family_ == CompilerFamily::kGcc
                                                       ? GccPrograms(runner, dir, compiler_)
                                                       : ClangLibraries(runner, dir, compiler_));
  parts.push_back(compiler_);
  parts.push_back(linker_);
  FieldHasher hasher;
  hasher.Add("version", version_).Add("freestanding", FreestandingSource());
  for (const std::string& part : parts) RETURN_IF_ERROR(AddTool(part, &hasher));
  identity_ = hasher.Finish();
  files_ = std::move(parts);
  return absl::OkStatus();
}

absl::Status Toolchain::Probe(CommandRunner& runner, const std::string& dir, Isa isa) const {
  for (const std::vector<std::string>& argv :
       {CompileArgv(isa, Numerics::kFp32Accumulate), LinkArgv()}) {
    absl::Status status = Ask(runner, dir, argv).status();
    if (!status.ok()) {
      return ServerPrecondition(version_, " cannot make kernels for ", IsaName(isa), ": ",
                                Message(status));
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> Toolchain::CompileArgv(Isa isa, Numerics numerics, bool debug) const {
  std::vector<std::string> argv = {compiler_};
  Append(kCommonFlags, &argv);
  if (debug) {
    std::replace(argv.begin(), argv.end(), std::string("-g0"), std::string("-g"));
    // Of DWARF 5 addr2line (binutils 2.40) takes the name of the unit for that of every line.
    argv.emplace_back("-gdwarf-4");
  }
  if (isa >= Isa::kAvx2) Append(kAvx2Flags, &argv);
  if (isa >= Isa::kAvx512) Append(kAvx512Flags, &argv);
  if (isa >= Isa::kAvx512Vnni) Append(kAvx512VnniFlags, &argv);
  if (isa >= Isa::kAvx512Bf16) Append(kAvx512Bf16Flags, &argv);
  if (isa >= Isa::kAvx512Amx) Append(kAvx512AmxFlags, &argv);
  argv.emplace_back(numerics == Numerics::kBitwise ? "-ffp-contract=off" : "-ffp-contract=fast");
  // Loops that fill or copy memory stay loops.
  argv.emplace_back(family_ == CompilerFamily::kGcc ? "-fno-tree-loop-distribute-patterns"
                                                    : "-fno-builtin");
  for (std::string_view word :
       {std::string_view("-c"), kSourceName, std::string_view("-o"), kObjectName}) {
    argv.emplace_back(word);
  }
  return argv;
}

std::vector<std::string> Toolchain::LinkArgv() const {
  std::vector<std::string> argv = {linker_};
  Append(kLinkFlags, &argv);
  for (std::string_view word : {std::string_view("-o"), kBinaryName, kObjectName}) {
    argv.emplace_back(word);
  }
  return argv;
}

std::string Toolchain::CommandText(Isa isa, Numerics numerics, bool debug) const {
  std::vector<std::string> compile = CompileArgv(isa, numerics, debug);
  std::vector<std::string> link = LinkArgv();
  compile[0] = BaseName(compile[0]);
  link[0] = BaseName(link[0]);
  return StrCat(StrJoin(compile, " "), " && ", StrJoin(link, " "));
}

std::string Toolchain::KeyText(Isa isa, Numerics numerics, bool debug) const {
  return StrCat(identity_.ToHex(), " ", version_, " ", CommandText(isa, numerics, debug));
}

}  // namespace fusion
