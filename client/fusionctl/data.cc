#include "client/fusionctl/data.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "client/fusionctl/npz.h"
#include "core/bundle/tolerance.h"
#include "core/custom/custom_ops.h"
#include "core/graph/evaluate.h"
#include "core/graph/test_values.h"
#include "core/import/import.h"
#include "core/onnx/open_dim.h"
#include "core/onnx/test_data.h"
#include "core/tensor/onnx_dtype.h"

namespace fusion {
namespace {

// The tensors of a data set in the order of `names`.
absl::StatusOr<std::vector<HostTensor>> Arrange(std::vector<NamedTensor> given,
                                                const std::vector<std::string>& names,
                                                std::string_view kind, const std::string& where) {
  auto position = [&given](const std::string& name) {
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i].name == name) return i;
    }
    return given.size();
  };
  bool by_name = true;
  for (const std::string& name : names) by_name = by_name && position(name) < given.size();
  std::vector<HostTensor> out;
  for (size_t k = 0; k < names.size(); ++k) {
    size_t at = by_name ? position(names[k]) : k;
    if (at >= given.size()) {
      return InvalidArgument(kind, " ", Quote(names[k]), " is missing: ", Quote(where), " has no ",
                             kind, "_", k, ".pb");
    }
    out.push_back(std::move(given[at].value));
  }
  return out;
}

// Bits in u16 are taken for bf16 where the model has that: NumPy has no such type, and ONNX's own
// data hold it so.
absl::Status TakeBitsForBf16(const onnx::ValueInfoProto& declared, HostTensor* tensor) {
  if (declared.type().tensor_type().elem_type() != onnx::TensorProto::BFLOAT16 ||
      tensor->dtype() != DType::kU16) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(*tensor,
                   HostTensor::FromBytes(DType::kBF16, tensor->dims(), tensor->byte_view()));
  return absl::OkStatus();
}

// Files of ONNX's cases hold values of these types too, which must not be taken for tensors.
absl::Status CheckIsTensor(const onnx::ValueInfoProto& declared, std::string_view kind) {
  std::string_view type;
  switch (declared.type().value_case()) {
    case onnx::TypeProto::kSequenceType:
      type = "a sequence";
      break;
    case onnx::TypeProto::kOptionalType:
      type = "optional";
      break;
    case onnx::TypeProto::kMapType:
      type = "a map";
      break;
    case onnx::TypeProto::kSparseTensorType:
      type = "a sparse tensor";
      break;
    default:
      return absl::OkStatus();
  }
  return InvalidArgument(kind, " ", Quote(declared.name()), " is ", type, ": not supported");
}

// k of a name that is `prefix` and k.
std::optional<size_t> NumberBehind(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  size_t k = 0;
  const char* end = name.data() + name.size();
  auto [stop, error] = std::from_chars(name.data() + prefix.size(), end, k);
  if (error != std::errc() || stop != end) return std::nullopt;
  return k;
}

// Expected outputs beyond those of the model would be compared with nothing.
absl::Status CheckNoSurplus(const std::string& directory, size_t outputs) {
  constexpr std::string_view kPrefix = "output_";
  std::error_code ignored;  // what cannot be listed cannot be read either
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    std::string name = entry.path().filename();
    const std::string suffix = entry.path().extension();
    if (suffix != ".pb" && suffix != ".npy") continue;
    const auto k =
        NumberBehind(kPrefix, std::string_view(name).substr(0, name.size() - suffix.size()));
    if (!k || *k < outputs) continue;
    return InvalidArgument(Quote(directory), " has ", name, ", the model has ", outputs,
                           outputs == 1 ? " output" : " outputs");
  }
  return absl::OkStatus();
}

// A set's tensors in the model's order, checked.
absl::StatusOr<RunData> Arranged(TestDataSet set, const std::string& where,
                                 const ModelFile& model) {
  std::vector<std::string> inputs, outputs;
  for (const onnx::ValueInfoProto* input : model.inputs()) inputs.push_back(input->name());
  for (const auto& output : model.bare().graph().output()) outputs.push_back(output.name());
  RunData out{.name = where};
  ASSIGN_OR_RETURN(out.inputs, Arrange(std::move(set.inputs), inputs, "input", where));
  for (size_t i = 0; i < inputs.size(); ++i) {
    RETURN_IF_ERROR(CheckInput(*model.inputs()[i], where, &out.inputs[i]));
  }
  if (set.outputs.empty()) return out;
  ASSIGN_OR_RETURN(out.outputs, Arrange(std::move(set.outputs), outputs, "output", where));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const onnx::ValueInfoProto& declared = model.bare().graph().output(static_cast<int>(i));
    RETURN_IF_ERROR(TakeBitsForBf16(declared, &out.outputs[i]));
  }
  return out;
}

