#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/hash.h"
#include "core/base/status.h"
#include "core/bundle/options.h"
#include "core/compile/command.h"
#include "core/device/target.h"

namespace fusion {

enum class CompilerFamily : uint8_t { kGcc, kClang };

struct ToolchainOptions {
  /// Compilers the operator allows, best first. Absolute paths.
  std::vector<std::string> allowed = {"/usr/bin/g++", "/usr/bin/clang++"};
  /// One of `allowed`; empty: the first that exists.
  std::string compiler;
  std::string linker = "/usr/bin/ld";
  /// Existing directory in which the probes compile.
  std::string scratch_dir;
};

/// The compiler and linker of every kernel of this process, chosen once at start. Requests cannot
/// choose them or their flags.
///
///   ASSIGN_OR_RETURN(Toolchain toolchain, Toolchain::Open(options, *runner));
///   key.Add("toolchain", toolchain.KeyText(isa, numerics));
///
/// Commands run in a directory that contains the output of WriteSource; objects contain no path of
/// the machine. Objects have no undefined symbols: sources include nothing and call nothing
/// outside. Immutable; thread-safe.
class Toolchain {
 public:
  static constexpr std::string_view kSourceName = "kernel.cc";
  static constexpr std::string_view kObjectName = "kernel.o";
  static constexpr std::string_view kBinaryName = "kernel.so";

  /// Takes about 0.3 s (clang: 1 s, its libraries are large): reads the version, hashes the tools,
  /// compiles a probe for each ISA. InvalidArgument: `options.compiler` is not allowed.
  /// FailedPrecondition: no allowed compiler exists, it is of an unknown family, or it cannot
  /// compile and link for any ISA.
  static absl::StatusOr<Toolchain> Open(const ToolchainOptions& options, CommandRunner& runner);

  /// A substitute for a toolchain that cannot be opened. Nothing compiles; Available() and
  /// SupportsIsa() return `why`, a FailedPrecondition. `record` (may be empty): Record() of an
  /// earlier process. If `options` allow its compiler, keys are the same as then, so that kernels
  /// of that process are found.
  static Toolchain Without(const ToolchainOptions& options, absl::Status why,
                           std::string_view record);

  /// The record for Without, as JSON.
  std::string Record() const;

  /// Writes `source`, followed by FreestandingSource(), to the file in `dir` that CompileArgv
  /// compiles. Errors as WriteFile.
  static absl::Status WriteSource(const std::string& dir, std::string_view source);

  CompilerFamily family() const { return family_; }
  /// First line of --version; empty if no compiler was found.
  const std::string& version() const { return version_; }
  /// SHA-256 over the version and the contents of files() and FreestandingSource(): everything that
  /// shapes the output besides flags and source.
  const Digest& identity() const { return identity_; }

  /// Driver, compiler proper (cc1plus; for clang its libraries), assembler and linker; absolute
  /// paths.
  const std::vector<std::string>& files() const { return files_; }
  /// OK if all of files() are usable now; else FailedPrecondition with advice for the operator.
  absl::Status Available() const;

  /// OK, or FailedPrecondition with the compiler's message if it does not know the ISA.
  const absl::Status& SupportsIsa(Isa isa) const { return supported_[static_cast<size_t>(isa)]; }

  /// `debug`: with symbols and line tables (DWARF 4); the code is the same. They contain no
  /// directory of the machine if the environment has PWD=/proc/self/cwd.
  std::vector<std::string> CompileArgv(Isa isa, Numerics numerics, bool debug = false) const;
  std::vector<std::string> LinkArgv() const;

  /// Both commands for display, without paths: "g++ -O2 ... && ld -shared ...".
  std::string CommandText(Isa isa, Numerics numerics, bool debug = false) const;
  /// Everything of the toolchain that can change a binary; belongs in every kernel key.
  std::string KeyText(Isa isa, Numerics numerics, bool debug = false) const;

 private:
  Toolchain() = default;
  absl::Status Identify(CommandRunner& runner, const std::string& dir);
  absl::Status Probe(CommandRunner& runner, const std::string& dir, Isa isa) const;

  CompilerFamily family_ = CompilerFamily::kGcc;
  std::string compiler_;
  std::string linker_;
  std::string version_;
  std::vector<std::string> files_;
  absl::Status missing_;
  Digest identity_;
  std::array<absl::Status, kIsas.size()> supported_;
};

}  // namespace fusion
