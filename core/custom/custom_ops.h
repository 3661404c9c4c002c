#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/custom/syntax.h"
#include "core/op/attr.h"
#include "core/op/body/loop_body.h"

namespace fusion {

/// Largest size of the definitions of one request, in bytes.
inline constexpr int64_t kMaxCustomOpBytes = int64_t{1} << 16;

/// Ops that a client defines in a small typed language. A definition becomes a LoopBody, like that
/// of a built-in op, and fuses like one. No part of the text reaches a compiler.
///
///   op acme.Snake(x) {a: float = 1.0} =            # element-wise; inputs broadcast
///     let s = sin(a * x);
///     x + s * s / a
///
///   op acme.RowDot(x[m, k], y[m, k]) -> [m] =      # a loop body: dims have names
///     sum[k] x[m, k] * y[m, k]
///
///   op acme.Blur(x[n, w]) -> [n, v] for v: w - 2, t: 3 =
///     sum[t] x[n, v + t] / 3
///
/// Grammar ('#' starts a comment; names are [A-Za-z_][A-Za-z0-9_]*):
///
///   file       = { "op" domain "." name "(" param { "," param } ")" [ attributes ]
///                  [ "->" dims [ "for" name ":" extent { "," name ":" extent } ] ] "=" body }
///   param      = name [ dims ]          dims = "[" [ name { "," name } ] "]"
///   attributes = "{" name ":" ( "float" | "int" ) [ "=" number ] { "," .. } "}"
///   body       = { "let" name "=" value ";" } [ reduction ] value
///   reduction  = ( "sum" | "prod" | "max" | "min" ) "[" name { "," name } "]"
///   value      = or [ "?" value ":" value ]
///   or ..: "||", "&&", == != < <= > >=, + -, * / %, with C's precedence; unary "-" and "!"
///   operand    = number | name | name "[" index { "," index } "]" | function "(" values ")" |
///                "(" value ")"
///
/// Without "->" the op is element-wise: a param is a name without dims. With "->" every param and
/// the result state their dims; equal names are equal extents. "for" gives the extents of further
/// axes: + - * / over dims, integers and int attributes. Inputs are read at indices that are sums
/// of axes times constants. Functions: those of core/op/body/scalar.h by name, and casts by element
/// type: f32(x). Numbers and attributes take the type of the values that they are combined with.
/// Values of different types do not mix without a cast.
///
/// Immutable after Parse: any thread. Pointers from Find are valid while this object or a copy
/// lives.
class CustomOps {
 public:
  CustomOps() = default;

  /// InvalidArgument in the form of ErrorAt, or for more than kMaxCustomOpBytes.
  static absl::StatusOr<CustomOps> Parse(std::string_view text);

  bool empty() const { return ops_.empty(); }
  /// The definition of the op, or nullptr.
  const CustomOpSyntax* Find(std::string_view domain, std::string_view name) const;
  /// The same by "domain.name".
  const CustomOpSyntax* Find(std::string_view full_name) const;

 private:
  std::vector<std::shared_ptr<const CustomOpSyntax>> ops_;
};

/// A custom op for inputs of known types, as the internal op "Custom" takes it.
struct CustomCall {
  LoopBody body;
  /// inputs[i] is the input of the node that input i of the body reads.
  std::vector<int> inputs;
};

/// Type-checks `op` for inputs of these types and builds its loop body. InvalidArgument, with the
/// position if the definition is at fault: absent inputs, dims that differ from the declared ones,
/// attributes that are unknown, missing or of another kind, types that do not fit an operator,
/// reads outside an input. Unimplemented for symbolic dims. Errors name the op.
absl::StatusOr<CustomCall> Instantiate(const CustomOpSyntax& op,
                                       const std::vector<std::optional<TensorType>>& inputs,
                                       const AttrMap& attrs);

}  // namespace fusion
