#pragma once

#include <onnx/onnx_pb.h>

#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/status.h"

namespace fusion {

/// Version of each imported operator domain. "ai.onnx" is written as "".
using OpsetMap = std::map<std::string, int64_t>;

/// The model-local functions of a model, by domain, name and overload. Points into the model, which
/// must outlive it.
class FunctionTable {
 public:
  struct Function {
    const onnx::FunctionProto* proto = nullptr;
    OpsetMap opsets;
    /// Declared default values. They are read from unknown fields: the onnx.proto of Debian is too
    /// old to have them.
    std::vector<onnx::AttributeProto> defaults;
  };

  /// InvalidArgument for two functions with the same domain, name and overload.
  static absl::StatusOr<FunctionTable> Make(const onnx::ModelProto& model);

  /// The function that a node calls; nullptr if the model has none.
  const Function* Find(const onnx::NodeProto& node) const;

 private:
  std::map<std::tuple<std::string, std::string, std::string>, Function> functions_;
};

/// Opsets of a model or function. InvalidArgument for a domain with two versions.
absl::StatusOr<OpsetMap> ReadOpsets(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports);

/// The domain, with "" for "ai.onnx".
std::string NormalDomain(const std::string& domain);

}  // namespace fusion