absl::StatusOr<RunData> LoadOne(const std::string& directory, const ModelFile& model) {
  for (const onnx::ValueInfoProto* input : model.inputs()) {
    RETURN_IF_ERROR(CheckIsTensor(*input, "input"));
  }
  for (const auto& output : model.bare().graph().output()) {
    RETURN_IF_ERROR(CheckIsTensor(output, "output"));
  }
  RETURN_IF_ERROR(
      CheckNoSurplus(directory, static_cast<size_t>(model.bare().graph().output_size())));
  absl::StatusOr<TestDataSet> set = LoadTestDataSet(directory);
  if (!set.ok()) return BadInput(set.status());
  return Arranged(*std::move(set), directory, model);
}

// The name that the model has for an array: its own, or that of the number behind one of
// `prefixes`.
const std::string* DeclaredName(const std::string& array, const std::vector<std::string>& declared,
                                const std::vector<std::string_view>& prefixes) {
  for (const std::string& name : declared) {
    if (name == array) return &name;
  }
  for (std::string_view prefix : prefixes) {
    const std::optional<size_t> k = NumberBehind(prefix, array);
    if (k && *k < declared.size()) return &declared[*k];
  }
  return nullptr;
}

absl::Status CheckHasAll(const std::vector<NamedTensor>& given,
                         const std::vector<std::string>& names, std::string_view kind,
                         const std::string& path) {
  for (const std::string& name : names) {
    const auto of_name = [&](const NamedTensor& t) { return t.name == name; };
    const auto count = std::count_if(given.begin(), given.end(), of_name);
    if (count == 1) continue;
    return InvalidArgument(kind, " ", QuoteShort(name),
                           count == 0 ? " is missing from " : " is twice in ", Quote(path));
  }
  return absl::OkStatus();
}

// The arrays of a .npz file under the names of inputs and outputs, or as numpy.savez numbers them.
absl::StatusOr<RunData> LoadArchive(const std::string& path, const ModelFile& model) {
  absl::StatusOr<std::vector<NamedTensor>> arrays = LoadNpz(path);
  if (!arrays.ok()) return BadInput(arrays.status());
  std::vector<std::string> inputs, outputs;
  for (const onnx::ValueInfoProto* input : model.inputs()) inputs.push_back(input->name());
  for (const auto& output : model.bare().graph().output()) outputs.push_back(output.name());
  TestDataSet set;
  for (NamedTensor& array : *arrays) {
    const std::string* input = DeclaredName(array.name, inputs, {"input_", "arr_"});
    const std::string* output = DeclaredName(array.name, outputs, {"output_"});
    if (input == nullptr && output == nullptr) {
      return InvalidArgument(Quote(path), " has the array ", QuoteShort(array.name),
                             ", which the model has no input or output for; inputs: ",
                             StrJoin(inputs, ", ", QuoteShort),
                             "; outputs: ", StrJoin(outputs, ", ", QuoteShort));
    }
    array.name = input != nullptr ? *input : *output;
    (input != nullptr ? set.inputs : set.outputs).push_back(std::move(array));
  }
  RETURN_IF_ERROR(CheckHasAll(set.inputs, inputs, "input", path));
  if (!set.outputs.empty()) RETURN_IF_ERROR(CheckHasAll(set.outputs, outputs, "output", path));
  return Arranged(std::move(set), path, model);
}

}  // namespace

absl::Status CheckInput(const onnx::ValueInfoProto& declared, const std::string& where,
                        HostTensor* tensor) {
  const onnx::TypeProto::Tensor& type = declared.type().tensor_type();
  RETURN_IF_ERROR(TakeBitsForBf16(declared, tensor));
  const HostTensor& given = *tensor;
  std::string what = StrCat("input ", Quote(declared.name()), " of ", Quote(where), " is ",
                            DTypeName(given.dtype()), DimsToString(given.dims()));
  std::optional<DType> dtype = DTypeFromOnnx(type.elem_type());
  if (dtype && *dtype != given.dtype()) {
    return InvalidArgument(what, ", the model declares ", DTypeName(*dtype));
  }
  if (!type.has_shape()) return absl::OkStatus();
  bool fits = static_cast<size_t>(type.shape().dim_size()) == given.dims().size();
  for (size_t d = 0; fits && d < given.dims().size(); ++d) {
    const auto& dim = type.shape().dim(static_cast<int>(d));
    fits = !dim.has_dim_value() || IsUnknownDim(dim) || dim.dim_value() == given.dims()[d];
  }
  if (fits) return absl::OkStatus();
  return InvalidArgument(what, ", the model declares [",
                         StrJoin(type.shape().dim(), ",",
                                 [](const auto& dim) {
                                   if (IsUnknownDim(dim)) return std::string("?");
                                   return dim.has_dim_value() ? StrCat(dim.dim_value())
                                                              : QuoteShort(dim.dim_param());
                                 }),
                         "]");
}

absl::StatusOr<std::vector<RunData>> LoadData(const std::string& directory,
                                              const ModelFile& model) {
  std::error_code ignored;
  if (directory.ends_with(".npz") && !std::filesystem::is_directory(directory, ignored)) {
    ASSIGN_OR_RETURN(RunData data, LoadArchive(directory, model));
    return std::vector<RunData>{std::move(data)};
  }
  if (!std::filesystem::is_directory(directory, ignored)) {
    return NotFound("--data ", Quote(directory), ": no such directory");
  }
  std::vector<std::string> directories = FindTestDataSets(directory);
  if (directories.empty()) directories = {directory};
  std::vector<RunData> out;
  for (const std::string& d : directories) {
    ASSIGN_OR_RETURN(RunData data, LoadOne(d, model));
    out.push_back(std::move(data));
  }
  return out;
}

