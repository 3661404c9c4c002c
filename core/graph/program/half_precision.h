#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "core/graph/program/program.h"

namespace fusion {

/// 16-bit floats are for storage: what is computed from them is computed in f32 and rounded when it
/// is stored, as every target does it. Sums of products get operands in f32 too: the rates of a
/// device's units for products of 16-bit operands are not used in estimates.

/// Label of ops that only round to a 16-bit float, and that no node asks for as Cast does.
inline constexpr std::string_view kRounded = "Rounded";

/// Rewrites a body so that it computes in f32: elements of 16-bit floats are cast before they are
/// used. False if there is nothing to do (no 16-bit float, or no arithmetic on one). A reduction
/// that had a 16-bit result has an f32 one then, which `*rounded` (its type before) is to be made
/// of; elsewhere the result has its type and `*rounded` is empty.
bool WidenHalves(LoopBody* body, std::optional<DType>* rounded);

/// True for the sum of products of two inputs: it wants operands in f32, in memory or as another op
/// casts them.
bool IsSumOfProducts(const LoopBody& body);

/// By input, the types of the factors of a product of two inputs: as they are or, of other types,
/// cast to `type`. nullopt: `value` is none.
std::optional<std::array<DType, 2>> FactorTypes(const Expr& value, DType type);

/// By output whether it follows from a sum of products of which a factor is rounded to bf16, or
/// made from what is rounded to an integer, and what is rounded is computed: a difference in its
/// last place may round it the other way. An input that is rounded is what it is.
std::vector<bool> OutputsOfRoundedFactors(const Program& program);

/// The body of an element-wise cast from one shape to itself.
LoopBody CastBody(const Shape& shape, DType from, DType to);

/// Leaves out roundings to 16-bit floats that only ops of `program` see: values that are not
/// `needed_outside` and that all readers cast to f32 are f32. Returns the ops that still do
/// something, ascending: a cast that became a copy does not, its readers read what it read.
std::vector<LoopId> KeepWide(const std::vector<bool>& needed_outside, Program* program);

/// Cost of an expression whatever KeepWide makes of it: without casts between f32 and 16-bit
/// floats.
double CostWithoutRoundings(const Expr& value);

}  // namespace fusion
