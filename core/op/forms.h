#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/op/op_def.h"

namespace fusion {

/// Common forms of op definitions, loop bodies and decompositions. The files of core/op/defs use
/// them. Functions that take a Decomposition append steps to it and return the value of the result.
/// Their errors are those of the steps (Decomposition::Apply), unless stated otherwise. Inputs are
/// named by their number in the call.

/// Loop body of value(elements of all inputs), with NumPy broadcasting. All inputs must be present.
/// InvalidArgument if they do not broadcast.
absl::StatusOr<LoopBody> ElementwiseBody(
    const OpCall& call, const std::function<Expr(const std::vector<Expr>&)>& value);

/// Definition of y = op(x); x is of a float type if `op` takes only these, else of a numeric type.
OpDef UnaryOp(std::string name, ScalarOp op);
/// Definition of an element-wise y = value(attrs, x) for one input of a float type; `params` names
/// its float attributes.
OpDef RealFunction(std::string name, std::vector<std::string> params,
                   std::function<Expr(const AttrMap& attrs, const Expr& x)> value);
/// The constant `value`, of x's type.
Expr ConstLike(const Expr& x, double value);
/// e^x - 1, also accurate near 0, where the subtraction would cancel.
Expr ExpMinusOne(const Expr& x);
/// (e^x + e^-x) / 2; intermediate values do not overflow before the result does.
Expr HyperbolicCosine(const Expr& x);
/// x * sigmoid(alpha x)
Expr SwishOf(const Expr& x, double alpha);
/// log(1 + e^x) without overflow.
Expr SoftplusOf(const Expr& x);
/// Unimplemented unless input 0 is of a float type. For ops that ONNX also defines for integers.
absl::Status CheckFloatSupported(const OpCall& call);
/// OpDef::normalise of binary ops: removes the attributes "axis" and "broadcast" of opsets
/// before 7. The importer has already aligned the operands.
absl::Status NormaliseOldBroadcast(OnnxCall& call);

/// Definition of c = op(a, b) with broadcasting; a and b have the same element type.
OpDef BinaryOp(std::string name, ScalarOp op);
/// OpDef::max_inputs of an op with any number of inputs. All of them must be present.
inline constexpr int kMaxVariadicInputs = 4096;

/// Largest number of dims that GatherND indexes (columns of its indices).
inline constexpr int kMaxGatherColumns = 16;

/// Joins `leaves` (at least one) in order to a balanced tree. join(middle, a, b) joins two
/// neighbouring subtrees; leaf number `middle` is the first leaf of `b`. The logarithmic depth
/// keeps the nesting within the limit of Expr::Parse.
Expr BalancedTree(const std::vector<Expr>& leaves,
                  const std::function<Expr(size_t middle, const Expr& a, const Expr& b)>& join);

/// Definition of y = op over one or more inputs with broadcasting (Max, Min, Sum); a balanced tree.
OpDef VariadicOp(std::string name, ScalarOp op);

/// Definition of a reduction over attribute "axes" (absent or empty: all axes, or none with
/// "noop_with_empty_axes"), with "keepdims" (default 1). `monoid`: a name of Monoid::Named, which
/// must outlive the definition.
OpDef ReduceOp(std::string name, std::string_view monoid);
/// Loop body of such a reduction; `value`, an expression of in0, is reduced.
absl::StatusOr<LoopBody> ReduceBody(const OpCall& call, const Expr& value, std::string_view monoid);
/// The axes that such a call reduces: non-negative, sorted.
absl::StatusOr<std::vector<int>> ReduceAxes(const OpCall& call);
/// Definition of a reduction by other ops. `steps` gets the attributes of the call, `over`, to pass
/// them to other Reduce* ops.
OpDef ReduceComposite(
    std::string name,
    std::function<absl::StatusOr<Decomposition::Value>(Decomposition& d, const AttrMap& over)>
        steps);
/// The attributes of every Reduce* op.
std::vector<ParamSpec> ReduceParams();

/// Largest blocksize of DepthToSpace and SpaceToDepth. Its square times an extent fits in 64 bits.
inline constexpr int64_t kMaxBlockSize = 1024;
/// Attribute "blocksize" of an op on [batch, channels, height, width]; InvalidArgument for another
/// rank, symbolic dims or a size outside 1..kMaxBlockSize.
absl::StatusOr<int64_t> BlockSize(const OpCall& call);
/// Reshapes input 0 to `split`, transposes it by `perm` and reshapes the result to `shape`.
absl::StatusOr<Decomposition::Value> RegroupBlocks(Decomposition& d, const Dims& split,
                                                   const Dims& perm, const Dims& shape);

/// Loop body of a view of input 0: y[axes] = in0[index], one axis for each of `extents`.
LoopBody ViewBody(const OpCall& call, const std::vector<Dim>& extents, IndexMap index);

/// Loop body of a row-major reshape of input 0 to `shape`. Both shapes are factored into common
/// atoms. Unimplemented if they have no common refinement ([6,4] -> [4,6]), for empty tensors and
/// for a reshape that splits or merges a symbolic dim; see OpDef::reinterpret.
absl::StatusOr<LoopBody> ReshapeBody(const OpCall& call, const Shape& shape);

/// `values` (rank 1, one per channel), reshaped so that it broadcasts to tensors of `rank` dims
/// with channels in dim 1.
absl::StatusOr<Decomposition::Value> PerChannel(Decomposition& d, Decomposition::Value values,
                                                int rank);

/// x plus input `bias`, which must be present: one value, of x's type, for each coordinate along
/// the last dim of x; else InvalidArgument.
absl::StatusOr<Decomposition::Value> PlusBias(Decomposition& d, Decomposition::Value x, int bias);

/// Transposes x [batch, spatial.., channels] to [batch, channels, spatial..], and back.
absl::StatusOr<Decomposition::Value> ChannelsFirst(Decomposition& d, Decomposition::Value x);
absl::StatusOr<Decomposition::Value> ChannelsLast(Decomposition& d, Decomposition::Value x);

/// The attributes of the call that `params` declare, to pass them to a step.
AttrMap AttrsNamed(const OpCall& call, const std::vector<ParamSpec>& params);

/// Sets outputs 1, 2, .. of the call to values[0], values[1], .., as many as the call names.
void SetOutputs(Decomposition& d, const std::vector<Decomposition::Value>& values);

/// Definition of y = the index of the first extremum along "axis" (with "select_last_index" the
/// last). `extremum` is the Reduce* op that finds the extremum; it must outlive the definition. NaN
/// counts as the extremum.
OpDef IndexOfExtremum(std::string name, std::string_view extremum);

/// A loop over the indices in input 0 (i64) for every output element, with the condition that the
/// index selects the element. The internal ops behind scatters consist of such loops.
struct IndexedLoop {
  LoopBody body;  // value and reduction are not set; input 1, if any, is read at the place of the
                  // index
  int along = 0;  // the axis that iterates over the indices along attribute "axis"
  Expr hit;       // bool: the index selects the output element; negative indices count from the end
};
/// Such a loop. The output has the shape of input `shape_of`, with the extent of attribute "depth"
/// along attribute "axis". Other dims of input 0 may be 1 (broadcast). InvalidArgument unless input
/// 0 is i64 and its shape fits.
absl::StatusOr<IndexedLoop> LoopOverIndices(const OpCall& call, int shape_of);

/// Extents of an input. Unimplemented, naming the dim, if one is symbolic.
absl::StatusOr<Dims> StaticDims(const OpCall& call, int input);

/// The type in which means and variances of `type` are computed: f64 for f64, else f32. In f16 the
/// usual epsilons are 0.
DType StatisticsType(DType type);

/// InvalidArgument unless the input is of a float type.
absl::Status CheckFloat(const OpCall& call, int input);

/// Unimplemented if the call sets the attribute to anything but `allowed`.
absl::Status CheckOnlyInt(const OpCall& call, std::string_view name, int64_t allowed);
/// Unimplemented if the call has input `input`. `what` names the input in the message.
absl::Status CheckNoInput(const OpCall& call, int input, std::string_view what);

/// The elements [begin, end) of x along `axis` (non-negative), as ONNX's Slice: bounds beyond the
/// extent are clamped.
absl::StatusOr<Decomposition::Value> SliceAlong(Decomposition& d, Decomposition::Value x, int axis,
                                                int64_t begin, int64_t end);

/// Element `at` of x along `axis`; the dim is removed.
absl::StatusOr<Decomposition::Value> PickAlong(Decomposition& d, Decomposition::Value x, int axis,
                                               int64_t at);

/// The list 0, 1, .., count - 1 in i64.
absl::StatusOr<Decomposition::Value> CountTo(Decomposition& d, int64_t count);

/// x cast to `type`; x itself if it has that type.
absl::StatusOr<Decomposition::Value> CastTo(Decomposition& d, Decomposition::Value x, DType type);

/// Deviation from the mean over some axes.
struct Spread {
  Decomposition::Value centred = 0;   // x - mean
  Decomposition::Value variance = 0;  // mean of centred^2; the axes are kept with extent 1
};
/// InvalidArgument unless x is of a float type.
absl::StatusOr<Spread> SpreadOver(Decomposition& d, Decomposition::Value x,
                                  const std::vector<int64_t>& axes);

/// (x - mean) / sqrt(variance + epsilon), mean and variance over `axes`. Errors as SpreadOver.
absl::StatusOr<Decomposition::Value> Standardise(Decomposition& d, Decomposition::Value x,
                                                 const std::vector<int64_t>& axes, double epsilon);

/// The axes over which Softmax and LogSoftmax normalise: attribute "axis" and, with attribute
/// "flatten", all later ones.
absl::StatusOr<std::vector<int64_t>> SoftmaxAxes(const OpCall& call);
/// The attributes of Softmax and LogSoftmax.
std::vector<ParamSpec> SoftmaxParams();
/// The common steps of Softmax and LogSoftmax of input 0. The maximum is subtracted so that no
/// exponential overflows.
struct SoftmaxSteps {
  Decomposition::Value shifted = 0;       // x - max x
  Decomposition::Value exponentials = 0;  // e^shifted
  Decomposition::Value sum = 0;           // sum of the exponentials
};
absl::StatusOr<SoftmaxSteps> ExponentialsOf(Decomposition& d);
/// OpDef::normalise of Softmax and LogSoftmax. Before opset 13 the input was flattened to two dims
/// at "axis" (default 1): sets "flatten". InvalidArgument if the node has an attribute "flatten".
absl::Status NormaliseSoftmax(OnnxCall& call);

/// One loop axis for each extent, named d0, d1, ...
std::vector<LoopAxis> NumberedAxes(const std::vector<Dim>& extents);

}  // namespace fusion
