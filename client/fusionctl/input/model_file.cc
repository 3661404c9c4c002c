#include "client/fusionctl/input/model_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "client/detect_target.h"
#include "client/fusionctl/args/exit_code.h"
#include "client/fusionctl/input/fixed_inputs.h"
#include "client/fusionctl/input/overridden.h"
#include "core/base/files/file.h"
#include "core/base/hash.h"
#include "core/graph/evaluate/test_values.h"
#include "core/onnx/model_io.h"
#include "core/onnx/overridable.h"
#include "core/onnx/reference_weights.h"

namespace fusion {
namespace {

// Random values whose sums over the first extent stay near 1, like trained weights.
absl::StatusOr<HostTensor> MakeUpWeight(const onnx::TensorProto& tensor, const std::string& name) {
  ASSIGN_OR_RETURN(TensorHeader header, ReadTensorHeader(tensor, StrCat("weight ", Quote(name))));
  Digest digest = Sha256(name);
  uint64_t seed = 0;
  for (size_t i = 0; i < 8; ++i) seed = seed << 8 | digest.bytes[i];
  HostTensor out = RandomTensor({header.dtype, Shape(header.dims)}, seed);
  if (!IsFloat(header.dtype) || header.dims.size() < 2) return out;
  double scale = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, header.dims[0])));
  for (int64_t i = 0; i < out.elements(); ++i) out.SetDouble(i, out.GetDouble(i) * scale);
  return out;
}

// The display name of a model: its file name, with that of its folder if the file name is generic.
std::string ModelName(const std::string& file) {
  const std::filesystem::path path = AbsolutePath(file);
  const std::string name = path.stem().string();
  if (name != "model" || !path.parent_path().has_filename()) return name;
  return StrCat(path.parent_path().filename().string(), "/", name);
}

// Expands * in --share: one entry for each matching input, with * replaced in the output too.
absl::StatusOr<std::vector<SharedNames>> WithoutStars(const std::vector<SharedNames>& given,
                                                      const ModelFile& file) {
  std::vector<SharedNames> out;
  for (const SharedNames& shared : given) {
    const size_t star = shared.input.find('*');
    if (star == std::string::npos) {
      out.push_back(shared);
      continue;
    }
    const std::string_view head = std::string_view(shared.input).substr(0, star);
    const std::string_view tail = std::string_view(shared.input).substr(star + 1);
    const size_t before = out.size();
    for (const onnx::ValueInfoProto* input : file.inputs()) {
      const std::string& name = input->name();
      const bool fits = name.size() >= head.size() + tail.size() && name.starts_with(head) &&
                        name.ends_with(tail);
      if (!fits) continue;
      std::string output = shared.output;
      output.replace(output.find('*'), 1, name, star, name.size() - head.size() - tail.size());
      out.push_back({name, std::move(output), shared.capacity});
    }
    if (out.size() > before) continue;
    return InvalidArgument("--share ", Quote(shared.input), ": no input of the model is called so");
  }
  return out;
}

