#include <cstdint>

#include "core/op/forms.h"

namespace fusion {

/// y = a 2^b or, with direction RIGHT, a / 2^b rounded down: bits that leave are lost,
/// of a b that is negative or too large all
OpDef DefineBitShift() {
  return {
      .name = "BitShift",
      .min_inputs = 2,
      .max_inputs = 2,
      .params = {{.name = "direction", .kind = ParamSpec::kString, .required = true}},
      .min_opset = 11,
      .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
        const std::string& direction = *call.attrs().Find<std::string>("direction");
        if (direction != "LEFT" && direction != "RIGHT") {
          return InvalidArgument("attribute \"direction\" is ", QuoteShort(direction),
                                 ", expected LEFT or RIGHT");
        }
        RETURN_IF_ERROR(call.CheckSameType(0, 1));
        if (!IsInteger(call.dtype(0))) {
          return InvalidArgument("input 0 is ", DTypeName(call.dtype(0)),
                                 ", expected an integer type");
        }
        return ElementwiseBody(call, [&](const std::vector<Expr>& in) {
          const DType type = in[0].type();
          const Expr one = Expr::ConstInt(type, 1);
          const Expr two = Expr::ConstInt(type, 2);
          // 2^b as the product of the powers that the bits of b name. What is beyond the type
          // wraps to 0: a * 0 and, as integers divide here, a / 0 are 0.
          const int64_t bits = 8 * DTypeBytes(type);
          Expr power = one;
          Expr rest = in[1];
          uint64_t next = 2;
          for (int64_t bit = 1; bit < bits; bit *= 2) {
            const Expr set =
                Expr::Binary(ScalarOp::kEq, Expr::Binary(ScalarOp::kMod, rest, two), one);
            power =
                power * Expr::Select(set, Expr::ConstInt(type, static_cast<int64_t>(next)), one);
            rest = rest / two;
            next *= next;
          }
          const Expr none = Expr::ConstInt(type, 0);
          Expr fits = Expr::Binary(ScalarOp::kEq, rest, none);
          if (!IsUnsigned(type)) {
            const Expr forth = Expr::Binary(ScalarOp::kGe, in[1], none);
            fits = Expr::Binary(ScalarOp::kAnd, fits, forth);
          }
          power = Expr::Select(fits, power, none);
          if (direction == "LEFT") return in[0] * power;
          if (IsUnsigned(type)) return in[0] / power;
          // Bits come in that are the sign's: of -1 - a what a quotient rounds down.
          const Expr flip = Expr::ConstInt(type, -1);
          const Expr negative = Expr::Binary(ScalarOp::kLt, in[0], none);
          const Expr bits_of =
              Expr::Select(negative, Expr::Binary(ScalarOp::kBitXor, in[0], flip), in[0]);
          const Expr quotient = bits_of / power;
          return Expr::Select(negative, Expr::Binary(ScalarOp::kBitXor, quotient, flip), quotient);
        });
      }};
}

}  // namespace fusion
