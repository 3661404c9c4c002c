#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <variant>
#include <vector>

#include "core/tensor/host_tensor.h"

namespace fusion {

/// Writes small ONNX models for tests, correct or not.
///
///   TestModel m;
///   m.Input("x", {2, "N"}).Node("Relu", {"x"}, {"y"}).Output("y");
///   ImportOnnx(m.proto());
class TestModel {
 public:
  /// A number, a symbol, or nothing ("").
  using TestDim = std::variant<int, int64_t, const char*>;

  explicit TestModel(int opset = 17);

  TestModel& Input(const std::string& name, const std::vector<TestDim>& dims,
                   DType dtype = DType::kF32);
  /// Without dims: no type is declared.
  TestModel& Output(const std::string& name);
  TestModel& Output(const std::string& name, const std::vector<TestDim>& dims,
                    DType dtype = DType::kF32);
  TestModel& Declare(const std::string& name, const std::vector<TestDim>& dims,
                     DType dtype = DType::kF32);
  TestModel& Initializer(const std::string& name, const HostTensor& value);
  TestModel& Ints(const std::string& name, const std::vector<int64_t>& values);
  /// An initialiser whose bytes are elsewhere.
  TestModel& Reference(const std::string& name, const Dims& dims, DType dtype = DType::kF32);

  /// Adds a node; attributes through last().
  TestModel& Node(const std::string& op, const std::vector<std::string>& inputs,
                  const std::vector<std::string>& outputs, const std::string& name = "");
  TestModel& Attr(const std::string& name, int64_t value);
  TestModel& Attr(const std::string& name, const std::vector<int64_t>& values);
  TestModel& AttrFloat(const std::string& name, float value);
  TestModel& AttrString(const std::string& name, const std::string& value);
  TestModel& AttrTensor(const std::string& name, const HostTensor& value);
  /// The graph of `body` as a body of the node.
  TestModel& AttrGraph(const std::string& name, const TestModel& body);
  /// Refers to an attribute of the enclosing function.
  TestModel& AttrRef(const std::string& name, const std::string& referred);
  TestModel& Domain(const std::string& domain);

  /// Nodes added from here on belong to this function; End() returns to the main graph.
  TestModel& Function(const std::string& domain, const std::string& name,
                      const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs,
                      const std::vector<std::string>& attributes = {}, int opset = 17);
  TestModel& End();

  /// The node added last.
  onnx::NodeProto* last() { return last_; }
  onnx::GraphProto* graph() { return proto_.mutable_graph(); }
  onnx::ModelProto& proto() { return proto_; }
  /// As a client sends it.
  std::string Bytes() const { return proto_.SerializeAsString(); }

 private:
  onnx::ModelProto proto_;
  onnx::FunctionProto* function_ = nullptr;
  onnx::NodeProto* last_ = nullptr;
};

/// y = Relu(x w + b), x [rows, 64], w [64, 32] and b by reference; nodes product, sum, relu.
/// `prefix` goes before every name.
TestModel LinearReluModel(int64_t rows = 8, const std::string& prefix = "");

}  // namespace fusion
