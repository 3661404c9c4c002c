#include "core/device/measured_constants.h"

#include <algorithm>
#include <cmath>

#include "core/base/hash.h"
#include "core/base/text/probed_name.h"
#include "core/base/text/text.h"
#include "core/base/utc_time.h"
#include "core/device/device_spec.h"

namespace fusion {
namespace {

// One core of today reaches 4e12 flop/s with tiles of 8-bit integers; machines have up to
// kMaxTargetThreads of them. The slowest x86-64-v2 core reaches 5e9.
constexpr MeasurableConstant kMeasurable[] = {
    {"product_rate", "flop/s", 1e8, 1e14},
    {"total_product_rate", "flop/s", 1e8, 1e17},
    {"bf16.product_rate", "flop/s", 1e8, 1e14},
    {"bf16.total_product_rate", "flop/s", 1e8, 1e17},
    {"i8.product_rate", "flop/s", 1e8, 1e14},
    {"i8.total_product_rate", "flop/s", 1e8, 1e17},
    {"scalar_rate", "op/s", 1e7, 1e13},
    {"total_scalar_rate", "op/s", 1e7, 1e16},
    {"l1.bandwidth", "B/s", 1e8, 1e13},
    {"l1.total_bandwidth", "B/s", 1e8, 1e16},
    {"l2.bandwidth", "B/s", 1e8, 1e13},
    {"l2.total_bandwidth", "B/s", 1e8, 1e16},
    {"l3.bandwidth", "B/s", 1e8, 1e13},
    {"l3.total_bandwidth", "B/s", 1e8, 1e16},
    {"memory.bandwidth", "B/s", 1e7, 1e13},
    {"memory.total_bandwidth", "B/s", 1e7, 1e15},
    {"launch", "s", 1e-9, 1e-2},
    {"barrier", "s", 1e-9, 1e-2},
    {"relaunch", "s", 1e-9, 1e-2},
    {"call", "s", 1e-10, 1e-3},
    {"task", "s", 1e-10, 1e-3},
};

bool IsDate(std::string_view text) { return text.size() == 10 && ParseUtcTime(text).ok(); }

// Reads the values by the names of the spec.
class Values {
 public:
  Values(const MeasuredConstants& measured, int threads) : measured_(measured), threads_(threads) {}

  void Get(const std::string& name, double* out) const {
    const auto found = measured_.values.find(name);
    if (found != measured_.values.end()) *out = found->second;
  }

  // The rate of one thread while as many work as the plan has; unchanged if it was not measured.
  void GetPerThread(const std::string& prefix, const std::string& name, double* out) const {
    double one = 0;
    double total = 0;
    Get(prefix + name, &one);
    Get(StrCat(prefix, "total_", name), &total);
    if (one <= 0 && total <= 0) return;
    const double all = total > 0 ? total / measured_.threads : one;
    if (one <= 0) one = all;
    const double part = measured_.threads > 1 ? (threads_ - 1.0) / (measured_.threads - 1.0) : 0.0;
    *out = std::lerp(one, all, std::clamp(part, 0.0, 1.0));
  }

