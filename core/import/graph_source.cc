#include "core/import/graph_source.h"

#include "core/import/import.h"
#include "core/onnx/model_io.h"

namespace fusion {

absl::StatusOr<Graph> ImportGraph(const GraphSource& source, const ImportOptions& options) {
  if (source.op_graph != nullptr) {
    if (!source.onnx_model.empty()) {
      return InvalidArgument("graph: both onnx_model and op_graph are given; expected one");
    }
    return ImportOpGraph(*source.op_graph, options);
  }
  if (source.onnx_model.empty()) {
    return InvalidArgument("graph: neither onnx_model nor op_graph is given; expected one");
  }
  ASSIGN_OR_RETURN(onnx::ModelProto model, ParseModel(source.onnx_model));
  return ImportOnnx(model, options);
}

}  // namespace fusion
