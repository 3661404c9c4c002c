#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/op/op_def.h"

namespace fusion {

/// The recurring forms of loop bodies, so that an op file says only what is special about its op.

/// Broadcasts the inputs as NumPy does and applies `value` to their elements.
absl::StatusOr<LoopBody> ElementwiseBody(
    const OpCall& call, const std::function<Expr(const std::vector<Expr>&)>& value);

/// Definition of y = op(x), x of a float type (or any numeric type).
OpDef UnaryOp(std::string name, ScalarOp op);
/// Definition of y = value(call, x) for the elements x of one input of a float type, with the float
/// attributes `params`.
OpDef RealFunction(std::string name, std::vector<std::string> params,
                   std::function<Expr(const AttrMap& attrs, const Expr& x)> value);
/// A constant of x's type.
Expr ConstLike(const Expr& x, double value);
/// e^x - 1, exact to rounding near 0 too, where the difference itself would cancel.
Expr ExpMinusOne(const Expr& x);
/// (e^x + e^-x) / 2, finite wherever the result is.
Expr HyperbolicCosine(const Expr& x);
/// x * sigmoid(alpha x)
Expr SwishOf(const Expr& x, double alpha);
/// log(1 + e^x) without overflow.
Expr SoftplusOf(const Expr& x);
/// Unimplemented unless input 0 is of a float type: for ops that ONNX defines on integers as well.
absl::Status CheckFloatSupported(const OpCall& call);
/// Drops what binary ops wrote before opset 7: the importer has aligned their operands.
absl::Status NormaliseOldBroadcast(OnnxCall& call);

/// Definition of c = op(a, b) with broadcasting.
OpDef BinaryOp(std::string name, ScalarOp op);
/// Most inputs an op of any number of them takes.
inline constexpr int kMaxVariadicInputs = 4096;

/// Most dims that the columns of the indices of GatherND name.
inline constexpr int kMaxGatherColumns = 16;

/// `leaves` (at least one) joined as a balanced tree, in their order: join(middle, a, b) where `a`
/// holds the leaves before `middle` and `b` those from it on. However many there are, the nesting
/// stays below what Expr::Parse takes.
Expr BalancedTree(const std::vector<Expr>& leaves,
                  const std::function<Expr(size_t middle, const Expr& a, const Expr& b)>& join);

/// Definition of y = op over one or more inputs with broadcasting, as a balanced tree (Max, Min,
/// Sum).
OpDef VariadicOp(std::string name, ScalarOp op);

/// Definition of a reduction over attribute "axes" (absent or empty: all, unless
/// noop_with_empty_axes) with "keepdims" (default 1).
OpDef ReduceOp(std::string name, std::string_view monoid);
/// Loop body of such a reduction of `value` (an expression of in0).
absl::StatusOr<LoopBody> ReduceBody(const OpCall& call, const Expr& value, std::string_view monoid);
/// The axes a Reduce* node names, normalised.
absl::StatusOr<std::vector<int>> ReduceAxes(const OpCall& call);
/// Definition of a reduction in terms of others: steps(d, params) with the attributes of the node.
OpDef ReduceComposite(
    std::string name,
    std::function<absl::StatusOr<Decomposition::Value>(Decomposition& d, const AttrMap& over)>
        steps);
/// The attributes every Reduce* op shares.
std::vector<ParamSpec> ReduceParams();

/// Largest blocksize of DepthToSpace and SpaceToDepth; keeps products of its square and an extent
/// inside 64 bits.
inline constexpr int64_t kMaxBlockSize = 1024;
/// Attribute "blocksize" of an op on [batch, channels, height, width]; InvalidArgument for another
/// rank, symbolic dims or a size outside 1..kMaxBlockSize.
absl::StatusOr<int64_t> BlockSize(const OpCall& call);
/// Input 0 seen as `split`, its dims permuted, seen as `shape`.
absl::StatusOr<Decomposition::Value> RegroupBlocks(Decomposition& d, const Dims& split,
                                                   const Dims& perm, const Dims& shape);

/// Loop body of a view: output of `extents`, whose element at the axes' coordinates is in0[index].
LoopBody ViewBody(const OpCall& call, const std::vector<Dim>& extents, IndexMap index);

/// Loop body of a row-major reshape of in0 to `shape`: both shapes are factored into common atoms.
/// Unimplemented if they have no common refinement ([6,4] -> [4,6]).
absl::StatusOr<LoopBody> ReshapeBody(const OpCall& call, const Shape& shape);

/// `values` (one per channel, rank 1) as it broadcasts to tensors of `rank` dims with the channel
/// in dim 1.
absl::StatusOr<Decomposition::Value> PerChannel(Decomposition& d, Decomposition::Value values,
                                                int rank);

/// x plus input `bias`, one value for each coordinate along x's last dim. InvalidArgument if it is
/// anything else.
absl::StatusOr<Decomposition::Value> PlusBias(Decomposition& d, Decomposition::Value x, int bias);

/// x [batch, spatial.., channels] as [batch, channels, spatial..], and back.
absl::StatusOr<Decomposition::Value> ChannelsFirst(Decomposition& d, Decomposition::Value x);
absl::StatusOr<Decomposition::Value> ChannelsLast(Decomposition& d, Decomposition::Value x);

/// The attributes of a call that `params` name: what a step that takes them is given.
AttrMap AttrsNamed(const OpCall& call, const std::vector<ParamSpec>& params);

/// Outputs 1, 2, .. of which the call names the first or all.
void SetOutputs(Decomposition& d, const std::vector<Decomposition::Value>& values);

/// Definition of y = the index of the first (`select_last_index`: the last) extremum along `axis`,
/// `extremum` being the Reduce* op that finds it; NaN counts as one.
OpDef IndexOfExtremum(std::string name, std::string_view extremum);

/// A loop over the elements of input 0, indices in i64, for each index that they may be: what the
/// ops that write where indices say are made of.
struct IndexedLoop {
  LoopBody body;  // without value and reduction; input 1, if there is one, is read beside input 0
  int along = 0;  // the axis of the loop over the indices along the attribute "axis"
  Expr hit;       // the index at hand is that of the element at hand
};
/// The loop over input 0 that writes the shape of input `shape_of`, but "depth" elements along the
/// attribute "axis". Dims of input 0 with extent 1 beside "axis" stand for any. InvalidArgument if
/// that does not fit.
absl::StatusOr<IndexedLoop> LoopOverIndices(const OpCall& call, int shape_of);

/// Extents of an input; Unimplemented, naming the dim, if one is symbolic.
absl::StatusOr<Dims> StaticDims(const OpCall& call, int input);

/// The type that means and variances of `type` are taken in: f32 at least, as the f16 value of an
/// exporter's epsilon is 0.
DType StatisticsType(DType type);

/// InvalidArgument unless the input is of a float type.
absl::Status CheckFloat(const OpCall& call, int input);

/// Unimplemented if the call sets the attribute to anything but `allowed`.
absl::Status CheckOnlyInt(const OpCall& call, std::string_view name, int64_t allowed);
/// Unimplemented if the call has input `input`.
absl::Status CheckNoInput(const OpCall& call, int input, std::string_view what);

/// The elements [begin, end) of x along `axis`.
absl::StatusOr<Decomposition::Value> SliceAlong(Decomposition& d, Decomposition::Value x, int axis,
                                                int64_t begin, int64_t end);

/// Element `at` of x along `axis`, without that dim.
absl::StatusOr<Decomposition::Value> PickAlong(Decomposition& d, Decomposition::Value x, int axis,
                                               int64_t at);

/// 0, 1, .. below `count`, as i64.
absl::StatusOr<Decomposition::Value> CountTo(Decomposition& d, int64_t count);

/// x as `type`; x itself if it is.
absl::StatusOr<Decomposition::Value> CastTo(Decomposition& d, Decomposition::Value x, DType type);

/// x - mean and the mean of its squares, both over `axes` (kept with extent 1). InvalidArgument
/// unless x is of a float type.
struct Spread {
  Decomposition::Value centred = 0;
  Decomposition::Value variance = 0;
};
absl::StatusOr<Spread> SpreadOver(Decomposition& d, Decomposition::Value x,
                                  const std::vector<int64_t>& axes);

/// (x - mean) / sqrt(variance + epsilon), both over `axes`.
absl::StatusOr<Decomposition::Value> Standardise(Decomposition& d, Decomposition::Value x,
                                                 const std::vector<int64_t>& axes, double epsilon);

/// The axes Softmax and LogSoftmax normalise over: `axis` and, with the attribute "flatten", all
/// behind it.
absl::StatusOr<std::vector<int64_t>> SoftmaxAxes(const OpCall& call);
std::vector<ParamSpec> SoftmaxParams();
/// What Softmax and LogSoftmax of input 0 share. The maximum is taken out so that no exponential
/// overflows.
struct SoftmaxSteps {
  Decomposition::Value shifted = 0;       // x - max x
  Decomposition::Value exponentials = 0;  // e^shifted
  Decomposition::Value sum = 0;           // of them
};
absl::StatusOr<SoftmaxSteps> ExponentialsOf(Decomposition& d);
/// Sets "flatten" for nodes from before opset 13: their input was taken as two dims, cut at `axis`
/// (default 1).
absl::Status NormaliseSoftmax(OnnxCall& call);

/// Plain axis names d0, d1, ...
std::vector<LoopAxis> NumberedAxes(const std::vector<Dim>& extents);

}  // namespace fusion
