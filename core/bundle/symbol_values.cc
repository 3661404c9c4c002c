#include "core/bundle/symbol_values.h"

#include <algorithm>
#include <optional>

namespace fusion {
namespace {

std::string NameOf(const std::vector<std::string>& names, size_t i, std::string_view what) {
  return i < names.size() ? Quote(names[i]) : StrCat(what, " ", i);
}

// Solves for one symbol at a time, from a dim in which it is the only unknown.
class Solver {
 public:
  Solver(const Plan& plan, const std::vector<Dims>& inputs, const RunNames& names)
      : plan_(plan), inputs_(inputs), names_(names), units_(plan.symbols.size()) {}

  absl::StatusOr<std::vector<int64_t>> Run() {
    if (inputs_.size() != plan_.inputs.size()) {
      return InvalidArgument(inputs_.size(), " inputs given, the plan has ", plan_.inputs.size());
    }
    for (bool found = true; found;) {
      found = false;
      RETURN_IF_ERROR(ForEachOpenDim([&](size_t input, size_t dim, const SizeExpr& size) {
        return Look(input, dim, size, &found);
      }));
    }
    std::vector<int64_t> out;
    for (size_t s = 0; s < units_.size(); ++s) {
      if (!units_[s].has_value()) {
        return InvalidArgument("no dim of an input that kernels read says what ", Symbol(s), " is",
                               OnlyShapes(), "; plan for one value of it (fusionctl: --bind)");
      }
      out.push_back(*units_[s]);
    }
    return out;
  }

 private:
  std::string Symbol(size_t s) const { return NameOf(names_.symbols, s, "symbol"); }
  // Names the inputs that no kernel reads: their dims cannot determine symbols.
  std::string OnlyShapes() const {
    std::vector<std::string> unread;
    for (size_t i = 0; i < plan_.inputs.size(); ++i) {
      if (plan_.inputs[i] < 0) unread.push_back(NameOf(names_.inputs, i, "number"));
    }
    if (unread.empty()) return "";
    return StrCat(" (of input ", StrJoin(unread, ", "), " at most the shape is used)");
  }
  std::string Place(size_t input, size_t dim) const {
    return StrCat("dim ", dim, " of input ", NameOf(names_.inputs, input, "number"));
  }

  // Calls `visit` for each open dim. InvalidArgument if a rank or a fixed dim differs from the
  // plan.
  template <typename Visit>
  absl::Status ForEachOpenDim(const Visit& visit) const {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (plan_.inputs[i] < 0) continue;
      const PlanTensor& t = plan_.tensors[static_cast<size_t>(plan_.inputs[i])];
      if (inputs_[i].size() != t.dims.size()) {
        return InvalidArgument("input ", NameOf(names_.inputs, i, "number"), " has rank ",
                               inputs_[i].size(), ", expected ", t.dims.size());
      }
      for (size_t d = 0; d < t.dims.size(); ++d) {
        const bool open = !t.sizes.empty() && !t.sizes[d].is_static();
        if (open) {
          RETURN_IF_ERROR(visit(i, d, t.sizes[d]));
        } else if (inputs_[i][d] != t.dims[d]) {
          return InvalidArgument(Place(i, d), " is ", inputs_[i][d], ", expected ", t.dims[d]);
        }
      }
    }
    return absl::OkStatus();
  }

  // Writes `size` as constant + factor * unknown symbol. False if there are several unknowns, or a
  // power of one. Called in every run, so it does not allocate.
  bool Reduce(const SizeExpr& size, int64_t* constant, int64_t* factor, int* unknown) const {
    *constant = 0;
    *factor = 0;
    *unknown = -1;
    for (const SizeExpr::Term& term : size.terms()) {
      int64_t product = term.coefficient;
      int open = -1;
      for (int s : term.symbols) {
        const std::optional<int64_t>& units = units_[static_cast<size_t>(s)];
        if (!units.has_value()) {
          if (open >= 0) return false;
          open = s;
        } else if (__builtin_mul_overflow(product, *units, &product)) {
          return false;
        }
      }
      if (open >= 0 && *unknown >= 0 && *unknown != open) return false;
      if (open >= 0) *unknown = open;
      int64_t* sum = open >= 0 ? factor : constant;
      if (__builtin_add_overflow(*sum, product, sum)) return false;
    }
    return true;
  }

