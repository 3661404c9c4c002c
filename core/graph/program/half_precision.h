#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "core/graph/program/program.h"

namespace fusion {

/// 16-bit floats are a storage type. Arithmetic on them is done in f32 and rounded when stored, on
/// every target. Operands of sums of products are f32 too: estimates do not use the rates of a
/// device's units for 16-bit products. Narrower floats (IsSmallFloat) are treated alike, except
/// that a cast to one always rounds.

/// Label of ops that only round to a 16-bit float and do not come from a Cast node.
inline constexpr std::string_view kRounded = "Rounded";

/// Rewrites a body to compute in f32: elements of small floats are cast before use. Returns false
/// if nothing changes (no such float, or no arithmetic on one). If a reduction had a small float as
/// result, its result is f32 afterwards and `*rounded` is the previous type, to which the caller
/// must round. In all other cases the type of the result stays and `*rounded` is empty.
bool WidenHalves(LoopBody* body, std::optional<DType>* rounded);

/// True for a sum of products of two inputs that are read without a cast. Its operands must be f32,
/// in memory or cast by another op.
bool IsSumOfProducts(const LoopBody& body);

/// Types of the two factors, by input, if `value` is a product of inputs 0 and 1, each of them
/// plain or cast to `type`; else nullopt. The types are those before the cast.
std::optional<std::array<DType, 2>> FactorTypes(const Expr& value, DType type);

/// For each output: true if it depends on a sum of products with a factor that is a computed value
/// rounded to bf16, or that is derived from a computed value rounded to an integer. A difference in
/// the last place before the rounding can round it the other way. Rounded inputs do not count: they
/// are the same everywhere.
std::vector<bool> OutputsOfRoundedFactors(const Program& program);

/// The body of an element-wise cast between tensors of one shape.
LoopBody CastBody(const Shape& shape, DType from, DType to);

/// Removes roundings to 16-bit floats that only ops of `program` see. A value becomes f32 if it is
/// not `needed_outside`, does not come from a Cast node, and all readers cast it to f32 and none of
/// them is discontinuous (comparisons, conversions to integers, positions of extrema). Returns the
/// ops that still do something, ascending. A cast that became a copy is not among them; its readers
/// read its input.
std::vector<LoopId> KeepWide(const std::vector<bool>& needed_outside, Program* program);

/// Cost of an expression without the casts between f32 and smaller floats, so that it does not
/// depend on KeepWide.
double CostWithoutRoundings(const Expr& value);

}  // namespace fusion
