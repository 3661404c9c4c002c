#include "core/device/device_spec.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/check.h"

namespace fusion {
namespace {

using Json = nlohmann::json;

constexpr double kNoWait = 1e18;  // B/s

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
  if (block.m < 1 || block.n < 1 || block.m > 256 || block.n > 256) {
    return InvalidArgument("device spec ", where, ": register block ", block.m, "x", block.n);
  }
  return block;
}

absl::StatusOr<std::vector<RegisterBlock>> ParseBlocks(const std::vector<Json>& list,
                                                       const std::string& where) {
  std::vector<RegisterBlock> blocks;
  for (size_t i = 0; i < list.size(); ++i) {
    ASSIGN_OR_RETURN(RegisterBlock block,
                     ParseBlock(list[i], StrCat(where, " register_blocks[", i, "]")));
    blocks.push_back(block);
  }
  return blocks;
}

// The parts of a spec, in the order of the struct.

void ReadIdentity(Reader* in, DeviceSpec* spec) {
  spec->name = in->Text("name");
  spec->kind = in->Text("kind");
  spec->unit = in->Text("unit");
  spec->backend = in->Text("backend");
  spec->vendor = in->Text("vendor");
  spec->family = static_cast<int>(in->Number("family", "1"));
  for (const Json& model : in->List("models")) {
    if (!model.is_number_integer()) {
      in->Fail("models: expected integers");
      break;
    }
    spec->models.push_back(model.get<int>());
  }
  spec->arch = in->Text("isa");
}

void ReadUnits(Reader* in, DeviceSpec* spec) {
  spec->threads = static_cast<int>(in->Number("threads", "1"));
  spec->fixed_units = in->Flag("fixed_units");
  spec->vector_bytes = static_cast<int>(in->Number("vector_width", "B"));
  spec->flops_per_s = in->Number("product_rate", "flop/s");
  spec->product_efficiency = in->Number("product_efficiency", "1");
  spec->scalar_ops_per_s = in->Number("scalar_rate", "op/s");
  spec->overlap = in->Number("overlap", "1");
  spec->launch_s = in->Number("launch", "s");
  spec->barrier_s = in->Number("barrier", "s");
  spec->relaunch_s = in->Number("relaunch", "s");
  spec->call_s = in->Number("call", "s");
  spec->task_s = in->Number("task", "s");
  spec->least_task_s = in->Number("least_task", "s");
  spec->costs.contiguous = in->Number("contiguous_element", "addition");
  spec->costs.strided = in->Number("strided_element", "addition");
  spec->costs.fold = in->Number("folded_row", "vector addition");
  spec->costs.accumulator = in->Number("accumulator_element", "addition");
}

void ReadProducts(Reader* in, DeviceSpec* spec) {
  spec->full_rate_vectors = in->Number("full_rate_accumulators", "vector");
  spec->least_rate = in->Number("least_rate", "1");
  spec->turn_s = in->Number("product_turn", "s");
  spec->row_grain = static_cast<int>(in->Number("row_grain", "1"));
  spec->stream_tile = static_cast<int>(in->Number("stream_tile", "1"));
}

void ReadMemory(Reader* in, DeviceSpec* spec) {
  spec->alignment = static_cast<int>(in->Number("alignment", "B"));
  spec->alias_bytes = static_cast<int>(in->Number("alias_distance", "B"));
  spec->explicit_memory = in->Flag("explicit_memory");
  if (!spec->explicit_memory) return;
  spec->staged_level = in->Text("staged_level");
  spec->operand_level = in->Text("operand_level");
  spec->accumulator_level = in->Text("accumulator_level");
  spec->operand_slice = static_cast<int>(in->Number("operand_slice", "1"));
  spec->operand_stages = static_cast<int>(in->Number("operand_stages", "1"));
  spec->exchange_level = in->Text("exchange_level");
  spec->exchange_s = in->Number("exchange", "s");
}

// Reads the fields of a separate product unit, if there are any: then all of them must be there.
absl::Status ReadBlocks(const Json& json, const std::string& where, TypeUnit* unit) {
  constexpr std::array kFields = {"register_blocks", "full_rate_accumulators", "row_grain",
                                  "least_sum"};
  const bool any = std::any_of(kFields.begin(), kFields.end(),
                               [&](const char* field) { return json.contains(field); });
  if (!any) return absl::OkStatus();
  Reader in(json, where);
  std::vector<Json> blocks = in.List("register_blocks");
  unit->full_rate_vectors = in.Number("full_rate_accumulators", "vector");
  unit->row_grain = static_cast<int>(in.Number("row_grain", "1"));
  unit->least_sum = static_cast<int>(in.Number("least_sum", "1"));
  RETURN_IF_ERROR(in.status());
  if (blocks.empty()) in.Fail("register_blocks: expected one at least");
  if (!(unit->full_rate_vectors > 0)) in.Fail("full_rate_accumulators: 0");
  if (unit->row_grain < 1) in.Fail("row_grain: 0");
  RETURN_IF_ERROR(in.status());
  ASSIGN_OR_RETURN(unit->blocks, ParseBlocks(blocks, where));
  return absl::OkStatus();
}

// Reads the minimum instruction set level of an entry of a CPU.
absl::Status ReadIsa(const DeviceSpec& spec, Reader* in, OtherType* other) {
  const std::string isa = in->Text("isa");
  RETURN_IF_ERROR(in->status());
  absl::StatusOr<Isa> level = ParseIsa(isa);
  if (!level.ok()) return Annotate(level.status(), StrCat("device spec ", in->where(), ": isa"));
  other->isa = *level;
  if (other->isa > spec.isa) in->Fail(StrCat("isa: ", isa, " is above that of the spec"));
  if (VectorLevel(other->isa) != VectorLevel(spec.isa)) {
    in->Fail(StrCat("isa: the vectors of ", isa, " are not as wide as those of the spec"));
  }
  for (const OtherType& before : spec.types_of_isas) {
    if (before.type == other->type && before.isa >= other->isa) {
      in->Fail(StrCat("isa: ", isa, " of ", DTypeName(other->type), " stands behind ",
                      IsaName(before.isa), "; expected ascending levels"));
    }
  }
  return in->status();
}

absl::Status ReadOtherTypes(const std::vector<Json>& list, std::string_view file,
                            DeviceSpec* spec) {
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string where = StrCat(file, " other_types[", i, "]");
    Reader in(list[i], where);
    std::string name = in.Text("type");
    OtherType other;
    TypeRates& rates = other.unit.rates;
    rates.flops_per_s = in.Number("product_rate", "flop/s");
    rates.scalar_ops_per_s = in.Number("scalar_rate", "op/s");
    RETURN_IF_ERROR(in.status());
    std::optional<DType> type = ParseDType(name);
    if (!type) in.Fail(StrCat("type ", Quote(name), " is not known"));
    if (!type) return in.status();
    other.type = *type;
    if (!(rates.flops_per_s > 0) || !(rates.scalar_ops_per_s > 0)) in.Fail("a rate is 0");
    RETURN_IF_ERROR(in.status());
    if (spec->kind == "CPU") RETURN_IF_ERROR(ReadIsa(*spec, &in, &other));
    RETURN_IF_ERROR(ReadBlocks(list[i], where, &other.unit));
    spec->types_of_isas.push_back(std::move(other));
  }
  spec->LimitIsa(spec->isa);
  return absl::OkStatus();
}

