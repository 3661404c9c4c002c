#include "core/device/device_spec.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/base/check.h"

namespace fusion {
namespace {

using Json = nlohmann::json;

struct EmbeddedSpec {
  const char* file;
  const char* text;
};

// device_specs.inc is written by core/CMakeLists.txt from core/device/specs/*.json.
constexpr EmbeddedSpec kSpecs[] = {
#include "device_specs.inc"
};

// Reads the fields of one JSON object and remembers the first thing wrong with it.
class Reader {
 public:
  Reader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  double Number(const char* field, std::string_view unit) {
    const Json* entry = Find(field);
    if (entry == nullptr) return 0;
    bool formed = entry->is_object() && entry->contains("value") && (*entry)["value"].is_number() &&
                  entry->value("unit", "") == unit && !entry->value("source", "").empty();
    if (!formed) {
      Fail(StrCat(field, ": expected {\"value\": number, \"unit\": ", Quote(unit),
                  ", \"source\": text}"));
      return 0;
    }
    double value = (*entry)["value"].get<double>();
    if (!(value >= 0)) Fail(StrCat(field, ": expected a non-negative value, got ", value));
    return value;
  }

  std::string Text(const char* field) {
    const Json* entry = Find(field);
    if (entry == nullptr) return "";
    if (!entry->is_string()) {
      Fail(StrCat(field, ": expected a string"));
      return "";
    }
    return entry->get<std::string>();
  }

  bool Flag(const char* field) {
    const Json* entry = Find(field);
    if (entry == nullptr) return false;
    if (!entry->is_boolean()) Fail(StrCat(field, ": expected true or false"));
    return entry->is_boolean() && entry->get<bool>();
  }

  std::vector<Json> List(const char* field) {
    const Json* entry = Find(field);
    if (entry == nullptr) return {};
    if (!entry->is_array()) {
      Fail(StrCat(field, ": expected a list"));
      return {};
    }
    return entry->get<std::vector<Json>>();
  }

  void Fail(std::string_view what) {
    if (status_.ok()) status_ = InvalidArgument("device spec ", where_, ": ", what);
  }
  const absl::Status& status() const { return status_; }
  const std::string& where() const { return where_; }

 private:
  const Json* Find(const char* field) {
    auto it = object_.is_object() ? object_.find(field) : object_.end();
    if (!object_.is_object() || it == object_.end()) {
      Fail(StrCat("field ", Quote(field), " is missing"));
      return nullptr;
    }
    return &*it;
  }

  const Json& object_;
  std::string where_;
  absl::Status status_ = absl::OkStatus();
};

absl::StatusOr<MemoryLevel> ParseLevel(const Json& json, const std::string& where) {
  Reader in(json, where);
  MemoryLevel level;
  level.name = in.Text("name");
  level.shared = in.Flag("shared");
  level.bytes = static_cast<int64_t>(in.Number("bytes", "B"));
  level.headroom = in.Number("headroom", "1");
  level.bytes_per_s = in.Number("bandwidth", "B/s");
  level.total_bytes_per_s = in.Number("total_bandwidth", "B/s");
  RETURN_IF_ERROR(in.status());
  return level;
}

absl::StatusOr<RegisterBlock> ParseBlock(const Json& json, const std::string& where) {
  if (!json.is_array() || json.size() != 2 || !json[0].is_number_integer() ||
      !json[1].is_number_integer()) {
    return InvalidArgument("device spec ", where, ": expected [rows, columns]");
  }
  RegisterBlock block{json[0].get<int>(), json[1].get<int>()};
  if (block.m < 1 || block.n < 1 || block.m > 64 || block.n > 256) {
    return InvalidArgument("device spec ", where, ": register block ", block.m, "x", block.n);
  }
  return block;
}

// Where the target knows better than the spec.
void ApplyTarget(const Target& target, DeviceSpec* spec) {
  spec->threads = std::max(1, target.threads);
  const std::array<std::pair<std::string_view, int64_t>, 3> caches = {
      {{"l1", target.l1_bytes}, {"l2", target.l2_bytes}, {"l3", target.l3_bytes}}};
  for (MemoryLevel& level : spec->levels) {
    for (const auto& [name, bytes] : caches) {
      if (level.name == name && bytes > 0) level.bytes = bytes;
    }
    if (!level.shared) level.total_bytes_per_s = level.bytes_per_s * spec->threads;
    level.total_bytes_per_s = std::min(level.total_bytes_per_s, level.bytes_per_s * spec->threads);
  }
}

}  // namespace

const MemoryLevel& DeviceSpec::level(std::string_view name_of_level) const {
  for (const MemoryLevel& l : levels) {
    if (l.name == name_of_level) return l;
  }
  FUSION_CHECK(false, "every device spec has the levels its backend names");
}

const MemoryLevel& DeviceSpec::SharedLevel() const {
  for (const MemoryLevel& l : levels) {
    if (l.shared) return l;
  }
  return levels.back();
}

int64_t DeviceSpec::OnChipBytes() const {
  int64_t bytes = 0;
  for (const MemoryLevel& l : levels) {
    if (!l.shared) {
      bytes = std::max(bytes, static_cast<int64_t>(static_cast<double>(l.bytes) * l.headroom));
    }
  }
  return bytes;
}

std::string DeviceSpec::KeyText() const {
  std::string out = StrCat(name, " ", backend, " ", IsaName(isa), " threads=", threads,
                           " vector=", vector_bytes, " flops=", flops_per_s,
                           " efficiency=", product_efficiency, " scalar=", scalar_ops_per_s,
                           " overlap=", overlap, " launch=", launch_s, " task=", task_s);
  for (const MemoryLevel& l : levels) {
    out += StrCat(" ", l.name, "=", l.bytes, "/", l.shared, "/", l.headroom, "/", l.bytes_per_s,
                  "/", l.total_bytes_per_s);
  }
  for (const RegisterBlock& b : blocks) out += StrCat(" block=", b.m, "x", b.n);
  return out;
}

absl::StatusOr<DeviceSpec> ParseDeviceSpec(std::string_view json, std::string_view file) {
  Json root = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) return InvalidArgument("device spec ", file, ": not JSON");
  Reader in(root, std::string(file));
  DeviceSpec spec;
  spec.name = in.Text("name");
  spec.backend = in.Text("backend");
  spec.vendor = in.Text("vendor");
  spec.family = static_cast<int>(in.Number("family", "1"));
  for (const Json& model : in.List("models")) {
    if (!model.is_number_integer()) {
      in.Fail("models: expected integers");
      break;
    }
    spec.models.push_back(model.get<int>());
  }
  std::string isa = in.Text("isa");
  spec.threads = static_cast<int>(in.Number("threads", "1"));
  spec.vector_bytes = static_cast<int>(in.Number("vector_width", "B"));
  spec.flops_per_s = in.Number("product_rate", "flop/s");
  spec.product_efficiency = in.Number("product_efficiency", "1");
  spec.scalar_ops_per_s = in.Number("scalar_rate", "op/s");
  spec.overlap = in.Number("overlap", "1");
  spec.launch_s = in.Number("launch", "s");
  spec.task_s = in.Number("task", "s");
  std::vector<Json> levels = in.List("levels");
  std::vector<Json> blocks = in.List("register_blocks");
  RETURN_IF_ERROR(in.status());
  ASSIGN_OR_RETURN(spec.isa, ParseIsa(isa));
  for (size_t i = 0; i < levels.size(); ++i) {
    ASSIGN_OR_RETURN(MemoryLevel level, ParseLevel(levels[i], StrCat(file, " levels[", i, "]")));
    spec.levels.push_back(std::move(level));
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    ASSIGN_OR_RETURN(RegisterBlock block,
                     ParseBlock(blocks[i], StrCat(file, " register_blocks[", i, "]")));
    spec.blocks.push_back(block);
  }
  if (spec.levels.size() < 2 || spec.blocks.empty()) {
    return InvalidArgument("device spec ", file,
                           ": expected at least two memory levels and one register block");
  }
  return spec;
}

