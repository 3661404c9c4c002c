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

/// Bytes of the definitions of one request.
inline constexpr int64_t kMaxCustomOpBytes = int64_t{1} << 16;

/// Ops that a client defines, in a small typed language; never text that reaches a compiler: what
/// is read becomes a LoopBody, as every op of ours is one, and fuses like them.
///
///   op acme.Snake(x) {a: float = 1.0} =            # element by element; inputs that are read
///   broadcast
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
///   or .. product: "||", "&&", == != < <= > >=, + -, * / %, in C's order; "-" and "!" before
///   operand    = number | name | name "[" index { "," index } "]" | function "(" values ")" |
///                "(" value ")"
///
/// Without "->" inputs are named plainly; with it every input says its dims, the result its own,
/// "for" gives the extents of further axes (+ - * / over dims, integers and int attributes), and
/// inputs are read at indices that are sums of axes times constants. Functions: those of
/// core/op/body/scalar.h by name, and casts by element type: f32(x). Numbers and attributes take
/// the type of what they are combined with; int and float do not mix without a cast.
class CustomOps {
 public:
  CustomOps() = default;

  /// InvalidArgument with line, column, the line and a caret below the place.
  static absl::StatusOr<CustomOps> Parse(std::string_view text);

  bool empty() const { return ops_.empty(); }
  /// nullptr if there is none.
  const CustomOpSyntax* Find(std::string_view domain, std::string_view name) const;
  /// By "domain.name".
  const CustomOpSyntax* Find(std::string_view full_name) const;

 private:
  std::vector<std::shared_ptr<const CustomOpSyntax>> ops_;
};

/// A custom op on inputs of known types: what OpDef "Custom" takes.
struct CustomCall {
  LoopBody body;
  /// Which input of the node each input of the body is.
  std::vector<int> inputs;
};

/// InvalidArgument, with the place in the definition where it is to blame: inputs that are absent
/// or have other dims than declared, attributes that are unknown, missing or of another kind, types
/// that do not fit an operator, reads outside an input. Unimplemented for symbolic dims.
absl::StatusOr<CustomCall> Instantiate(const CustomOpSyntax& op,
                                       const std::vector<std::optional<TensorType>>& inputs,
                                       const AttrMap& attrs);

}  // namespace fusion
