#include "core/onnx/overridable.h"

#include <algorithm>
#include <unordered_set>

namespace fusion {
namespace {

constexpr int64_t kFirstIrVersion = 4;

bool IsInput(const onnx::ModelProto& model, const std::string& name) {
  const auto& inputs = model.graph().input();
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const auto& input) { return input.name() == name; });
}

bool IsInitializer(const onnx::ModelProto& model, const std::string& name) {
  const auto& all = model.graph().initializer();
  return std::any_of(all.begin(), all.end(),
                     [&](const auto& tensor) { return tensor.name() == name; });
}

}  // namespace

std::vector<std::string> OverridableInitializers(const onnx::ModelProto& model) {
  std::vector<std::string> out;
  if (model.ir_version() < kFirstIrVersion) return out;
  std::unordered_set<std::string_view> initializers;
  for (const auto& tensor : model.graph().initializer()) initializers.insert(tensor.name());
  for (const onnx::ValueInfoProto& input : model.graph().input()) {
    if (initializers.contains(input.name())) out.push_back(input.name());
  }
  return out;
}

absl::Status CheckOverridable(const onnx::ModelProto& model, const std::string& name) {
  const bool is_input = IsInput(model, name);
  if (!IsInitializer(model, name)) {
    if (is_input) return InvalidArgument("input ", QuoteShort(name), " is no initialiser");
    const std::vector<std::string> known = OverridableInitializers(model);
    return InvalidArgument(
        "the model has no initialiser ", QuoteShort(name),
        known.empty() ? "; it has none that can be overridden" : "; those that can be overridden: ",
        StrJoin(known, ", ", QuoteShort));
  }
  if (!is_input) {
    return InvalidArgument("initialiser ", QuoteShort(name),
                           " cannot be overridden: it is no input of the graph");
  }
  if (model.ir_version() < kFirstIrVersion) {
    return InvalidArgument("initialiser ", QuoteShort(name),
                           " cannot be overridden: the model has IR version ", model.ir_version(),
                           ", expected ", kFirstIrVersion, " or later");
  }
  return absl::OkStatus();
}

}  // namespace fusion
