#include "client/fusion_request.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>

#include "core/base/kernel_abi.h"
#include "core/base/text/text.h"
#include "core/wire/answer.h"
#include "core/wire/basics/scalars.h"
#include "core/wire/options/options.h"
#include "core/wire/options/target.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {
namespace {

// Raised when the files of the cache mean something else.
constexpr int64_t kRequestDigestVersion = 1;

}  // namespace

absl::Status EncodeRequest(const FusionRequest& request, int64_t max_bytes,
                           v1::PlanFusionRequest* out) {
  if (request.onnx_model.empty() == (request.op_graph == nullptr)) {
    return InvalidArgument("a request holds either an ONNX model or an OpGraph");
  }
  for (const std::string& name : request.options.keep_outputs) {
    if (!IsUtf8(name)) return InvalidArgument("keep_outputs: ", QuoteShort(name), " is not UTF-8");
  }
  for (const auto& [name, value] : request.options.dim_bindings) {
    if (!IsUtf8(name)) return InvalidArgument("dim_bindings: ", QuoteShort(name), " is not UTF-8");
  }
  if (!IsUtf8(request.options.custom_ops)) return InvalidArgument("custom_ops: is not UTF-8");
  if (request.op_graph != nullptr) {
    *out->mutable_op_graph() = *request.op_graph;
  } else {
    out->set_onnx_model(request.onnx_model);
  }
  EncodeTarget(request.target, out->mutable_target());
  out->set_mode(ToWire(request.mode));
  auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(request.ready_within);
  out->set_ready_within_ms(static_cast<uint32_t>(std::clamp<int64_t>(wait.count(), 0, UINT32_MAX)));
  EncodeOptions(request.options, out->mutable_options(), out->mutable_hints());
  for (DumpKind kind : request.dumps) out->add_dumps(ToWire(kind));
  out->set_request_id(TextToWire(request.request_id));
  out->set_model_name(TextToWire(request.model_name));
  out->set_allow_fused(request.allow_fused);
  out->set_explain_miss(request.explain_miss);
  auto bytes = static_cast<int64_t>(out->ByteSizeLong());
  if (bytes > max_bytes) {
    return InvalidArgument("the request has ", HumanBytes(bytes), ", at most ",
                           HumanBytes(max_bytes), " can be sent; are its weights still in it?");
  }
  return absl::OkStatus();
}

absl::StatusOr<Digest> RequestDigest(const FusionRequest& request) {
  v1::PlanFusionRequest wire;
  RETURN_IF_ERROR(EncodeRequest(request, INT32_MAX, &wire));
  wire.clear_request_id();
  wire.clear_model_name();
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);  // else maps come in any order
    if (!wire.SerializeToCodedStream(&coded)) return Internal("a request cannot be serialised");
  }
  FieldHasher hasher;
  return hasher.Add("digest", kRequestDigestVersion)
      .Add("client", FUSION_VERSION)
      .Add("kernel_abi", FUSION_KERNEL_ABI_VERSION)
      .Add("request", bytes)
      .Finish();
}

}  // namespace fusion
