#include "client/probe/once.h"

#include <map>

#include "core/base/files/file.h"
#include "core/base/hash.h"
#include "core/base/text/text.h"
#include "core/base/threads/mutex.h"
#include "core/device/device_spec.h"
#include "core/device/host_cpu.h"
#include "core/device/measured_file.h"
#include "core/probe/probe.h"

namespace fusion {
namespace {

// What one process measured or read, by MeasuredPath.
struct KnownConstants {
  Mutex mutex;
  std::map<std::string, MeasuredConstants> by_path ABSL_GUARDED_BY(mutex);
};

KnownConstants& Known() {
  static auto* const kKnown = new KnownConstants;
  return *kKnown;
}

// Whether a plan for this target would have the constants of a generic spec.
bool LacksSpec(const Target& target) {
  const absl::StatusOr<std::vector<DeviceSpec>> specs = BuiltInSpecs();
  if (!specs.ok() || !target.name.empty()) return false;
  std::string warning;
  return ResolveTarget(*specs, target, &warning).ok() && !warning.empty();
}

absl::StatusOr<MeasuredConstants> ReadKept(const std::string& path, const Target& target) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxMeasuredFileBytes));
  ASSIGN_OR_RETURN(MeasuredConstants measured, ParseMeasuredFile(text, path));
  if (measured.isa != target.isa || measured.threads != target.threads) {
    return InvalidArgument(Quote(path), ": is of another target");
  }
  return measured;
}

absl::Status Keep(const ProbeConsent& consent, const std::string& path,
                  const MeasuredConstants& measured) {
  if (consent.directory.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(MakeDirectories(consent.directory));
  return ReplaceFile(path, MeasuredFileText(measured));
}

}  // namespace

std::string MeasuredPath(const std::string& directory, const Target& target) {
  FieldHasher hasher;
  const std::string digest = hasher.Add("cpu", HostCpuName())
                                 .Add("isa", target.isa)
                                 .Add("threads", target.threads)
                                 .Finish()
                                 .ToHex();
  return StrCat(directory, "/device-constants-", digest.substr(0, 16), ".json");
}

void AddMeasured(const ProbeConsent& consent, Target* target) {
  if (consent.policy == ProbePolicy::kNever || target->measured || !LacksSpec(*target)) return;
  const std::string path = MeasuredPath(consent.directory, *target);
  KnownConstants& known = Known();
  MutexLock lock(&known.mutex);
  const auto found = known.by_path.find(path);
  if (found != known.by_path.end()) {
    target->measured = found->second;
    return;
  }
  if (!consent.directory.empty()) {
    absl::StatusOr<MeasuredConstants> kept = ReadKept(path, *target);
    if (kept.ok()) {
      target->measured = known.by_path[path] = *std::move(kept);
      return;
    }
    if (!absl::IsNotFound(kept.status())) {
      consent.warn(StrCat("measured again: ", Message(kept.status())));
    }
  }
  const absl::StatusOr<Isa> isa = ParseIsa(target->isa);
  absl::StatusOr<ProbeResult> result = isa.ok()
                                           ? Probe({.seconds = consent.seconds,
                                                    .threads = target->threads,
                                                    .isa = *isa,
                                                    .program = "client library " FUSION_VERSION})
                                           : isa.status();
  if (!result.ok()) {
    consent.warn(StrCat("no constants are measured: ", Message(result.status())));
    return;
  }
  for (const std::string& warning : result->warnings) consent.warn(warning);
  const absl::Status stored = Keep(consent, path, result->constants);
  if (!stored.ok()) {
    consent.warn(StrCat("measured constants are not kept: ", Message(stored)));
  }
  target->measured = known.by_path[path] = std::move(result->constants);
}

}  // namespace fusion