absl::StatusOr<std::vector<std::optional<HostTensor>>> LoadInputs(
    const std::map<std::string, std::string>& files, const ModelFile& model) {
  std::vector<std::optional<HostTensor>> out(model.inputs().size());
  for (const auto& [name, path] : files) {
    size_t at = 0;
    while (at < out.size() && model.inputs()[at]->name() != name) ++at;
    if (at == out.size()) {
      return InvalidArgument("--input ", QuoteShort(name), ": no such input; inputs: ",
                             StrJoin(model.inputs(), ", ", [](const onnx::ValueInfoProto* input) {
                               return QuoteShort(input->name());
                             }));
    }
    RETURN_IF_ERROR(CheckIsTensor(*model.inputs()[at], "input"));
    absl::StatusOr<NamedTensor> tensor = LoadTensorFile(path);
    if (!tensor.ok()) return BadInput(tensor.status());
    RETURN_IF_ERROR(CheckInput(*model.inputs()[at], path, &tensor->value));
    out[at] = std::move(tensor->value);
  }
  return out;
}

PlanOptions BindToData(const PlanOptions& options, const std::vector<HostTensor>& inputs,
                       const ModelFile& model) {
  return BindToData(options, std::vector<std::optional<HostTensor>>(inputs.begin(), inputs.end()),
                    model);
}

PlanOptions BindToData(const PlanOptions& options,
                       const std::vector<std::optional<HostTensor>>& inputs,
                       const ModelFile& model) {
  PlanOptions out = options;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    const onnx::ValueInfoProto& declared = *model.inputs()[i];
    const auto& dims = declared.type().tensor_type().shape().dim();
    for (int d = 0; d < dims.size(); ++d) {
      const std::optional<std::string> name = OpenDimName(declared, d);
      if (!name) continue;
      if (d == 0 && options.hints.batch_size > 0) continue;  // --batch binds it
      out.dim_bindings.emplace(*name, inputs[i]->dims()[static_cast<size_t>(d)]);
    }
  }
  return out;
}

absl::StatusOr<Graph> ImportModel(const ModelFile& model, const PlanOptions& options) {
  ASSIGN_OR_RETURN(CustomOps custom_ops, CustomOps::Parse(options.custom_ops));
  std::map<std::string, int64_t> dims = options.dim_bindings;
  for (const auto& [name, range] : options.dim_ranges) {
    dims.emplace(name, range.likely > 0 ? range.likely : range.most);
  }
  absl::StatusOr<Graph> graph = ImportOnnx(model.bare(), {.dim_bindings = dims,
                                                          .batch_size = options.hints.batch_size,
                                                          .keep_outputs = options.keep_outputs,
                                                          .custom_ops = &custom_ops,
                                                          .allow_fused = model.allow_fused()});
  if (!graph.ok()) return BadInput(graph.status());
  return graph;
}

absl::StatusOr<std::vector<HostTensor>> RandomData(const Graph& graph, uint64_t seed) {
  absl::StatusOr<Program> program = BuildProgram(graph);
  if (!program.ok()) return BadInput(program.status());
  std::vector<HostTensor> out = RandomInputs(*program, seed, /*adversarial=*/false);
  for (HostTensor& tensor : out) {
    if (!IsInteger(tensor.dtype())) continue;
    for (int64_t i = 0; i < tensor.elements(); ++i) tensor.SetInt(i, tensor.GetInt(i) & 1);
  }
  return out;
}

Tolerance ToleranceFor(const Arguments& arguments, DType dtype) {
  Tolerance out = ToleranceOf(arguments.options.numerics, dtype);
  if (!IsFloat(dtype)) return out;
  if (arguments.atol) out.atol = *arguments.atol;
  if (arguments.rtol) out.rtol = *arguments.rtol;
  return out;
}

absl::StatusOr<std::vector<HostTensor>> EvaluateModel(const Graph& graph, const ModelFile& model,
                                                      const std::vector<HostTensor>& inputs,
                                                      int threads) {
  std::map<TensorId, HostTensor> weights;
  auto weight = [&](TensorId id) -> absl::StatusOr<const HostTensor*> {
    auto it = weights.find(id);
    if (it == weights.end()) {
      ASSIGN_OR_RETURN(HostTensor bytes, model.Weight(graph.tensor(id).name));
      it = weights.emplace(id, std::move(bytes)).first;
    }
    return &it->second;
  };
  absl::StatusOr<std::vector<HostTensor>> out =
      Evaluate(graph, inputs, weight, {.threads = threads});
  if (!out.ok() && !absl::IsResourceExhausted(out.status())) return BadInput(out.status());
  return out;
}

}  // namespace fusion
