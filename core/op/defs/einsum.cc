#include <algorithm>
#include <cctype>
#include <map>

#include "core/op/forms.h"

namespace fusion {

namespace {

// Terms and labels of a model name a handful of dims.
constexpr size_t kMaxEquation = 512;

// One letter for each dim; dims that "..." stands for are '\0' + their distance from the last one.
using Labels = std::vector<int>;

struct Equation {
  std::vector<Labels> inputs;
  Labels output;
};

constexpr int kEllipsis = -1;

// "ij", "...k": letters, and kEllipsis where "..." stands.
absl::StatusOr<Labels> ParseTerm(std::string_view term) {
  Labels out;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term[i] == ' ') continue;
    if (term.substr(i, 3) == "...") {
      if (std::find(out.begin(), out.end(), kEllipsis) != out.end()) {
        return InvalidArgument("has \"...\" twice in one term");
      }
      out.push_back(kEllipsis);
      i += 2;
      continue;
    }
    if (std::isalpha(static_cast<unsigned char>(term[i])) == 0) {
      return InvalidArgument("has ", QuoteShort(term.substr(i, 1)),
                             ", expected letters, \"...\", commas and \"->\"");
    }
    out.push_back(term[i]);
  }
  return out;
}

// Letters that occur once in all inputs, in alphabetical order, behind the dims of "...".
Labels ImpliedOutput(const std::vector<Labels>& inputs) {
  std::map<int, int> count;
  for (const Labels& labels : inputs) {
    for (int label : labels) ++count[label];
  }
  Labels out;
  if (count.contains(kEllipsis)) out.push_back(kEllipsis);
  for (const auto& [label, times] : count) {
    if (label != kEllipsis && times == 1) out.push_back(label);
  }
  return out;
}

absl::StatusOr<Equation> ParseEquation(std::string_view text) {
  if (text.size() > kMaxEquation) {
    return InvalidArgument("has ", text.size(), " characters, at most ", kMaxEquation);
  }
  Equation out;
  const size_t arrow = text.find("->");
  std::string_view left = text.substr(0, arrow);
  for (size_t begin = 0; begin <= left.size();) {
    size_t end = std::min(left.find(',', begin), left.size());
    ASSIGN_OR_RETURN(Labels labels, ParseTerm(left.substr(begin, end - begin)));
    out.inputs.push_back(std::move(labels));
    begin = end + 1;
  }
  out.output = ImpliedOutput(out.inputs);
  if (arrow == std::string_view::npos) return out;
  ASSIGN_OR_RETURN(out.output, ParseTerm(text.substr(arrow + 2)));
  Labels sorted = out.output;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    return InvalidArgument("names a dim of the result twice");
  }
  return out;
}

// Dims that "..." stands for are numbered below kEllipsis, the last one first, so that they meet
// from behind as in broadcasting.
Labels WithoutEllipsis(const Labels& labels, int dims) {
  Labels out;
  for (int label : labels) {
    if (label != kEllipsis) {
      out.push_back(label);
      continue;
    }
    for (int i = dims; i > 0; --i) out.push_back(kEllipsis - i);
  }
  return out;
}

class EinsumBody {
 public:
  EinsumBody(const OpCall& call, Equation equation) : call_(call), equation_(std::move(equation)) {}

  absl::StatusOr<LoopBody> Run() {
    RETURN_IF_ERROR(NameDims());
    LoopBody body;
    // What is kept comes first, then what is summed.
    for (int label : equation_.output) {
      if (!extent_.contains(label)) {
        return InvalidArgument("names ", Name(label), " in the result, which no input has");
      }
      body.write.push_back(IndexExpr::Axis(AddAxis(label, &body)));
    }
    for (const auto& [label, extent] : extent_) AddAxis(label, &body);
    std::vector<Expr> factors;
    for (size_t i = 0; i < equation_.inputs.size(); ++i) {
      Read& read = body.reads.emplace_back();
      const Shape& shape = call_.shape(static_cast<int>(i));
      for (int d = 0; d < shape.rank(); ++d) {
        const int label = equation_.inputs[i][static_cast<size_t>(d)];
        const bool repeats = shape.dim(d) != extent_.at(label);
        read.index.push_back(repeats ? IndexExpr(0) : IndexExpr::Axis(axis_.at(label)));
      }
      factors.push_back(call_.In(static_cast<int>(i)));
    }
    body.value = BalancedTree(factors, [](size_t, const Expr& a, const Expr& b) { return a * b; });
    if (body.axes.size() > body.write.size()) body.reduce = Monoid::Sum(body.value.type());
    return body;
  }

