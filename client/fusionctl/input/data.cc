#include "client/fusionctl/input/data.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "client/fusionctl/args/exit_code.h"
#include "client/fusionctl/input/npz.h"
#include "core/bundle/tolerance.h"
#include "core/custom/custom_ops.h"
#include "core/graph/evaluate/evaluate.h"
#include "core/graph/evaluate/test_values.h"
#include "core/import/import.h"
#include "core/onnx/open_dim.h"
#include "core/onnx/test_data.h"
#include "core/tensor/onnx_dtype.h"

namespace fusion {
namespace {

// For messages: "x", "y"; and the initialisers that can be overridden.
std::string InputNames(const ModelFile& model) {
  std::string out = StrJoin(model.inputs(), ", ", [](const onnx::ValueInfoProto* input) {
    return QuoteShort(input->name());
  });
  const std::vector<std::string> more = model.overridable();
  if (more.empty()) return out;
  return StrCat(out, "; initialisers that can be overridden: ", StrJoin(more, ", ", QuoteShort));
}

// The index of `name` in `names`; names.size() if it is not there.
size_t PositionOf(const std::string& name, const std::vector<std::string>& names) {
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

// How often data sets have a tensor for an input or output, in descending order.
enum class Presence : uint8_t { kAlways, kFixed, kOverridden };

// The input orders by which numbered files may be assigned: inputs that are always present; these
// and those of --fix; these and overridden initialisers.
std::vector<std::vector<size_t>> OrdersOf(const std::vector<Presence>& presence) {
  std::vector<std::vector<size_t>> out;
  for (Presence most : {Presence::kAlways, Presence::kFixed, Presence::kOverridden}) {
    out.emplace_back();
    for (size_t k = 0; k < presence.size(); ++k) {
      if (presence[k] <= most) out.back().push_back(k);
    }
  }
  return out;
}

// For each tensor of a set, the index in `names` to which it belongs. Tensors are assigned by name
// if all have known names and none is missing, else by number.
absl::StatusOr<std::vector<size_t>> PlacesOf(const std::vector<std::string>& given,
                                             const std::vector<std::string>& names,
                                             const std::vector<Presence>& presence,
                                             std::string_view kind, const std::string& where) {
  std::vector<size_t> places;
  bool by_name = true;
  for (const std::string& name : given) {
    places.push_back(PositionOf(name, names));
    by_name = by_name && places.back() < names.size();
  }
  for (size_t k = 0; k < names.size(); ++k) {
    const auto count = std::count(places.begin(), places.end(), k);
    by_name = by_name && count <= 1 && (count == 1 || presence[k] != Presence::kAlways);
  }
  if (by_name) return places;
  const std::vector<std::vector<size_t>> orders = OrdersOf(presence);
  for (const std::vector<size_t>& order : orders) {
    if (given.size() == order.size()) return order;
  }
  const std::vector<size_t>& least = orders.front();
  if (given.size() < least.size()) {
    return InvalidArgument(kind, " ", Quote(names[least[given.size()]]),
                           " is missing: ", Quote(where), " has no ", kind, "_", given.size(),
                           ".pb");
  }
  return InvalidArgument(Quote(where), " has ", kind, "_", least.size(), " and the model has ",
                         least.size(), " ", kind, least.size() == 1 ? "" : "s", ": ",
                         StrJoin(names, ", ", QuoteShort));
}

// Whether elements of type `given` are accepted as the bits of `wanted`, a type that NumPy lacks:
// u16 for bf16 (as in ONNX's own data), u8 or i8 for narrower types.
bool AreBitsOf(DType given, DType wanted) {
  if (wanted == DType::kBF16) return given == DType::kU16;
  if (IsNarrowFloat(wanted) || wanted == DType::kU4 || wanted == DType::kU2) {
    return given == DType::kU8;
  }
  return IsNarrowInteger(wanted) && given == DType::kI8;
}

absl::Status TakeBits(const onnx::ValueInfoProto& declared, HostTensor* tensor) {
  const auto wanted = DTypeFromOnnx(declared.type().tensor_type().elem_type());
  if (!wanted || !AreBitsOf(tensor->dtype(), *wanted)) return absl::OkStatus();
  HostTensor before = std::move(*tensor);
  ASSIGN_OR_RETURN(*tensor, HostTensor::FromBytes(*wanted, before.dims(), before.byte_view()));
  const bool fits = tensor->byte_view() == before.byte_view();
  if (fits) return absl::OkStatus();
  return InvalidArgument("tensor ", Quote(declared.name()), " has ", DTypeName(before.dtype()),
                         " values beyond the ", DTypeBits(*wanted), " bits of ",
                         DTypeName(*wanted));
}

// ONNX's test data also has values of these types, which must not be read as tensors.
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

// The number k if `name` is `prefix` followed by k.
std::optional<size_t> NumberBehind(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  size_t k = 0;
  const char* end = name.data() + name.size();
  auto [stop, error] = std::from_chars(name.data() + prefix.size(), end, k);
  if (error != std::errc() || stop != end) return std::nullopt;
  return k;
}

// The inputs and outputs for which a data set may have tensors.
struct Declared {
  explicit Declared(const ModelFile& model) {
    for (const onnx::ValueInfoProto* input : model.data_inputs()) {
      const std::string& name = input->name();
      values.push_back(input);
      inputs.push_back(name);
      presence.push_back(model.IsFixed(name)        ? Presence::kFixed
                         : model.IsOverridden(name) ? Presence::kOverridden
                                                    : Presence::kAlways);
    }
    for (const auto& output : model.bare().graph().output()) outputs.push_back(output.name());
  }
  std::vector<const onnx::ValueInfoProto*> values;  // of inputs
  std::vector<std::string> inputs, outputs;
  std::vector<Presence> presence;  // of inputs
};

std::vector<std::string> NamesOf(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> out;
  out.reserve(tensors.size());
  for (const NamedTensor& tensor : tensors) out.push_back(tensor.name);
  return out;
}

// A set may have a tensor for an input of --fix only with that value.
absl::Status CheckFixed(const ModelFile& model, const std::string& name, const std::string& where,
                        const HostTensor& given) {
  ASSIGN_OR_RETURN(const HostTensor fixed, model.Weight(name));
  if (fixed.dims() == given.dims() && fixed.byte_view() == given.byte_view()) {
    return absl::OkStatus();
  }
  return InvalidArgument("input ", Quote(name), " of ", Quote(where),
                         " is not what --fix says of it");
}

// The inputs of a run in the model's order, checked. Initialisers that the set does not override
// have the model's values.
absl::Status ArrangeInputs(std::vector<NamedTensor> tensors, const Declared& declared,
                           const std::string& where, const ModelFile& model, RunData* out) {
  ASSIGN_OR_RETURN(const std::vector<size_t> places,
                   PlacesOf(NamesOf(tensors), declared.inputs, declared.presence, "input", where));
  std::vector<std::optional<HostTensor>> given(declared.inputs.size());
  for (size_t i = 0; i < places.size(); ++i) given[places[i]] = std::move(tensors[i].value);
  for (size_t i = 0; i < given.size(); ++i) {
    const bool is_fixed = declared.presence[i] == Presence::kFixed;
    if (!given[i] && is_fixed) continue;
    if (!given[i]) {
      ASSIGN_OR_RETURN(given[i], model.Weight(declared.inputs[i]));
    }
    RETURN_IF_ERROR(CheckInput(*declared.values[i], where, &*given[i]));
    if (is_fixed) {
      RETURN_IF_ERROR(CheckFixed(model, declared.inputs[i], where, *given[i]));
    } else {
      out->inputs.push_back(*std::move(given[i]));
    }
  }
  return absl::OkStatus();
}

// A set's tensors in the model's order, checked.
absl::StatusOr<RunData> Arranged(TestDataSet set, const std::string& where,
                                 const ModelFile& model) {
  const Declared declared(model);
  RunData out{.name = where};
  RETURN_IF_ERROR(ArrangeInputs(std::move(set.inputs), declared, where, model, &out));
  if (set.outputs.empty()) return out;
  const std::vector<Presence> all(declared.outputs.size(), Presence::kAlways);
  ASSIGN_OR_RETURN(const std::vector<size_t> places,
                   PlacesOf(NamesOf(set.outputs), declared.outputs, all, "output", where));
  out.outputs.resize(declared.outputs.size());
  for (size_t i = 0; i < places.size(); ++i) {
    const onnx::ValueInfoProto& output = model.bare().graph().output(static_cast<int>(places[i]));
    RETURN_IF_ERROR(TakeBits(output, &set.outputs[i].value));
    out.outputs[places[i]] = std::move(set.outputs[i].value);
  }
  return out;
}

// Checks the type of input `k` of a set before it is read: it must match the input of its name, or
// of its number in one of the orders. A number that is too large is reported later, by PlacesOf.
absl::Status CheckBeforeReading(const Declared& declared, const std::string& where, size_t k,
                                const NamedType& type) {
  std::vector<size_t> places;
  const size_t named = PositionOf(type.name, declared.inputs);
  if (named < declared.inputs.size()) places.push_back(named);
  for (const std::vector<size_t>& order : OrdersOf(declared.presence)) {
    if (k < order.size()) places.push_back(order[k]);
  }
  absl::Status first;
  for (size_t place : places) {
    absl::Status fits = CheckInputType(*declared.values[place], where, type.dtype, type.dims);
    if (fits.ok()) return fits;
    if (first.ok()) first = std::move(fits);
  }
  return first;
}

absl::StatusOr<RunData> LoadOne(const std::string& directory, const ModelFile& model) {
  for (const onnx::ValueInfoProto* input : model.data_inputs()) {
    RETURN_IF_ERROR(CheckIsTensor(*input, "input"));
  }
  for (const auto& output : model.bare().graph().output()) {
    RETURN_IF_ERROR(CheckIsTensor(output, "output"));
  }
  const Declared declared(model);
  absl::StatusOr<TestDataSet> set =
      LoadTestDataSet(directory, [&](bool is_output, size_t k, const NamedType& type) {
        // Models declare extents of outputs loosely.
        return is_output ? absl::OkStatus() : CheckBeforeReading(declared, directory, k, type);
      });
  if (!set.ok()) return BadFile(set.status());
  return Arranged(*std::move(set), directory, model);
}

// The declared name for an array: its own, or declared[k] if it is one of `prefixes` followed by k.
// Null: there is none.
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
                         const std::vector<std::string>& names,
                         const std::vector<Presence>& presence, std::string_view kind,
                         const std::string& path) {
  for (size_t k = 0; k < names.size(); ++k) {
    const auto of_name = [&](const NamedTensor& t) { return t.name == names[k]; };
    if (std::any_of(given.begin(), given.end(), of_name)) continue;
    if (presence[k] != Presence::kAlways) continue;
    return InvalidArgument(kind, " ", QuoteShort(names[k]), " is missing from ", Quote(path));
  }
  return absl::OkStatus();
}

// The inputs to which numbered arrays (input_3, arr_3 of numpy.savez) refer: the shortest order
// with enough inputs.
std::vector<std::string> Numbered(const Declared& declared,
                                  const std::vector<std::string>& arrays) {
  const auto numbered = std::count_if(arrays.begin(), arrays.end(), [](const std::string& name) {
    return NumberBehind("input_", name) || NumberBehind("arr_", name);
  });
  const std::vector<std::vector<size_t>> orders = OrdersOf(declared.presence);
  const auto enough = std::find_if(orders.begin(), orders.end(), [&](const auto& order) {
    return order.size() >= static_cast<size_t>(numbered);
  });
  std::vector<std::string> out;
  for (size_t k : enough == orders.end() ? orders.back() : *enough) {
    out.push_back(declared.inputs[k]);
  }
  return out;
}

// The arrays of a .npz file under the names of inputs and outputs, or as numpy.savez numbers them.
absl::StatusOr<RunData> LoadArchive(const std::string& path, const ModelFile& model) {
  absl::StatusOr<std::vector<std::string>> names = NamesInNpz(path);
  if (!names.ok()) return BadFile(names.status());
  const Declared declared(model);
  const std::vector<std::string> numbered = Numbered(declared, *names);
  const auto input_of = [&](const std::string& array) {
    return PositionOf(array, declared.inputs) < declared.inputs.size()
               ? &array
               : DeclaredName(array, numbered, {"input_", "arr_"});
  };
  const auto check = [&](const std::string& array, DType dtype, const Dims& dims) {
    const std::string* input = input_of(array);
    if (input != nullptr) {
      const size_t position = PositionOf(*input, declared.inputs);
      return CheckInputType(*declared.values[position], path, dtype, dims);
    }
    if (DeclaredName(array, declared.outputs, {"output_"}) != nullptr) return absl::OkStatus();
    return InvalidArgument(
        "the model has no input or output of this name; inputs: ", InputNames(model),
        "; outputs: ", StrJoin(declared.outputs, ", ", QuoteShort));
  };
  absl::StatusOr<std::vector<NamedTensor>> arrays = LoadNpz(path, check);
  if (!arrays.ok()) return BadFile(arrays.status());
  TestDataSet set;
  std::map<std::pair<bool, std::string>, std::string> array_of;  // by kind and name in the model
  for (NamedTensor& array : *arrays) {
    const std::string* input = input_of(array.name);
    const bool is_input = input != nullptr;
    const std::string name =
        is_input ? *input : *DeclaredName(array.name, declared.outputs, {"output_"});
    const auto [at, fresh] = array_of.emplace(std::pair(is_input, name), array.name);
    if (!fresh) {
      return InvalidArgument(Quote(path), " has two arrays for ", is_input ? "input " : "output ",
                             QuoteShort(name), ": ", QuoteShort(at->second), " and ",
                             QuoteShort(array.name));
    }
    (is_input ? set.inputs : set.outputs).push_back({name, std::move(array.value)});
  }
  RETURN_IF_ERROR(CheckHasAll(set.inputs, declared.inputs, declared.presence, "input", path));
  const std::vector<Presence> all(declared.outputs.size(), Presence::kAlways);
  if (!set.outputs.empty()) {
    RETURN_IF_ERROR(CheckHasAll(set.outputs, declared.outputs, all, "output", path));
  }
  return Arranged(std::move(set), path, model);
}

}  // namespace

absl::Status CheckInputType(const onnx::ValueInfoProto& declared, const std::string& where,
                            DType dtype, const Dims& dims) {
  const onnx::TypeProto::Tensor& type = declared.type().tensor_type();
  const std::optional<DType> wanted = DTypeFromOnnx(type.elem_type());
  const bool bits = wanted && AreBitsOf(dtype, *wanted);
  const std::string what = StrCat("input ", Quote(declared.name()), " of ", Quote(where), " is ",
                                  DTypeName(dtype), DimsToString(dims));
  if (wanted && *wanted != dtype && !bits) {
    return InvalidArgument(what, ", the model declares ", DTypeName(*wanted));
  }
  if (!type.has_shape()) return absl::OkStatus();
  bool fits = static_cast<size_t>(type.shape().dim_size()) == dims.size();
  for (size_t d = 0; fits && d < dims.size(); ++d) {
    const auto& dim = type.shape().dim(static_cast<int>(d));
    fits = !dim.has_dim_value() || IsUnknownDim(dim) || dim.dim_value() == dims[d];
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

absl::Status CheckInput(const onnx::ValueInfoProto& declared, const std::string& where,
                        HostTensor* tensor) {
  RETURN_IF_ERROR(TakeBits(declared, tensor));
  return CheckInputType(declared, where, tensor->dtype(), tensor->dims());
}

absl::StatusOr<std::vector<RunData>> LoadData(const std::string& directory,
                                              const ModelFile& model) {
  std::error_code ignored;
  if (IsNpz(directory)) {
    ASSIGN_OR_RETURN(RunData data, LoadArchive(directory, model));
    return std::vector<RunData>{std::move(data)};
  }
  if (!std::filesystem::is_directory(directory, ignored)) {
    return NotFound("--data ", Quote(directory),
                    std::filesystem::exists(directory, ignored)
                        ? ": is neither a directory nor a .npz file"
                        : ": no such directory");
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
      return InvalidArgument("--input ", QuoteShort(name),
                             ": no such input; inputs: ", InputNames(model));
    }
    const onnx::ValueInfoProto& declared = *model.inputs()[at];
    RETURN_IF_ERROR(CheckIsTensor(declared, "input"));
    absl::StatusOr<NamedTensor> tensor =
        LoadTensorFile(path, [&, &from = path](const std::string&, DType dtype, const Dims& dims) {
          return CheckInputType(declared, from, dtype, dims);
        });
    if (!tensor.ok()) return BadFile(tensor.status());
    RETURN_IF_ERROR(CheckInput(declared, path, &tensor->value));
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

absl::StatusOr<std::vector<HostTensor>> RandomData(const Graph& graph, const ModelFile& model,
                                                   uint64_t seed) {
  ASSIGN_OR_RETURN(std::vector<HostTensor> out, RandomData(graph, seed));
  for (size_t i = 0; i < out.size(); ++i) {
    const std::string& name = model.inputs()[i]->name();
    if (model.IsOverridden(name)) {
      ASSIGN_OR_RETURN(out[i], model.Weight(name));
    }
  }
  return out;
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
