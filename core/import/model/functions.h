#pragma once

#include <onnx/onnx_pb.h>

#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/status.h"

namespace fusion {

/// Version of each imported operator domain; "ai.onnx" is "".
using OpsetMap = std::map<std::string, int64_t>;

/// The model-local functions of a model by domain, name and overload; points into the model.
class FunctionTable {
 public:
  struct Function {
    const onnx::FunctionProto* proto = nullptr;
    OpsetMap opsets;
    /// Declared default values (newer than Debian's onnx.proto, read from its unknown fields).
    std::vector<onnx::AttributeProto> defaults;
  };

  /// InvalidArgument for two functions of one name.
  static absl::StatusOr<FunctionTable> Make(const onnx::ModelProto& model);

  /// The function a node calls, or nullptr.
  const Function* Find(const onnx::NodeProto& node) const;

 private:
  std::map<std::tuple<std::string, std::string, std::string>, Function> functions_;
};

/// Opsets of a model or function. InvalidArgument for one domain with two versions.
absl::StatusOr<OpsetMap> ReadOpsets(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports);

/// The domain with "ai.onnx" written as "".
std::string NormalDomain(const std::string& domain);

}  // namespace fusion