 private:
  const MeasuredConstants& measured_;
  const int threads_;
};

}  // namespace

const std::map<std::string_view, MeasurableConstant>& MeasurableConstants() {
  static const auto* const kByName = [] {
    auto* by_name = new std::map<std::string_view, MeasurableConstant>;
    for (const MeasurableConstant& constant : kMeasurable) (*by_name)[constant.name] = constant;
    return by_name;
  }();
  return *kByName;
}

absl::Status CheckMeasured(const MeasuredConstants& m, std::string_view where) {
  absl::Status isa = ParseIsa(m.isa).status();
  if (!isa.ok()) return InvalidArgument(where, ".isa: ", Message(isa));
  if (m.threads < 1 || m.threads > kMaxTargetThreads) {
    return InvalidArgument(where, ".threads: ", m.threads, "; expected 1..", kMaxTargetThreads);
  }
  if (!IsDate(m.date)) {
    return InvalidArgument(where, ".date: ", QuoteShort(m.date), "; expected YYYY-MM-DD");
  }
  if (m.source.size() > kMaxMeasuredSource) {
    return InvalidArgument(where, ".source: ", m.source.size(), " bytes; expected at most ",
                           kMaxMeasuredSource);
  }
  if (m.values.empty()) return InvalidArgument(where, ".constants: none is given");
  for (const auto& [name, value] : m.values) {
    const auto known = MeasurableConstants().find(name);
    if (known == MeasurableConstants().end()) {
      return InvalidArgument(
          where, ".constants: ", QuoteShort(name), " is not known; known: ",
          StrJoin(MeasurableConstants(), ", ", [](const auto& entry) { return entry.first; }));
    }
    const MeasurableConstant& constant = known->second;
    if (std::isfinite(value) && value >= constant.least && value <= constant.most) continue;
    return InvalidArgument(where, ".constants: ", name, ": ", value, " ", constant.unit,
                           "; expected ", constant.least, "..", constant.most);
  }
  return absl::OkStatus();
}

std::string KeyText(const MeasuredConstants& m) {
  std::string out = StrCat(m.isa, " threads=", m.threads, " date=", m.date);
  for (const auto& [name, value] : m.values) out += StrCat(" ", name, "=", HexDouble(value));
  return out;
}

absl::Status ApplyMeasured(const MeasuredConstants& measured, DeviceSpec* spec) {
  if (spec->kind != "CPU" || spec->explicit_memory) {
    return InvalidArgument("target.measured: ", spec->name, " is no CPU; constants are measured ",
                           "on CPUs only");
  }
  if (spec->arch != measured.isa) {
    return InvalidArgument("target.measured.isa: ", measured.isa, ", the plan is for ", spec->arch,
                           "; measure its instructions (fusionctl probe --isa ", spec->arch, ")");
  }
  const Values values(measured, spec->threads);
  values.GetPerThread("", "product_rate", &spec->flops_per_s);
  const double before = spec->scalar_ops_per_s;
  values.GetPerThread("", "scalar_rate", &spec->scalar_ops_per_s);
  for (auto& [type, unit] : spec->other_types) {
    values.GetPerThread(StrCat(DTypeName(type), "."), "product_rate", &unit.rates.flops_per_s);
    if (before > 0) unit.rates.scalar_ops_per_s *= spec->scalar_ops_per_s / before;
  }
  for (MemoryLevel& level : spec->levels) {
    const std::string prefix = StrCat(level.name, ".");
    if (level.shared) {
      values.Get(StrCat(prefix, "bandwidth"), &level.bytes_per_s);
      values.Get(StrCat(prefix, "total_bandwidth"), &level.total_bytes_per_s);
    } else {
      values.GetPerThread(prefix, "bandwidth", &level.bytes_per_s);
      level.total_bytes_per_s = level.bytes_per_s * spec->threads;
    }
    level.total_bytes_per_s = std::min(level.total_bytes_per_s, level.bytes_per_s * spec->threads);
  }
  values.Get("call", &spec->call_s);
  // Threads that wait for each other cost more than one that works alone.
  if ((measured.threads > 1) == (spec->threads > 1)) {
    values.Get("launch", &spec->launch_s);
    values.Get("barrier", &spec->barrier_s);
    values.Get("relaunch", &spec->relaunch_s);
    values.Get("task", &spec->task_s);
  }
  spec->barrier_s = std::min(spec->barrier_s, spec->launch_s);
  spec->name = ProbedNameText({.spec = spec->name,
                               .date = measured.date,
                               .digest = Sha256(KeyText(measured)).ToHex().substr(0, 8)});
  return absl::OkStatus();
}

std::optional<double> ConstantOf(const DeviceSpec& spec, std::string_view name) {
  const double threads = spec.threads;
  const size_t dot = name.find('.');
  if (dot != std::string_view::npos) {
    const std::string_view owner = name.substr(0, dot);
    const std::string_view what = name.substr(dot + 1);
    for (const MemoryLevel& level : spec.levels) {
      if (level.name != owner) continue;
      if (what == "bandwidth") return level.bytes_per_s;
      if (what == "total_bandwidth") return level.total_bytes_per_s;
    }
    for (const auto& [type, unit] : spec.other_types) {
      if (DTypeName(type) != owner) continue;
      if (what == "product_rate") return unit.rates.flops_per_s;
      if (what == "total_product_rate") return unit.rates.flops_per_s * threads;
    }
    return std::nullopt;
  }
  const std::map<std::string_view, double> values = {
      {"product_rate", spec.flops_per_s},
      {"total_product_rate", spec.flops_per_s * threads},
      {"scalar_rate", spec.scalar_ops_per_s},
      {"total_scalar_rate", spec.scalar_ops_per_s * threads},
      {"launch", spec.launch_s},
      {"barrier", spec.barrier_s},
      {"relaunch", spec.relaunch_s},
      {"call", spec.call_s},
      {"task", spec.task_s}};
  const auto found = values.find(name);
  return found == values.end() ? std::nullopt : std::optional<double>(found->second);
}

}  // namespace fusion