 private:
  static std::string Name(int label) {
    return label < 0 ? "a dim of \"...\""
                     : StrCat("\"", std::string(1, static_cast<char>(label)), "\"");
  }

  // The extent of every label; "..." becomes labels of its own.
  absl::Status NameDims() {
    int most = 0;
    if (static_cast<int>(equation_.inputs.size()) != call_.inputs()) {
      return InvalidArgument("has ", equation_.inputs.size(), " terms for ", call_.inputs(),
                             " inputs");
    }
    for (size_t i = 0; i < equation_.inputs.size(); ++i) {
      RETURN_IF_ERROR(call_.CheckSameType(0, static_cast<int>(i)));
      Labels& labels = equation_.inputs[i];
      const Shape& shape = call_.shape(static_cast<int>(i));
      const bool open = std::find(labels.begin(), labels.end(), kEllipsis) != labels.end();
      const int rest = shape.rank() - static_cast<int>(labels.size()) + (open ? 1 : 0);
      if (rest < 0 || (rest > 0 && !open)) {
        return InvalidArgument("names ", labels.size() - (open ? 1 : 0), " dims of input ", i, " ",
                               call_.in(static_cast<int>(i)).ToString());
      }
      labels = WithoutEllipsis(labels, rest);
      most = std::max(most, rest);
      for (int d = 0; d < shape.rank(); ++d) {
        RETURN_IF_ERROR(Meet(labels[static_cast<size_t>(d)], shape.dim(d), i));
      }
    }
    equation_.output = WithoutEllipsis(equation_.output, most);
    return absl::OkStatus();
  }

  absl::Status Meet(int label, const Dim& extent, size_t input) {
    auto [known, fresh] = extent_.try_emplace(label, extent);
    if (fresh || known->second == extent || extent == Dim(1)) return absl::OkStatus();
    if (known->second != Dim(1)) {
      return InvalidArgument("names ", Name(label), " a dim of ", extent.ToString(), " of input ",
                             input, " and one of ", known->second.ToString());
    }
    known->second = extent;
    return absl::OkStatus();
  }

  int AddAxis(int label, LoopBody* body) {
    const auto next = static_cast<int>(body->axes.size());
    auto [known, fresh] = axis_.try_emplace(label, next);
    if (fresh) body->axes.push_back({StrCat("d", next), extent_.at(label)});
    return known->second;
  }

  const OpCall& call_;
  Equation equation_;
  std::map<int, Dim> extent_;  // by label
  std::map<int, int> axis_;    // by label
};

}  // namespace

/// y = the sum over all labels that the result lacks of the product of the inputs, as `equation`
/// names their dims: "bij,bjk->bik"
OpDef DefineEinsum() {
  return {.name = "Einsum",
          .max_inputs = kMaxVariadicInputs,
          .params = {{.name = "equation", .kind = ParamSpec::kString, .required = true}},
          .min_opset = 12,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            const std::string& text = *call.attrs().Find<std::string>("equation");
            auto annotated = [&](const absl::Status& status) {
              return Annotate(status, StrCat("equation ", QuoteShort(text)));
            };
            if (call.dtype(0) == DType::kBool) {
              return InvalidArgument("inputs are bool, expected a numeric type");
            }
            auto equation = ParseEquation(text);
            if (!equation.ok()) return annotated(equation.status());
            auto body = EinsumBody(call, *std::move(equation)).Run();
            if (!body.ok()) return annotated(body.status());
            return body;
          }};
}

}  // namespace fusion
