#include "core/op/forms.h"

namespace fusion {

namespace {

// The numbers of `bits` bits that the bytes along the last dim hold, the lowest bits first.
absl::StatusOr<Decomposition::Value> UnpackBits(Decomposition& d, Decomposition::Value bytes,
                                                int64_t bits) {
  const int64_t parts = 8 / bits;
  if (parts == 1) return bytes;
  Dims shape = d.type(bytes).shape.ToDims();
  std::vector<Decomposition::Value> pieces;
  for (int64_t i = 0; i < parts; ++i) {
    auto piece = bytes;
    if (i > 0) {
      const auto below = d.Scalar(DType::kU8, static_cast<double>(int64_t{1} << (bits * i)));
      ASSIGN_OR_RETURN(piece, d.Apply("Div", {piece, below}));
    }
    if (i + 1 < parts) {
      const auto range = d.Scalar(DType::kU8, static_cast<double>(int64_t{1} << bits));
      ASSIGN_OR_RETURN(piece, d.Apply("Mod", {piece, range}));
    }
    ASSIGN_OR_RETURN(piece, d.Apply("Unsqueeze", {piece}, {{"axes", Dims{-1}}}));
    pieces.push_back(piece);
  }
  ASSIGN_OR_RETURN(auto all, d.Apply("Concat", std::move(pieces), {{"axis", int64_t{-1}}}));
  shape.back() *= parts;
  return d.Apply("Reshape", {all}, {{"shape", shape}, {"allowzero", int64_t{1}}});
}

// Of each block, [n, blocks, 1], in the type of input 0.
absl::StatusOr<Decomposition::Value> ZeroPointsOf(Decomposition& d, int64_t n, int64_t blocks,
                                                  int64_t bits) {
  const OpCall& call = d.call();
  const DType type = call.dtype(0);
  if (!call.has_input(3)) {
    return d.Scalar(type, static_cast<double>(int64_t{1} << (bits - 1)));
  }
  auto zeros = d.in(3);
  const bool packed = call.dtype(3) == DType::kU8;
  const int64_t columns = packed ? (blocks * bits + 7) / 8 : blocks;
  ASSIGN_OR_RETURN(Dims given, StaticDims(call, 3));
  if ((!packed && call.dtype(3) != type) ||
      (given != Dims{n, columns} && given != Dims{n * columns})) {
    return InvalidArgument("input 3 (zero_points) is ", call.in(3).ToString(), ", expected u8[", n,
                           ",", (blocks * bits + 7) / 8, "] or ", DTypeName(type), "[", n, ",",
                           blocks, "]");
  }
  ASSIGN_OR_RETURN(zeros, d.Apply("Reshape", {zeros}, {{"shape", Dims{n, columns}}}));
  if (packed) {
    ASSIGN_OR_RETURN(zeros, UnpackBits(d, zeros, bits));
    ASSIGN_OR_RETURN(zeros, SliceAlong(d, zeros, 1, 0, blocks));
    ASSIGN_OR_RETURN(zeros, CastTo(d, zeros, type));
  }
  return d.Apply("Unsqueeze", {zeros}, {{"axes", Dims{2}}});
}

}  // namespace

/// y = a w^T + bias, w[n, k] = (q[n, k] - zero point) * scale, with scales and zero points for each
/// block of `block_size` elements along k, and q of `bits` (2, 4, 8) bits each, packed into bytes
/// [n, blocks, block_size * bits / 8], the lowest bits first. Inputs are a, q, the scales, the zero
/// points (packed like q, or of a's type; absent: 2^(bits - 1)), none, and the bias, which may be
/// absent. How a may be rounded (`accuracy_level`) is a permission that is not used.
OpDef DefineMicrosoftMatMulNBits() {
  return {.name = "com.microsoft.MatMulNBits",
          .min_inputs = 3,
          .max_inputs = 6,
          .params = {{.name = "K", .kind = ParamSpec::kInt, .required = true},
                     {.name = "N", .kind = ParamSpec::kInt, .required = true},
                     {.name = "block_size", .kind = ParamSpec::kInt, .required = true},
                     {.name = "bits", .kind = ParamSpec::kInt},
                     {.name = "accuracy_level", .kind = ParamSpec::kInt},
                     {.name = "weight_prepacked", .kind = ParamSpec::kInt}},
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            RETURN_IF_ERROR(CheckFloat(call, 0));
            RETURN_IF_ERROR(CheckOnlyInt(call, "weight_prepacked", 0));
            RETURN_IF_ERROR(CheckNoInput(call, 4, "g_idx"));
            const int64_t k = call.attrs().Int("K", 0);
            const int64_t n = call.attrs().Int("N", 0);
            const int64_t block = call.attrs().Int("block_size", 0);
            const int64_t bits = call.attrs().Int("bits", 4);
            if (bits != 2 && bits != 4 && bits != 8) {
              return Unimplemented("attribute \"bits\" is ", bits, "; supported: 2, 4, 8");
            }
            if (k < 1 || n < 1 || k > kMaxExtent || n > kMaxExtent || block < 8 ||
                block > kMaxExtent || block % 8 != 0) {
              return InvalidArgument("attributes \"K\", \"N\" and \"block_size\" are ", k, ", ", n,
                                     " and ", block, ", expected 1 or more, and a multiple of 8");
            }
            const int64_t blocks = (k + block - 1) / block;
            if (call.in(1) != TensorType{DType::kU8, Shape({n, blocks, block * bits / 8})}) {
              return InvalidArgument("input 1 is ", call.in(1).ToString(), ", expected u8[", n, ",",
                                     blocks, ",", block * bits / 8, "]");
            }
            if (call.dtype(2) != call.dtype(0) ||
                (call.shape(2) != Shape({n, blocks}) && call.shape(2) != Shape({n * blocks}))) {
              return InvalidArgument("input 2 (scales) is ", call.in(2).ToString(), ", expected ",
                                     DTypeName(call.dtype(0)), "[", n, ",", blocks, "]");
            }
            ASSIGN_OR_RETURN(auto w, UnpackBits(d, d.in(1), bits));
            ASSIGN_OR_RETURN(w, CastTo(d, w, call.dtype(0)));
            ASSIGN_OR_RETURN(auto zeros, ZeroPointsOf(d, n, blocks, bits));
            ASSIGN_OR_RETURN(w, d.Apply("Sub", {w, zeros}));
            ASSIGN_OR_RETURN(auto scales,
                             d.Apply("Reshape", {d.in(2)}, {{"shape", Dims{n, blocks, 1}}}));
            ASSIGN_OR_RETURN(w, d.Apply("Mul", {w, scales}));
            ASSIGN_OR_RETURN(w, d.Apply("Reshape", {w}, {{"shape", Dims{n, blocks * block}}}));
            if (k != blocks * block) {
              ASSIGN_OR_RETURN(w, SliceAlong(d, w, 1, 0, k));
            }
            ASSIGN_OR_RETURN(w, d.Apply("Transpose", {w}, {{"perm", Dims{1, 0}}}));
            ASSIGN_OR_RETURN(auto y, d.Apply("MatMul", {d.in(0), w}));
            return call.has_input(5) ? PlusBias(d, y, 5) : y;
          }};
}

}  // namespace fusion
