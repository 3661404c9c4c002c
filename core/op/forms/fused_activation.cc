#include "core/op/forms/fused_activation.h"

#include "core/op/forms.h"
#include "core/op/forms/convolution.h"

namespace fusion {

namespace {

struct FusedActivation {
  std::string_view name;
  std::vector<std::string_view> params = {};  // of our op
};

const std::vector<FusedActivation>& FusedActivations() {
  static const auto* const kRows =
      new std::vector<FusedActivation>{{"Clip", {"low", "high"}},
                                       {"Elu", {"alpha"}},
                                       {"HardSigmoid", {"alpha", "beta"}},
                                       {"LeakyRelu", {"alpha"}},
                                       {"Relu"},
                                       {"Selu", {"alpha", "gamma"}},
                                       {"Sigmoid"},
                                       {"Softplus"},
                                       {"Softsign"},
                                       {"Tanh"},
                                       {"ThresholdedRelu", {"alpha"}}};  // lives for ever
  return *kRows;
}

// The activation that the call names; null: none.
absl::StatusOr<const FusedActivation*> NamedActivation(const OpCall& call) {
  const auto* name = call.attrs().Find<std::string>("activation");
  if (name == nullptr || name->empty()) return nullptr;
  for (const FusedActivation& row : FusedActivations()) {
    if (row.name == *name) return &row;
  }
  return Unimplemented(
      "attribute \"activation\" is ", QuoteShort(*name), "; supported: ",
      StrJoin(FusedActivations(), ", ", [](const FusedActivation& row) { return row.name; }));
}

}  // namespace

absl::StatusOr<Decomposition::Value> ActivatedByName(Decomposition& d, Decomposition::Value y,
                                                     std::string_view prefix) {
  ASSIGN_OR_RETURN(const FusedActivation* row, NamedActivation(d.call()));
  if (row == nullptr) return y;
  AttrMap attrs;
  for (std::string_view param : row->params) {
    const std::string given = StrCat(prefix, param);
    if (const auto* value = d.call().attrs().Find<double>(given)) attrs.Set(param, *value);
  }
  return d.Apply(row->name, {y}, std::move(attrs));
}

absl::StatusOr<Decomposition::Value> ActivatedByList(Decomposition& d, Decomposition::Value y,
                                                     std::string_view list) {
  ASSIGN_OR_RETURN(const FusedActivation* row, NamedActivation(d.call()));
  if (row == nullptr) return y;
  const auto* given = d.call().attrs().Find<std::vector<double>>(list);
  const size_t count = given == nullptr ? 0 : given->size();
  if (count != row->params.size()) {
    return InvalidArgument("attribute ", Quote(list), " has ", count, " numbers, expected ",
                           row->params.size(), " of ", row->name);
  }
  AttrMap attrs;
  for (size_t i = 0; i < count; ++i) attrs.Set(row->params[i], (*given)[i]);
  return d.Apply(row->name, {y}, std::move(attrs));
}

std::vector<ParamSpec> FusedConvParams() {
  std::vector<ParamSpec> params = ConvolutionParams();
  params.push_back({.name = "activation", .kind = ParamSpec::kString});
  params.push_back({.name = "activation_params", .kind = ParamSpec::kFloats});
  return params;
}

absl::StatusOr<Decomposition::Value> FusedConvolution(Decomposition& d, bool channels_last) {
  const OpCall& call = d.call();
  std::vector<Decomposition::Value> inputs = {d.in(0), d.in(1)};
  if (channels_last) {
    ASSIGN_OR_RETURN(inputs[0], ChannelsFirst(d, inputs[0]));
  }
  if (call.has_input(2)) inputs.push_back(d.in(2));
  ASSIGN_OR_RETURN(auto y,
                   d.Apply("Conv", std::move(inputs), AttrsNamed(call, ConvolutionParams())));
  if (channels_last) {
    ASSIGN_OR_RETURN(y, ChannelsLast(d, y));
  }
  if (call.has_input(3)) {
    if (call.in(3) != d.type(y)) {
      return InvalidArgument("input 3 is ", call.in(3).ToString(), ", expected ",
                             d.type(y).ToString(), ", the type of the convolution");
    }
    ASSIGN_OR_RETURN(y, d.Apply("Add", {y, d.in(3)}));
  }
  return ActivatedByList(d, y, "activation_params");
}

}  // namespace fusion