absl::StatusOr<std::vector<DeviceSpec>> BuiltInSpecs() {
  std::vector<DeviceSpec> specs;
  for (const EmbeddedSpec& embedded : kSpecs) {
    ASSIGN_OR_RETURN(DeviceSpec spec, ParseDeviceSpec(embedded.text, embedded.file));
    specs.push_back(std::move(spec));
  }
  std::sort(specs.begin(), specs.end(),
            [](const DeviceSpec& a, const DeviceSpec& b) { return a.name < b.name; });
  return specs;
}

absl::StatusOr<DeviceSpec> ResolveTarget(const std::vector<DeviceSpec>& specs, const Target& target,
                                         std::string* warning) {
  if (target.threads < 0 || target.threads > kMaxTargetThreads) {
    return InvalidArgument("target.threads: ", target.threads, "; expected 0..", kMaxTargetThreads);
  }
  for (int64_t bytes : {target.l1_bytes, target.l2_bytes, target.l3_bytes}) {
    if (bytes < 0) return InvalidArgument("target: a cache of ", bytes, " bytes");
  }
  auto names = [&] { return StrJoin(specs, ", ", [](const DeviceSpec& s) { return s.name; }); };
  auto by_name = [&](std::string_view name) {
    return std::find_if(specs.begin(), specs.end(),
                        [&](const DeviceSpec& s) { return s.name == name; });
  };
  auto found = specs.end();
  if (!target.name.empty()) {
    found = by_name(target.name);
    if (found == specs.end()) {
      return Unimplemented("target ", Quote(target.name), " is not known; known: ", names());
    }
  } else {
    if (target.isa.empty()) return InvalidArgument("target: neither name nor isa is given");
    ASSIGN_OR_RETURN(Isa isa, ParseIsa(target.isa));
    found = std::find_if(specs.begin(), specs.end(), [&](const DeviceSpec& s) {
      return !s.vendor.empty() && s.vendor == target.vendor && s.family == target.family &&
             s.isa == isa &&
             std::find(s.models.begin(), s.models.end(), target.model) != s.models.end();
    });
    if (found == specs.end()) {
      std::string generic = StrCat("generic-", target.isa);
      found = by_name(generic);
      if (found == specs.end()) return Internal("no device spec ", generic);
      if (warning != nullptr) {
        std::string cpu = target.vendor.empty()
                              ? "the request names no CPU"
                              : StrCat("no device spec for ", target.vendor, " family ",
                                       target.family, " model ", target.model);
        *warning = StrCat(cpu, "; planned for ", generic, " with the caches given");
      }
    }
  }
  DeviceSpec spec = *found;
  if (!target.isa.empty()) {
    ASSIGN_OR_RETURN(Isa isa, ParseIsa(target.isa));
    if (isa < spec.isa) {
      return InvalidArgument("target ", Quote(spec.name), " needs ", IsaName(spec.isa),
                             ", the request says ", target.isa);
    }
  }
  ApplyTarget(target, &spec);
  return spec;
}

}  // namespace fusion