// Checks constraints between fields of a spec.
absl::Status CheckSpec(const DeviceSpec& spec, std::string_view file) {
  auto fail = [&](std::string_view what) {
    return InvalidArgument("device spec ", file, ": ", what);
  };
  if (spec.levels.size() < 2 || spec.blocks.empty()) {
    return fail("expected at least two memory levels and one register block");
  }
  auto named = [&](std::string_view name, bool shared) {
    return std::any_of(spec.levels.begin(), spec.levels.end(),
                       [&](const MemoryLevel& l) { return l.name == name && l.shared == shared; });
  };
  if (spec.threads < 1 || spec.threads > kMaxTargetThreads) return fail("threads");
  if (spec.vector_bytes < 4) return fail("vector_width: expected at least one f32");
  if (spec.row_grain < 1 || spec.stream_tile < 1) return fail("row_grain, stream_tile: 0");
  if (spec.alignment < 1) return fail("alignment: 0");
  if (!spec.explicit_memory) return absl::OkStatus();
  for (const std::string& level : {spec.staged_level, spec.operand_level, spec.accumulator_level}) {
    if (!named(level, false)) return fail(StrCat(Quote(level), " is no private level"));
  }
  if (!spec.exchange_level.empty() && !named(spec.exchange_level, true)) {
    return fail(StrCat("exchange_level: ", Quote(spec.exchange_level), " is no shared level"));
  }
  if (spec.operand_slice < 1 || spec.operand_stages < 1) {
    return fail("operand_slice, operand_stages: 0");
  }
  return absl::OkStatus();
}

bool SameName(std::string_view a, std::string_view b) {
  auto plain = [](char c) { return c == '_' ? '-' : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return plain(x) == plain(y); });
}

