#include "core/device/measured_file.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/base/text/text.h"

namespace fusion {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char* kMarkField = "fusion_device_constants";
constexpr int kFileVersion = 1;
constexpr std::array<std::string_view, 6> kFileFields = {kMarkField, "isa",    "threads",
                                                         "date",     "source", "constants"};

absl::Status CheckFileFields(const OrderedJson& root) {
  if (!root.is_object()) return InvalidArgument("expected a JSON object");
  const auto mark = root.find(kMarkField);
  if (mark == root.end() || *mark != kFileVersion) {
    return InvalidArgument("field ", Quote(kMarkField), ": expected ", kFileVersion,
                           "; fusionctl probe --out FILE writes such a file");
  }
  for (const auto& [name, value] : root.items()) {
    if (std::find(kFileFields.begin(), kFileFields.end(), name) == kFileFields.end()) {
      return InvalidArgument("field ", QuoteShort(name),
                             " is not known; known: ", StrJoin(kFileFields, ", "));
    }
  }
  for (const char* name : {"isa", "date", "source"}) {
    const auto found = root.find(name);
    if (found == root.end() || !found->is_string()) {
      return InvalidArgument("field ", Quote(name), ": expected a string");
    }
  }
  const auto threads = root.find("threads");
  if (threads == root.end() || !threads->is_number_integer()) {
    return InvalidArgument("field \"threads\": expected an integer");
  }
  const auto constants = root.find("constants");
  if (constants == root.end() || !constants->is_object()) {
    return InvalidArgument("field \"constants\": expected an object");
  }
  return absl::OkStatus();
}

absl::StatusOr<double> ReadConstant(const std::string& name, const OrderedJson& json) {
  const auto known = MeasurableConstants().find(name);
  // CheckMeasured names unknown ones.
  const std::string_view unit = known == MeasurableConstants().end() ? "" : known->second.unit;
  const bool formed = json.is_object() && json.size() == 3 && json.contains("value") &&
                      json["value"].is_number() && json.contains("unit") &&
                      json["unit"].is_string() && json.contains("source") &&
                      json["source"].is_string() && !json["source"].get<std::string>().empty();
  if (formed && (unit.empty() || json["unit"] == unit)) return json["value"].get<double>();
  return InvalidArgument("constants: ", QuoteShort(name),
                         ": expected {\"value\": number, \"unit\": ", Quote(unit),
                         ", \"source\": text}");
}

absl::StatusOr<MeasuredConstants> Parse(std::string_view text) {
  if (static_cast<int64_t>(text.size()) > kMaxMeasuredFileBytes) {
    return InvalidArgument(text.size(), " bytes; expected at most ", kMaxMeasuredFileBytes);
  }
  // Deeper ones come from no program of ours.
  const auto shallow = [](int depth, OrderedJson::parse_event_t, OrderedJson&) {
    return depth <= 4;
  };
  const OrderedJson root = OrderedJson::parse(text, shallow, /*allow_exceptions=*/false);
  if (root.is_discarded()) return InvalidArgument("not JSON");
  RETURN_IF_ERROR(CheckFileFields(root));
  const int64_t threads = root["threads"].get<int64_t>();
  MeasuredConstants out{.isa = root["isa"],
                        .threads = static_cast<int>(std::clamp<int64_t>(threads, -1, 1 << 20)),
                        .date = root["date"],
                        .source = root["source"]};
  for (const auto& [name, json] : root["constants"].items()) {
    ASSIGN_OR_RETURN(out.values[name], ReadConstant(name, json));
  }
  return out;
}

}  // namespace

std::string MeasuredFileText(const MeasuredConstants& measured) {
  OrderedJson constants = OrderedJson::object();
  const std::string source = StrCat("measured by ", measured.source, ", on ", measured.date);
  for (const auto& [name, value] : measured.values) {
    const auto known = MeasurableConstants().find(name);
    const std::string unit(known == MeasurableConstants().end() ? "" : known->second.unit);
    constants[name] = {{"value", value}, {"unit", unit}, {"source", source}};
  }
  const OrderedJson root = {{kMarkField, kFileVersion},    {"isa", measured.isa},
                            {"threads", measured.threads}, {"date", measured.date},
                            {"source", measured.source},   {"constants", constants}};
  return StrCat(root.dump(2, ' ', false, OrderedJson::error_handler_t::replace), "\n");
}

absl::StatusOr<MeasuredConstants> ParseMeasuredFile(std::string_view text, std::string_view file) {
  absl::StatusOr<MeasuredConstants> measured = Parse(text);
  if (!measured.ok()) return InvalidArgument(Quote(file), ": ", Message(measured.status()));
  RETURN_IF_ERROR(CheckMeasured(*measured, Quote(file)));
  return measured;
}

}  // namespace fusion