  absl::Status Look(size_t input, size_t dim, const SizeExpr& size, bool* found) {
    int64_t constant = 0;
    int64_t factor = 0;
    int unknown = -1;
    if (!Reduce(size, &constant, &factor, &unknown)) return absl::OkStatus();
    const int64_t given = inputs_[input][dim];
    if (unknown < 0) {
      if (given == constant) return absl::OkStatus();
      return InvalidArgument(Place(input, dim), " is ", given, ", expected ", constant, " = ",
                             Shown(size));
    }
    if (factor == 0) return absl::OkStatus();
    const auto s = static_cast<size_t>(unknown);
    const DimRange& range = plan_.symbols[s];
    const int64_t units = (given - constant) / factor;
    const bool whole = (given - constant) % factor == 0;
    if (!whole || units < range.least / range.multiple || units > range.most / range.multiple) {
      std::string wanted = StrCat(range.least, "..", range.most);
      if (range.multiple > 1) wanted += StrCat(" in multiples of ", range.multiple);
      return InvalidArgument(Place(input, dim), " is ", given, " = ", Shown(size),
                             "; the plan is for ", Symbol(s), " = ", wanted);
    }
    units_[s] = units;
    *found = true;
    return absl::OkStatus();
  }

  // `size` in terms of the caller's symbols, by value instead of units.
  std::string Shown(const SizeExpr& size) const {
    std::vector<std::string> words;
    for (size_t s = 0; s < units_.size(); ++s) {
      const std::string name = s < names_.symbols.size() ? names_.symbols[s] : StrCat("s", s);
      const int64_t multiple = plan_.symbols[s].multiple;
      words.push_back(multiple == 1 ? name : StrCat("(", name, "/", multiple, ")"));
    }
    return size.ToString(words);
  }

  const Plan& plan_;
  const std::vector<Dims>& inputs_;
  const RunNames& names_;
  std::vector<std::optional<int64_t>> units_;
};

Dims Evaluated(const PlanTensor& tensor, size_t first, const Dims& fixed,
               const std::vector<int64_t>& units) {
  if (tensor.sizes.empty()) return fixed;
  Dims out;
  for (size_t d = 0; d < fixed.size(); ++d) {
    out.push_back(tensor.sizes[first + d].Evaluate(units).value_or(0));
  }
  return out;
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> SymbolUnits(const Plan& plan, const std::vector<Dims>& inputs,
                                                 const RunNames& names) {
  return Solver(plan, inputs, names).Run();
}

Dims DimsAt(const PlanTensor& tensor, const std::vector<int64_t>& units) {
  return Evaluated(tensor, 0, tensor.dims, units);
}

Dims StridesAt(const PlanTensor& tensor, const std::vector<int64_t>& units) {
  return Evaluated(tensor, tensor.dims.size(), tensor.strides, units);
}

int64_t ElementsAt(const PlanTensor& tensor, const std::vector<int64_t>& units) {
  const bool fixed = tensor.sizes.empty() || tensor.space == Space::kArena;
  if (fixed) return tensor.bytes / DTypeBytes(tensor.dtype);
  return SpanOf(DimsAt(tensor, units), StridesAt(tensor, units));
}

int64_t OffsetAt(const PlanTensor& tensor, const std::vector<int64_t>& units) {
  if (tensor.sizes.size() <= 2 * tensor.dims.size()) return tensor.offset;
  return tensor.sizes.back().Evaluate(units).value_or(0) * DTypeBytes(tensor.dtype);
}

int64_t MostPassesAt(const PlanLoop& loop, const std::vector<int64_t>& units) {
  return loop.open_most.has_value() ? loop.open_most->Evaluate(units).value_or(0) : loop.most;
}

int64_t ElementBytesAt(const Plan& plan, const PlanLoop::Element& element,
                       const std::vector<int64_t>& units) {
  const PlanTensor& whole = plan.tensors[static_cast<size_t>(element.whole)];
  const Dims dims = DimsAt(whole, units);
  return NumElements(Dims(dims.begin() + 1, dims.end())) * DTypeBytes(whole.dtype);
}

}  // namespace fusion