// The most bytes of a shared cache that count per thread of a target: cores have 1.4 to 12 MiB of
// the third level (Xeon and EPYC up to 2024), and a virtual machine is told the size of the whole
// cache. Measured with 480 MiB: streams of one read and one write go 1.0 times as fast past the
// caches as through them with 64 MiB, 1.3 times with 128 MiB and 1.8 with 190 MiB (Intel family 6
// model 167, a virtual machine of 2 cores, tests/bench/machine_limits stream, 2026-11).
constexpr int64_t kMostSharedBytes = int64_t{32} << 20;

// Replaces values of the spec by those of the target.
void ApplyTarget(const Target& target, DeviceSpec* spec) {
  if (target.threads > 0) spec->threads = target.threads;
  const std::array<std::pair<std::string_view, int64_t>, 3> caches = {
      {{"l1", target.l1_bytes}, {"l2", target.l2_bytes}, {"l3", target.l3_bytes}}};
  for (MemoryLevel& level : spec->levels) {
    for (const auto& [name, bytes] : caches) {
      // The caches of a caller's CPU say nothing about another device's.
      if (spec->explicit_memory || level.name != name || bytes == 0) continue;
      level.bytes = level.shared ? std::min(bytes, kMostSharedBytes * spec->threads) : bytes;
    }
    if (!level.shared) level.total_bytes_per_s = level.bytes_per_s * spec->threads;
    level.total_bytes_per_s = std::min(level.total_bytes_per_s, level.bytes_per_s * spec->threads);
  }
}

}  // namespace

int64_t MemoryLevel::UsableBytes() const {
  return static_cast<int64_t>(static_cast<double>(bytes) * headroom);
}

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

const MemoryLevel& DeviceSpec::StagedLevel() const {
  if (!staged_level.empty()) return level(staged_level);
  const MemoryLevel* best = nullptr;
  for (const MemoryLevel& l : levels) {
    if (!l.shared && (best == nullptr || l.UsableBytes() > best->UsableBytes())) best = &l;
  }
  return best != nullptr ? *best : levels.front();
}

TypeRates DeviceSpec::Rates(DType type) const {
  auto it = other_types.find(type);
  return it == other_types.end() ? TypeRates{flops_per_s, scalar_ops_per_s} : it->second.rates;
}

void DeviceSpec::LimitIsa(Isa level) {
  if (kind == "CPU") {
    FUSION_CHECK(VectorLevel(level) == VectorLevel(isa), "vectors stay as wide");
    isa = std::min(isa, level);
    arch = IsaName(isa);
  }
  other_types.clear();
  for (const OtherType& other : types_of_isas) {
    if (kind != "CPU" || other.isa <= isa) other_types[other.type] = other.unit;
  }
}

const TypeUnit* DeviceSpec::OwnUnit(DType type) const {
  auto it = other_types.find(type);
  return it == other_types.end() || it->second.blocks.empty() ? nullptr : &it->second;
}

const std::vector<RegisterBlock>& DeviceSpec::BlocksOf(DType type) const {
  const TypeUnit* own = OwnUnit(type);
  return own == nullptr ? blocks : own->blocks;
}

int DeviceSpec::RowGrainOf(DType type) const {
  const TypeUnit* own = OwnUnit(type);
  return own == nullptr ? row_grain : own->row_grain;
}

int DeviceSpec::LeastSumOf(DType type) const {
  const TypeUnit* own = OwnUnit(type);
  return own == nullptr ? 1 : own->least_sum;
}

double DeviceSpec::BlockRate(DType type, double rows, double columns) const {
  const double vectors = rows * columns / std::max(vector_bytes / 4, 1);
  const TypeUnit* own = OwnUnit(type);
  const double full = own == nullptr ? full_rate_vectors : own->full_rate_vectors;
  return std::min(1.0, std::max(least_rate, vectors / full));
}

DeviceSpec DeviceSpec::InLoop(int64_t bytes) const {
  DeviceSpec out = *this;
  out.launch_s = std::min(launch_s, threads == 1 ? call_s : relaunch_s);
  out.barrier_s = std::min(barrier_s, out.launch_s);
  // One unit runs the tasks without hand-over.
  if (threads == 1) out.task_s = std::min(task_s, call_s);
  // With explicit memory, every kernel fetches its data again.
  if (explicit_memory || bytes > SharedLevel().UsableBytes()) return out;
  MemoryLevel& memory = out.levels.back();
  const MemoryLevel& shared = SharedLevel();
  memory.bytes_per_s = std::max(memory.bytes_per_s, shared.bytes_per_s);
  memory.total_bytes_per_s = std::max(memory.total_bytes_per_s, shared.total_bytes_per_s);
  // With several units, another one may have processed the data in the previous pass. A single unit
  // finds it in its private cache, and the costs of elements and products include fetching it
  // there.
  if (threads > 1 || bytes > OnChipBytes()) return out;
  for (MemoryLevel& level : out.levels) {
    if (!level.shared) continue;
    level.bytes_per_s = level.total_bytes_per_s = kNoWait;
  }
  return out;
}

