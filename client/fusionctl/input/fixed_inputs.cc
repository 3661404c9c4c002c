#include "client/fusionctl/input/fixed_inputs.h"

#include <algorithm>
#include <charconv>

#include "client/fusionctl/args/exit_code.h"
#include "client/fusionctl/input/data.h"
#include "core/onnx/model_edits.h"
#include "core/onnx/overridable.h"
#include "core/onnx/tensor_proto.h"
#include "core/onnx/test_data.h"
#include "core/op/body/scalar.h"
#include "core/tensor/onnx_dtype.h"

namespace fusion {
namespace {

// A number as the one element of an input; nullopt if the word is none.
std::optional<HostTensor> NumberFor(const onnx::ValueInfoProto& input, const std::string& word) {
  const onnx::TypeProto::Tensor& type = input.type().tensor_type();
  const std::optional<DType> dtype = DTypeFromOnnx(type.elem_type());
  double number = 0;
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (!dtype || error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  Dims dims(static_cast<size_t>(type.shape().dim_size()), 1);
  HostTensor out(*dtype, dims);
  if (IsFloat(*dtype)) {
    out.SetDouble(0, number);
  } else {
    int64_t integer = 0;
    auto [stop, bad] = std::from_chars(word.data(), word.data() + word.size(), integer);
    if (bad != std::errc() || stop != end || WrapInteger(*dtype, integer) != integer) {
      return std::nullopt;
    }
    out.SetInt(0, integer);
  }
  return out;
}

absl::Status FixInput(const std::string& name, const std::string& word, onnx::ModelProto* model) {
  const onnx::ValueInfoProto* input = nullptr;
  for (const onnx::ValueInfoProto& declared : model->graph().input()) {
    if (declared.name() == name) input = &declared;
  }
  if (input == nullptr) return InvalidArgument("the model has no such input");
  const auto of_name = [&](const auto& constant) { return constant.name() == name; };
  const auto& constants = model->graph().initializer();
  const bool replaced = std::any_of(constants.begin(), constants.end(), of_name);
  if (replaced) RETURN_IF_ERROR(CheckOverridable(*model, name));
  if (!input->type().has_tensor_type()) return InvalidArgument("is no tensor");
  std::optional<HostTensor> value = NumberFor(*input, word);
  if (!value) {
    ASSIGN_OR_RETURN(NamedTensor tensor,
                     LoadTensorFile(word, [&](const std::string&, DType dtype, const Dims& dims) {
                       return CheckInputType(*input, word, dtype, dims);
                     }));
    value = std::move(tensor.value);
  }
  RETURN_IF_ERROR(CheckInput(*input, word, &*value));
  if (replaced) RemoveIf(model->mutable_graph()->mutable_initializer(), of_name);
  *model->mutable_graph()->add_initializer() = MakeTensorProto(*value, name);
  return absl::OkStatus();
}

}  // namespace

absl::Status FixInputs(const std::map<std::string, std::string>& values, onnx::ModelProto* model) {
  for (const auto& [name, word] : values) {
    absl::Status fixed = FixInput(name, word, model);
    if (!fixed.ok()) return BadFile(Annotate(fixed, StrCat("--fix ", QuoteShort(name))));
  }
  return absl::OkStatus();
}

}  // namespace fusion
