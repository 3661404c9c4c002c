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
  /// One of `allowed`. Empty: the first that exists.
  std::string compiler;
  std::string linker = "/usr/bin/ld";
  /// Existing directory in which the probes compile.
  std::string scratch_dir;
};

/// The compiler and linker that make every kernel of this process, chosen once at start. A request
/// can choose neither them nor their flags.
///
///   ASSIGN_OR_RETURN(Toolchain toolchain, Toolchain::Open(options, *runner));
///   key.Add("toolchain", toolchain.KeyText(isa, numerics));
///
/// Commands run in a directory that holds what WriteSource wrote; no path of the machine gets into
/// an object. Objects have no undefined symbols: sources include nothing and call nothing from
/// outside. Immutable; thread-safe.
class Toolchain {
 public:
  static constexpr std::string_view kSourceName = "kernel.cc";
  static constexpr std::string_view kObjectName = "kernel.o";
  static constexpr std::string_view kBinaryName = "kernel.so";

  /// Takes about 0.3 s (clang: 1 s, its libraries are large): asks for the version, hashes the
  /// tools, compiles a probe for each ISA. InvalidArgument: `options.compiler` is not allowed.
  /// FailedPrecondition: no allowed compiler exists, or it is none we know, or it cannot compile
  /// and link for any ISA.
  static absl::StatusOr<Toolchain> Open(const ToolchainOptions& options, CommandRunner& runner);

  /// Stands for a toolchain that cannot be opened: nothing compiles, and `why`, a
  /// FailedPrecondition, is what Available() and SupportsIsa() say. `record` (may be empty) is what
  /// Record() of an earlier process gave: if `options` allow the compiler it is of, keys are as
  /// they were then, so that kernels made then are found.
  static Toolchain Without(const ToolchainOptions& options, absl::Status why,
                           std::string_view record);

  /// What Without needs to know of this one: JSON.
  std::string Record() const;

  /// Writes `source`, and FreestandingSource() behind it, as the file that CompileArgv compiles.
  static absl::Status WriteSource(const std::string& dir, std::string_view source);

  CompilerFamily family() const { return family_; }
  /// First line of --version; empty if no compiler was ever found.
  const std::string& version() const { return version_; }
  /// SHA-256 over the version and the bytes of all that shapes the output besides flags and source:
  /// driver, compiler proper (cc1plus; for clang its libraries), assembler, linker,
  /// FreestandingSource().
  const Digest& identity() const { return identity_; }

  /// All that shapes the output besides flags and source, as identity() takes it; absolute paths.
  const std::vector<std::string>& files() const { return files_; }
  /// OK if all of files() can be used now; else FailedPrecondition, saying what the operator can
  /// do.
  absl::Status Available() const;

  /// OK, or FailedPrecondition with the compiler's words if it does not know the ISA.
  const absl::Status& SupportsIsa(Isa isa) const { return supported_[static_cast<size_t>(isa)]; }

  /// `debug`: with symbols and line tables (DWARF 4); the code is the same. With PWD=/proc/self/cwd
  /// in its environment they name no directory of the machine.
  std::vector<std::string> CompileArgv(Isa isa, Numerics numerics, bool debug = false) const;
  std::vector<std::string> LinkArgv() const;

  /// Both commands for people, without paths: "g++ -O2 ... && ld -shared ...".
  std::string CommandText(Isa isa, Numerics numerics, bool debug = false) const;
  /// All of the toolchain that can change a binary: belongs in every kernel key.
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
