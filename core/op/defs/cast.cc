#include "core/op/body/narrowing.h"
#include "core/op/forms.h"
#include "core/tensor/onnx_dtype.h"

namespace fusion {

namespace {

// ONNX says the type as a number of its TensorProto enumeration; ours is a name.
absl::Status NormaliseCast(OnnxCall& call) {
  const auto* code = call.attrs.Find<int64_t>("to");
  if (code == nullptr && call.attrs.Has("to")) {
    return InvalidArgument("attribute \"to\" is not the number of an element type");
  }
  if (code == nullptr) return absl::OkStatus();
  auto dtype = DTypeFromOnnx(*code);
  if (!dtype)
    return Unimplemented("cast to element type ", OnnxTypeName(*code), " is not supported");
  call.attrs.Set("to", std::string(DTypeName(*dtype)));
  if (IsNarrowFloat(*dtype)) return absl::OkStatus();
  call.attrs.Erase("saturate");
  call.attrs.Erase("round_mode");
  return absl::OkStatus();
}

absl::StatusOr<Narrowing> NarrowingOf(const AttrMap& attrs) {
  Narrowing out = {.saturate = attrs.Int("saturate", 1) != 0};
  const auto* mode = attrs.Find<std::string>("round_mode");
  if (mode == nullptr || *mode == "up") return out;
  if (*mode != "down" && *mode != "nearest") {
    return InvalidArgument("attribute \"round_mode\" is ", QuoteShort(*mode),
                           ", expected up, down or nearest");
  }
  out.mode = *mode == "down" ? Narrowing::kDown : Narrowing::kNearest;
  return out;
}

}  // namespace

/// y = x rounded to another element type; beyond the values of a float of 8 bits as `saturate`
/// says, to f8e8m0 as `round_mode`: up, down or nearest
OpDef DefineCast() {
  return {.name = "Cast",
          .params = {{.name = "to", .kind = ParamSpec::kString, .required = true},
                     {.name = "saturate", .kind = ParamSpec::kInt},
                     {.name = "round_mode", .kind = ParamSpec::kString}},
          .min_opset = 6,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            auto to = ParseDType(*call.attrs().Find<std::string>("to"));
            if (!to) return InvalidArgument("attribute \"to\" is no element type");
            ASSIGN_OR_RETURN(const Narrowing how, NarrowingOf(call.attrs()));
            return ElementwiseBody(
                call, [&](const std::vector<Expr>& in) { return Narrowed(in[0], *to, how); });
          },
          .normalise = NormaliseCast};
}

}  // namespace fusion
