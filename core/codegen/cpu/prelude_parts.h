#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fusion {

/// One named part of the prelude. Internal to CpuPrelude.
struct PreludePart {
  std::string_view name;
  std::vector<std::string_view> needs;  // parts that must come before it
  std::string_view text;
  std::string_view guarded = {};  // appended to `text` in guarded units
};

/// The pointer type with bounds, and the check before every load and store of a guarded unit.
std::string_view GuardTypes();
/// Loads and stores of one memory type through such pointers. The placeholders $T, $V and $N are
/// those of the text for plain pointers. `half`: a float smaller than f32.
std::string_view GuardMemory(bool half);
/// Overloads of mma<> and of its operand forms for such pointers, derived from one part of their
/// text for plain pointers.
std::string GuardedProduct(std::string_view plain);

/// `text` with every `from` replaced by `to`.
std::string Replaced(std::string_view text, std::string_view from, std::string_view to);
/// round, floor and ceil of f32, or of f64 if `wide`.
std::string_view RoundingFunctions(bool wide);

/// Scalar functions on vectors of f32 and integers, folds, lanes: "select", "minmax", "exp",
/// "fold", "quotient", ...
std::vector<PreludePart> FunctionParts();
/// mma<> and the forms of its operands by type: "product", "product_bf16", "product_bf16_flushed",
/// "product_i8", "product_u8_i8"; and prefetches, "fetch".
std::vector<PreludePart> ProductParts();
/// mma<> by tiles of AMX, and for more rows than registers hold: "product_rows", "tiles",
/// "tiles_bf16", "tiles_u8_i8".
std::vector<PreludePart> TileParts();
/// Moves of f32: transposition in registers, copies that transpose, loads of every second element,
/// stores past the caches: "transpose", "copy_turned", "load_even", "store_past".
std::vector<PreludePart> MoveParts();
/// Floats of at most 8 bits: a part for each type, by its name, with $N_to_f and f_to_$N.
std::vector<PreludePart> NarrowParts();
/// Opaque ops (core/op/indexed/opaque.h): "running_fold", "running_sum_f32", "row_order",
/// "chosen_places", "box_choice".
std::vector<PreludePart> OpaqueParts();
/// The functions of f64: "exp_d", "log_d", ...
std::vector<PreludePart> DoubleParts();

}  // namespace fusion
