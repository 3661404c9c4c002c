#include "client/fusionctl/input/overridden.h"

#include <algorithm>
#include <filesystem>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/args/exit_code.h"
#include "client/fusionctl/input/npz.h"
#include "core/onnx/overridable.h"
#include "core/onnx/test_data.h"

namespace fusion {
namespace {

// The tensor names in a set's input files; empty strings for tensors without a name.
absl::StatusOr<std::vector<std::string>> NamesInSet(const std::string& directory) {
  ASSIGN_OR_RETURN(const TestDataFiles files, FindTestData(directory));
  std::vector<std::string> out;
  for (const std::string& path : files.inputs) {
    ASSIGN_OR_RETURN(NamedType type, ReadTensorType(path));
    out.push_back(std::move(type.name));
  }
  return out;
}

absl::StatusOr<std::vector<std::vector<std::string>>> NamesIn(const std::string& path) {
  std::vector<std::vector<std::string>> out;
  if (IsNpz(path)) {
    ASSIGN_OR_RETURN(out.emplace_back(), NamesInNpz(path));
    return out;
  }
  std::vector<std::string> directories = FindTestDataSets(path);
  if (directories.empty()) directories = {path};
  for (const std::string& directory : directories) {
    ASSIGN_OR_RETURN(out.emplace_back(), NamesInSet(directory));
  }
  return out;
}

// An input of --fix cannot be overridden.
absl::Status CheckNotFixed(const Arguments& arguments, const std::string& name) {
  if (!arguments.fixed.contains(name)) return absl::OkStatus();
  return InvalidArgument("input ", QuoteShort(name), " has the value of --fix");
}

bool IsInitializer(const onnx::ModelProto& model, const std::string& name) {
  const auto& all = model.graph().initializer();
  return std::any_of(all.begin(), all.end(),
                     [&](const auto& tensor) { return tensor.name() == name; });
}

// Whether there is one file for every graph input and none has the name of an input.
bool CountsByNumber(const std::vector<std::string>& names, const onnx::ModelProto& model) {
  const auto& inputs = model.graph().input();
  if (static_cast<int>(names.size()) != inputs.size()) return false;
  return std::none_of(inputs.begin(), inputs.end(), [&](const auto& input) {
    return std::find(names.begin(), names.end(), input.name()) != names.end();
  });
}

}  // namespace

absl::StatusOr<std::set<std::string>> OverriddenInitializers(const onnx::ModelProto& model,
                                                             const Arguments& arguments) {
  std::set<std::string> out;
  for (const std::string& name : arguments.as_inputs) {
    RETURN_IF_ERROR(Annotate(CheckNotFixed(arguments, name), "--as-input"));
    RETURN_IF_ERROR(Annotate(CheckOverridable(model, name), "--as-input"));
    out.insert(name);
  }
  for (const auto& [name, file] : arguments.inputs) {
    if (!IsInitializer(model, name)) continue;  // an input, or a mistake that is found later
    RETURN_IF_ERROR(Annotate(CheckNotFixed(arguments, name), "--input"));
    RETURN_IF_ERROR(Annotate(CheckOverridable(model, name), "--input"));
    out.insert(name);
  }
  std::vector<std::string> known = OverridableInitializers(model);
  std::erase_if(known, [&](const std::string& name) { return arguments.fixed.contains(name); });
  std::error_code ignored;
  const bool readable =
      IsNpz(arguments.data) || std::filesystem::is_directory(arguments.data, ignored);
  if (known.empty() || !readable) return out;  // LoadData says what is wrong
  absl::StatusOr<std::vector<std::vector<std::string>>> sets = NamesIn(arguments.data);
  if (!sets.ok()) return BadFile(Annotate(sets.status(), "--data"));
  for (const std::vector<std::string>& names : *sets) {
    const bool all = CountsByNumber(names, model);
    for (const std::string& name : known) {
      if (all || std::find(names.begin(), names.end(), name) != names.end()) out.insert(name);
    }
  }
  return out;
}

}  // namespace fusion