// Checks that values of --bind are within the ranges of --range.
absl::Status CheckWithinRanges(const PlanOptions& options) {
  for (const auto& [name, range] : options.dim_ranges) {
    const auto bound = options.dim_bindings.find(name);
    if (bound == options.dim_bindings.end()) continue;
    const int64_t value = bound->second;
    if (value >= range.least && value <= range.most && value % range.multiple == 0) continue;
    std::string wanted = StrCat(range.least, "..", range.most);
    if (range.multiple > 1) wanted += StrCat(" in multiples of ", range.multiple);
    return InvalidArgument("--bind ", Quote(name), ": ", value, "; the plan is for ", Quote(name),
                           " = ", wanted, " (--range)");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelFile>> ModelFile::Load(const std::string& path,
                                                           const Arguments& arguments) {
  RETURN_IF_ERROR(CheckWithinRanges(arguments.options));
  absl::StatusOr<onnx::ModelProto> model = LoadModel(path);
  if (!model.ok()) return BadInput(model.status());
  return MakeFrom(*std::move(model), ModelName(path), ModelDirectory(path), arguments);
}

absl::StatusOr<std::unique_ptr<ModelFile>> ModelFile::Make(onnx::ModelProto model,
                                                           const std::string& name,
                                                           const Arguments& arguments) {
  return MakeFrom(std::move(model), name, /*directory=*/"", arguments);
}

absl::StatusOr<std::unique_ptr<ModelFile>> ModelFile::MakeFrom(onnx::ModelProto model,
                                                               const std::string& name,
                                                               const std::string& directory,
                                                               const Arguments& arguments) {
  std::unique_ptr<ModelFile> file(new ModelFile);
  file->allow_fused_ = arguments.allow_fused;
  file->name_ = name;
  RETURN_IF_ERROR(FixInputs(arguments.fixed, &model));
  for (const auto& [input, value] : arguments.fixed) file->fixed_.insert(input);
  ASSIGN_OR_RETURN(file->overridden_, OverriddenInitializers(model, arguments));
  absl::StatusOr<onnx::ModelProto> bare = ReferenceWeights(
      model,
      {.directory = directory, .overridden = {file->overridden_.begin(), file->overridden_.end()}});
  if (!bare.ok()) return BadFile(bare.status());
  file->bare_ = *std::move(bare);
  file->bytes_ = file->bare_.SerializeAsString();
  file->source_ = std::make_unique<WeightSource>(std::move(model), directory);
  std::set<std::string_view> constants;
  for (const auto& tensor : file->bare_.graph().initializer()) constants.insert(tensor.name());
  for (const onnx::ValueInfoProto& input : file->bare_.graph().input()) {
    const bool is_input = !constants.contains(input.name());
    if (is_input) file->inputs_.push_back(&input);
    if (is_input || file->IsFixed(input.name())) file->data_inputs_.push_back(&input);
  }
  ASSIGN_OR_RETURN(file->shared_, WithoutStars(arguments.options.shared_buffers, *file));
  return file;
}

std::vector<std::string> ModelFile::overridable() const {
  std::vector<std::string> out = OverridableInitializers(bare_);
  std::erase_if(out, [&](const std::string& name) { return IsFixed(name); });
  return out;
}

FusionRequest RequestFor(const Arguments& arguments, const PlanOptions& options) {
  FusionRequest request;
  request.target = DetectTarget(arguments.threads);
  if (!arguments.isa.empty()) {  // another CPU: nothing of this one but its threads
    request.target = {.isa = arguments.isa, .threads = request.target.threads};
  }
  if (!arguments.target.empty()) {  // another device: nothing of this machine
    request.target = {.name = arguments.target, .threads = arguments.threads};
  }
  request.target.measured = arguments.measured;
  request.options = options;
  request.request_id = "fusionctl";
  if (!arguments.model.empty()) request.model_name = ModelName(arguments.model);
  request.allow_fused = arguments.allow_fused;
  return request;
}

FusionRequest ModelFile::Request(const Arguments& arguments, const PlanOptions& options) const {
  FusionRequest request = RequestFor(arguments, options);
  request.onnx_model = bytes_;
  request.model_name = name_;
  request.options.shared_buffers = shared_;
  // The data of one run do not bind dims that stay open.
  if (!options.dim_ranges.empty()) {
    std::erase_if(request.options.dim_bindings, [&](const auto& binding) {
      const bool sum = binding.first.find_first_of("+-*") != std::string::npos;
      const bool asked = arguments.options.dim_bindings.contains(binding.first);
      return options.dim_ranges.contains(binding.first) || (sum && !asked);
    });
  }
  return request;
}

absl::StatusOr<HostTensor> ModelFile::Weight(const std::string& name) const {
  // Otherwise a taken weight would be replaced by a random one.
  if (taken_) return Internal("weight ", Quote(name), ": weights of the model were given away");
  return OrMadeUp(name, source_->Load(name));
}

absl::StatusOr<HostTensor> ModelFile::TakeWeight(const std::string& name) const {
  taken_ = true;
  return OrMadeUp(name, source_->Take(name));
}

absl::StatusOr<HostTensor> ModelFile::OrMadeUp(const std::string& name,
                                               absl::StatusOr<HostTensor> bytes) const {
  if (bytes.ok()) return bytes;
  // FailedPrecondition: the model was stored without its weights.
  for (const onnx::TensorProto& tensor : bare_.graph().initializer()) {
    if (tensor.name() != name || !absl::IsFailedPrecondition(bytes.status())) continue;
    made_up_ = true;
    return MakeUpWeight(tensor, name);
  }
  return ExitCodeOf(bytes.status()) == kExitNoMemory ? bytes.status() : BadInput(bytes.status());
}

}  // namespace fusion
