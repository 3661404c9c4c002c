#include "core/compile/sandbox/sandbox.h"

#include <sys/prctl.h>

#include "core/base/sanitizer.h"
#include "core/compile/sandbox/sandbox_landlock.h"
#include "core/compile/sandbox/sandbox_seccomp.h"

namespace fusion {
namespace {

// Enters one layer; appends its description to `level`.
absl::Status AddLayer(Sandbox sandbox, Sandbox layer, const absl::StatusOr<std::string>& entered,
                      std::string* level) {
  if (entered.ok()) {
    StrAppend(level, StrCat(*entered, " "));
    return absl::OkStatus();
  }
  const bool wanted = sandbox == Sandbox::kLandlock || sandbox == layer;
  return wanted ? entered.status() : absl::OkStatus();
}

// Landlock first: a filter may refuse its calls.
absl::StatusOr<std::string> Confine(Sandbox sandbox, const LandlockRules& rules,
                                    absl::StatusOr<std::string> (*filter)()) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return FailedPrecondition("sandbox: the kernel knows no no_new_privs");
  }
  std::string level;
  if (sandbox >= Sandbox::kLandlock) {
    RETURN_IF_ERROR(AddLayer(sandbox, Sandbox::kLandlock, EnterLandlock(rules), &level));
  }
  if (sandbox >= Sandbox::kSeccomp) {
    RETURN_IF_ERROR(AddLayer(sandbox, Sandbox::kSeccomp, filter(), &level));
  }
  return StrCat(level, "no_new_privs rlimits");
}

}  // namespace

std::string_view SandboxName(Sandbox sandbox) {
  switch (sandbox) {
    case Sandbox::kNone:
      return "none";
    case Sandbox::kSeccomp:
      return "seccomp";
    case Sandbox::kLandlock:
      return "landlock";
    case Sandbox::kBwrap:
      return "bwrap";
    case Sandbox::kAuto:
      break;
  }
  return "auto";
}

absl::StatusOr<Sandbox> ParseSandbox(std::string_view name) {
  std::vector<std::string_view> names;
  for (Sandbox sandbox : kSandboxes) {
    if (name == SandboxName(sandbox)) return sandbox;
    names.push_back(SandboxName(sandbox));
  }
  return InvalidArgument("sandbox ", Quote(name), "; expected one of ", StrJoin(names, ", "));
}

const std::vector<std::string>& ToolchainDirectories() {
  static const auto& directories = *new std::vector<std::string>{"/usr",
                                                                 "/bin",
                                                                 "/sbin",
                                                                 "/lib",
                                                                 "/lib32",
                                                                 "/lib64",
                                                                 "/etc/ld.so.cache",
                                                                 "/etc/ld.so.conf",
                                                                 "/etc/ld.so.conf.d",
                                                                 "/etc/ld.so.preload",
                                                                 "/etc/alternatives"};
  return directories;
}

absl::StatusOr<std::string> ConfineCompilers(Sandbox sandbox,
                                             const std::vector<std::string>& readable) {
  LandlockRules rules;
  rules.readable = ToolchainDirectories();
  rules.readable.insert(rules.readable.end(), readable.begin(), readable.end());
  rules.readable.emplace_back("/dev/urandom");
  if (kSanitized) rules.readable.emplace_back("/proc");  // their runtimes look at themselves
  rules.writable = {".", "/dev/null"};
  return Confine(sandbox, rules, EnterCompilerFilter);
}

absl::StatusOr<std::string> ConfineKernels(Sandbox sandbox) {
  LandlockRules rules;
  // For the reports of sanitizers; a kernel is loaded from memory, which is no file of any path.
  if (kSanitized) rules.readable = {"/proc", "/usr", "/lib"};
  return Confine(sandbox, rules, EnterKernelFilter);
}

bool IsWeakSandbox(std::string_view level) {
  return level.find("landlock") == std::string_view::npos ||
         level.find("seccomp") == std::string_view::npos;
}

}  // namespace fusion
