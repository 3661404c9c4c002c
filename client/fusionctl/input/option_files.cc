#include "client/fusionctl/input/option_files.h"

#include "client/client.h"
#include "client/fusionctl/args/exit_code.h"
#include "core/base/files/file.h"
#include "core/custom/custom_ops.h"
#include "core/device/measured_file.h"
#include "core/wire/options/plan_lock.h"
#include "core/wire/options/rules.h"

namespace fusion {
namespace {

// Of a graph of 100,000 nodes, several times.
constexpr int64_t kMaxLockBytes = int64_t{64} << 20;

}  // namespace

absl::Status LoadRules(Arguments* arguments) {
  if (arguments->rules.empty()) return absl::OkStatus();
  absl::StatusOr<Rules> rules = ReadRulesFile(arguments->rules);
  if (!rules.ok()) return Annotate(rules.status(), "--rules");
  arguments->options.rules = *std::move(rules);
  return absl::OkStatus();
}

absl::Status LoadCustomOps(Arguments* arguments) {
  const std::string& path = arguments->custom_ops;
  if (path.empty()) return absl::OkStatus();
  absl::StatusOr<std::string> text = ReadFile(path, kMaxCustomOpBytes);
  if (!text.ok()) return BadInput(Annotate(text.status(), "--custom-ops"));
  const absl::Status status = CustomOps::Parse(*text).status();
  if (!status.ok()) return InvalidArgument("--custom-ops ", Quote(path), ": ", Message(status));
  arguments->options.custom_ops = *std::move(text);
  return absl::OkStatus();
}

absl::Status LoadDeviceConstants(Arguments* arguments) {
  const std::string& path = arguments->device_constants;
  if (path.empty()) return absl::OkStatus();
  absl::StatusOr<std::string> text = ReadFile(path, kMaxMeasuredFileBytes);
  if (!text.ok()) return BadInput(Annotate(text.status(), "--device-constants"));
  absl::StatusOr<MeasuredConstants> measured = ParseMeasuredFile(*text, path);
  if (!measured.ok()) return BadInput(Annotate(measured.status(), "--device-constants"));
  arguments->measured = *std::move(measured);
  return absl::OkStatus();
}

absl::Status LocateRule(const absl::Status& status, const Arguments& arguments) {
  const std::vector<std::string> blamed = BlamedRules(status);
  if (blamed.empty() || arguments.rules.empty()) return status;
  // Parsed once more to find the line of the rule.
  auto check = [&](const Rule& rule) {
    return rule.name == blamed[0] ? InvalidArgument(Message(status)) : absl::OkStatus();
  };
  absl::StatusOr<Rules> again = ReadRulesFile(arguments.rules, check);
  if (again.ok()) return status;  // the file is another one by now
  absl::Status located(status.code(), StrCat("--rules: ", Message(again.status())));
  status.ForEachPayload(
      [&](absl::string_view key, const absl::Cord& payload) { located.SetPayload(key, payload); });
  return located;
}

absl::Status LoadLock(Arguments* arguments) {
  if (arguments->lock.empty()) return absl::OkStatus();
  absl::StatusOr<std::string> text = ReadFile(arguments->lock, kMaxLockBytes);
  if (!text.ok()) return BadInput(Annotate(text.status(), "--lock"));
  absl::StatusOr<PlanLock> lock = LockFromText(*text);
  if (!lock.ok()) {
    return BadInput(Annotate(lock.status(), StrCat("--lock ", Quote(arguments->lock))));
  }
  arguments->options.lock = std::make_shared<const PlanLock>(*std::move(lock));
  return absl::OkStatus();
}

}  // namespace fusion