std::string DeviceSpec::KeyText() const {
  std::string out =
      StrCat(name, " ", kind, " ", backend, " ", arch, " threads=", threads, "/", fixed_units,
             " vector=", vector_bytes, " flops=", flops_per_s, " efficiency=", product_efficiency,
             " scalar=", scalar_ops_per_s, " overlap=", overlap, " launch=", launch_s, "/",
             barrier_s, "/", relaunch_s, "/", call_s, " task=", task_s, "/", least_task_s);
  for (const auto& [type, of_type] : other_types) {
    out += StrCat(" ", DTypeName(type), "=", of_type.rates.flops_per_s, "/",
                  of_type.rates.scalar_ops_per_s);
    for (const RegisterBlock& b : of_type.blocks) out += StrCat("/", b.m, "x", b.n);
    if (of_type.blocks.empty()) continue;
    out += StrCat("/", of_type.full_rate_vectors, "/", of_type.row_grain, "/", of_type.least_sum);
  }
  for (const MemoryLevel& l : levels) {
    out += StrCat(" ", l.name, "=", l.bytes, "/", l.shared, "/", l.headroom, "/", l.bytes_per_s,
                  "/", l.total_bytes_per_s);
  }
  for (const RegisterBlock& b : blocks) out += StrCat(" block=", b.m, "x", b.n);
  out += StrCat(" costs=", costs.contiguous, "/", costs.strided, "/", costs.fold, "/",
                costs.accumulator, " products=", full_rate_vectors, "/", least_rate, "/", turn_s,
                "/", row_grain, "/", stream_tile, " tiles=", alignment, "/", alias_bytes);
  if (explicit_memory) {
    out += StrCat(" staged=", staged_level, " operands=", operand_level, "/", operand_slice, "/",
                  operand_stages, " accumulators=", accumulator_level, " exchange=", exchange_level,
                  "/", exchange_s);
  }
  if (local_part != 1) out += StrCat(" local=", local_part);
  for (const auto& [of, factor] : class_factors) {
    out += StrCat(" ", of.first, "/", of.second, "=", factor);
  }
  return out;
}

absl::StatusOr<DeviceSpec> ParseDeviceSpec(std::string_view json, std::string_view file) {
  Json root = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) return InvalidArgument("device spec ", file, ": not JSON");
  Reader in(root, std::string(file));
  DeviceSpec spec;
  ReadIdentity(&in, &spec);
  ReadUnits(&in, &spec);
  ReadProducts(&in, &spec);
  ReadMemory(&in, &spec);
  std::vector<Json> levels = in.List("levels");
  std::vector<Json> blocks = in.List("register_blocks");
  std::vector<Json> types = in.List("other_types");
  RETURN_IF_ERROR(in.status());
  if (spec.kind == "CPU") {
    ASSIGN_OR_RETURN(spec.isa, ParseIsa(spec.arch));
  }
  RETURN_IF_ERROR(ReadOtherTypes(types, file, &spec));
  for (size_t i = 0; i < levels.size(); ++i) {
    ASSIGN_OR_RETURN(MemoryLevel level, ParseLevel(levels[i], StrCat(file, " levels[", i, "]")));
    spec.levels.push_back(std::move(level));
  }
  ASSIGN_OR_RETURN(spec.blocks, ParseBlocks(blocks, std::string(file)));
  RETURN_IF_ERROR(CheckSpec(spec, file));
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
                        [&](const DeviceSpec& s) { return SameName(s.name, name); });
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
             VectorLevel(s.isa) == VectorLevel(isa) &&
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
  if (spec.fixed_units && target.threads > spec.threads) {
    return InvalidArgument("target.threads: ", target.threads, "; ", spec.name, " has ",
                           spec.threads, " ", spec.unit, "s");
  }
  if (spec.kind == "CPU" && !target.isa.empty()) {
    ASSIGN_OR_RETURN(Isa isa, ParseIsa(target.isa));
    if (VectorLevel(isa) == VectorLevel(spec.isa)) spec.LimitIsa(isa);
    if (isa < spec.isa) {
      return InvalidArgument("target ", Quote(spec.name), " needs ", IsaName(spec.isa),
                             ", the request says ", target.isa);
    }
  }
  ApplyTarget(target, &spec);
  if (target.measured) {
    RETURN_IF_ERROR(ApplyMeasured(*target.measured, &spec));
    if (warning != nullptr) warning->clear();
  }
  return spec;
}

}  // namespace fusion
