#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <string>
#include <vector>

#include "core/tensor/host_tensor.h"
#include "tests/models/random.h"

namespace fusion {

/// How a test fills an input.
enum class InputFill : uint8_t {
  kNormal,       // near standard normal
  kPaddingMask,  // i64: ones, the last eighth of each row zeros
  kOnes,         // i64
  kPositions,    // i64: past, past + 1, ... along the last dim
  kCausalMask,   // 0 where column <= row + past, else -10000; past = columns - rows
};

/// One input of a generated model: what a test needs to feed it.
struct InputSpec {
  std::string name;
  DType dtype = DType::kF32;
  Dims dims;  // concrete, whatever the model declares
  InputFill fill = InputFill::kNormal;
  int64_t past = 0;
};

/// An extent as a model declares it: a number, and a symbol in its place if the model is dynamic.
struct NamedDim {
  int64_t value = 0;
  std::string symbol = {};
};

/// Writes an ONNX graph the way exporters do: primitive ops, opset 17, names after the module they
/// come from.
///
///   OnnxBuilder b("mlp", /*seed=*/1);
///   std::string x = b.Input("x", DType::kF32, {{8}, {64}});
///   auto scope = b.Enter("fc1");
///   x = b.Op("Gemm", {x, b.Weight("weight", {64, 64}), b.Weight("bias", {64}, 0.02f)});
///   b.Output(x, DType::kF32, {{8}, {64}});
///   onnx::ModelProto model = std::move(b).Finish();
///
/// Weight values depend on the seed and the number of the weight alone, structure and names on
/// neither. Not thread-safe.
class OnnxBuilder {
 public:
  /// `dynamic`: dims with a symbol are declared by it.
  OnnxBuilder(std::string name, uint64_t seed, bool dynamic = false);

  bool dynamic() const { return dynamic_; }
  /// Matrices from here on have weights of 8 bits.
  void UseInt8() { int8_ = true; }
  /// What Product multiplies from here on are 8 bits on both sides.
  void UseQdq() { int8_ = qdq_ = true; }

  /// Names below get "/module" in front while the result lives.
  class Scope {
   public:
    Scope(OnnxBuilder* builder, std::string module) : builder_(builder) {
      builder_->modules_.push_back(std::move(module));
    }
    ~Scope() { builder_->modules_.pop_back(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    OnnxBuilder* builder_;
  };
  [[nodiscard]] Scope Enter(std::string module) { return Scope(this, std::move(module)); }

  std::string Input(const std::string& name, DType dtype, const std::vector<NamedDim>& dims,
                    InputFill fill = InputFill::kNormal, int64_t past = 0);
  /// The tensor becomes an output; under another name if `name` is given (an Identity).
  void Output(const std::string& tensor, DType dtype, const std::vector<NamedDim>& dims,
              const std::string& name = "");

  /// An f32 weight of random values. Scale 0: 1 / sqrt(first extent). A module that is entered
  /// again has the weights it had: what layers share is one initialiser.
  std::string Weight(const std::string& name, const Dims& dims, float scale = 0);
  /// An f32 matrix [rows, columns]; where the model has weights of 8 bits, what DequantizeLinear
  /// makes of i8 with one scale a column.
  std::string Matrix(const std::string& name, int64_t rows, int64_t columns);
  /// MatMul of x by Matrix(name, rows, columns); where both sides have 8 bits, of what
  /// QuantizeLinear (u8 around 128) and DequantizeLinear make of x, once for all its products.
  std::string Product(const std::string& x, const std::string& name, int64_t rows, int64_t columns);
  /// Conv of x by weights of these dims [to, from, windows..], spread by `scale`, and a bias; where
  /// both sides have 8 bits, i8 with one scale for each of `to`, and x as for Product.
  std::string Convolution(const std::string& x, const std::string& name, const Dims& dims,
                          float scale, const std::vector<onnx::AttributeProto>& attributes);
  bool qdq() const { return qdq_; }
  /// An f32 weight near 1.
  std::string Gain(const std::string& name, int64_t extent);
  /// Any other initialiser.
  std::string Initializer(const std::string& name, const HostTensor& value);
  /// Constants; equal ones are one initialiser.
  std::string F32(float value);
  std::string I64(int64_t value);
  std::string I64(const std::vector<int64_t>& values);

  using Attributes = std::vector<onnx::AttributeProto>;
  /// Adds a node with one output and returns its name.
  std::string Op(const std::string& type, const std::vector<std::string>& inputs,
                 const Attributes& attributes = {});
  std::vector<std::string> MultiOp(const std::string& type, const std::vector<std::string>& inputs,
                                   const Attributes& attributes, int outputs);

  static onnx::AttributeProto Int(const std::string& name, int64_t value);
  static onnx::AttributeProto Float(const std::string& name, float value);
  static onnx::AttributeProto Ints(const std::string& name, const std::vector<int64_t>& values);
  /// The graph of another builder as a body; it may read what is named here.
  static onnx::AttributeProto Body(const std::string& name, OnnxBuilder&& body);

  const std::vector<InputSpec>& inputs() const { return inputs_; }
  onnx::ModelProto Finish() &&;

 private:
  std::string Path(std::string_view leaf, char separator) const;
  std::string Unique(std::string name);
  std::string Shared(const HostTensor& value);
  // What DequantizeLinear makes of i8, spread by about `scale`, which differs along `axis`.
  std::string Integers(const std::string& name, const Dims& dims, int axis, float scale);
  // What QuantizeLinear and DequantizeLinear make of x, once for all its readers.
  std::string Rounded(const std::string& x);
  // The weight of this name, with values if it is new.
  std::string AddFloats(const std::string& name, const Dims& dims, float scale, float mean);
  void Declare(onnx::ValueInfoProto* info, const std::string& name, DType dtype,
               const std::vector<NamedDim>& dims) const;

  onnx::ModelProto model_;
  onnx::GraphProto* graph_;
  uint64_t seed_;
  bool dynamic_;
  bool int8_ = false;
  bool qdq_ = false;
  uint64_t weights_ = 0;
  std::vector<std::string> modules_;
  std::vector<InputSpec> inputs_;
  std::map<std::string, int> taken_;
  std::map<std::string, std::string> rounded_;       // by what is quantised
  std::map<std::string, std::string> shared_;        // by type, extents and bytes
  std::map<std::string, std::string> weight_names_;  // by path
  std::map<std::string, Dims> weight_dims_;          // likewise
};

}  // namespace fusion
