#include "core/pipeline/families/family_checks.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/base/contains.h"
#include "core/base/threads/job.h"
#include "core/codegen/generalise.h"
#include "core/graph/evaluate/evaluate.h"
#include "core/graph/evaluate/test_values.h"
#include "core/pipeline/families/deciding_names.h"
#include "core/tensor/compare.h"

namespace fusion {
namespace {

using Keeps = ShapeDecision::Keeps;

// Most loop points of each of two programs that are compared by values.
constexpr double kMostComparedPoints = 0x1p27;
// Most elements of all their values: some are held as f64, and outputs of both at the same time.
constexpr double kMostComparedElements = 0x1p23;

// ---- values of the symbols in the caller's words ----

std::string Shown(const ShapeFamily& family, const Units& units) {
  std::vector<std::string> words;
  for (size_t s = 0; s < units.size(); ++s) {
    words.push_back(StrCat(family.names[s], "=", units[s] * family.symbols[s].multiple));
  }
  return StrJoin(words, ", ");
}

// ---- programs ----

// The numbers with which a program compares values, and its constant tables, sorted, as text.
// Random inputs need not reach a threshold, so equal results do not prove equal thresholds.
std::vector<std::string> ThresholdsIn(const Program& program) {
  std::vector<std::string> out;
  for (const Value& value : program.values) {
    if (value.kind == TensorKind::kConstant && value.value->elements() > 1) {
      out.push_back(TensorToText(*value.value));
    }
  }
  for (const LoopOp& op : program.ops) {
    if (op.kind != LoopOp::kLoop) continue;
    op.body.value.VisitOnce([&](const Expr& e) {
      const bool compares = e.op() == ScalarOp::kMin || e.op() == ScalarOp::kMax ||
                            GetScalarInfo(e.op()).typing == ScalarTyping::kCompare;
      for (size_t i = 0; compares && i < e.args().size(); ++i) {
        const Expr& arg = e.args()[i];
        if (arg.op() == ScalarOp::kConst) out.push_back(StrCat(arg.value(), " ", arg.integer()));
      }
    });
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<Box> WholeOutputs(const Program& program) {
  std::vector<Box> boxes;
  for (ValueId v : program.outputs) {
    boxes.push_back(Box::Whole(program.value(v).type.shape.ToDims()));
  }
  return boxes;
}

// Of all its values.
double ElementsOf(const Program& program) {
  double elements = 0;
  for (const Value& value : program.values) {
    elements += static_cast<double>(NumElements(value.type.shape.ToDims()));
  }
  return elements;
}

// Scalar functions that a program computes, without those that only move values.
std::set<ScalarOp> FunctionsIn(const Program& program) {
  std::set<ScalarOp> out;
  for (const LoopOp& op : program.ops) {
    if (op.kind != LoopOp::kLoop) continue;
    op.body.value.VisitOnce([&](const Expr& e) {
      const bool moves = GetScalarInfo(e.op()).typing == ScalarTyping::kLeaf ||
                         e.op() == ScalarOp::kSelect || e.op() == ScalarOp::kCast;
      if (!moves) out.insert(e.op());
    });
  }
  return out;
}

// True if one of two sorted lists contains the other: an op may be lowered differently for few
// elements.
template <class List>
bool OneHoldsTheOther(const List& a, const List& b) {
  return std::includes(a.begin(), a.end(), b.begin(), b.end()) ||
         std::includes(b.begin(), b.end(), a.begin(), a.end());
}

// Number of comparisons of two programs on random inputs. Many draws of a single number are equal
// by accident: -x is |x| for half of them.
int DrawsOf(const Program& program) {
  constexpr double kWantedElements = 4096;
  constexpr double kMostDraws = 64;
  const std::vector<Box> boxes = WholeOutputs(program);
  double elements = 1;
  for (const Box& box : boxes) elements += static_cast<double>(NumElements(box.Extents()));
  const double by_points = kMostComparedPoints / (EvaluationPoints(program, boxes) + 1);
  return static_cast<int>(
      std::clamp(std::min(kWantedElements / elements, by_points), 1.0, kMostDraws));
}

// The outputs of a program on random inputs of this seed, as `drawn_for` may take them.
absl::StatusOr<std::vector<HostTensor>> OutputsOf(const Program& program, const Program& drawn_for,
                                                  int seed, const CancelToken* cancel) {
  const auto first = static_cast<uint64_t>(seed);
  const std::vector<HostTensor> inputs = RandomInputs(drawn_for, first, /*adversarial=*/false);
  std::vector<HostTensor> weights;
  for (ValueId v : program.weights) {
    weights.push_back(RandomTensor(program.value(v).type, first + 6 + weights.size()));
  }
  auto value = [&](ValueId v) -> const HostTensor* {
    const auto index = static_cast<size_t>(program.value(v).index);
    if (program.value(v).kind == TensorKind::kInput) return &inputs[index];
    return program.value(v).kind == TensorKind::kWeight ? &weights[index] : nullptr;
  };
  return EvaluateBoxes(program, WholeOutputs(program), value, {.cancel = cancel});
}

// True if two programs give the same values on random inputs. They count as different if each
// compares with a number, or uses a function, that the other lacks. FailedPrecondition if they have
// too many elements to compare.
absl::StatusOr<bool> ComputeAlike(const Program& a, const Program& b, const CancelToken* cancel) {
  if (!OneHoldsTheOther(ThresholdsIn(a), ThresholdsIn(b)) ||
      !OneHoldsTheOther(FunctionsIn(a), FunctionsIn(b))) {
    return false;
  }
  auto types_of = [](const Program& p, const std::vector<ValueId>& list) {
    std::vector<TensorType> types;
    for (ValueId v : list) types.push_back(p.value(v).type);
    return types;
  };
  for (auto list : {&Program::inputs, &Program::outputs, &Program::weights}) {
    if (types_of(a, a.*list) != types_of(b, b.*list)) return false;
  }
  // Before anything is made of that size.
  for (const Program* program : {&a, &b}) {
    if (ElementsOf(*program) > kMostComparedElements ||
        EvaluationPoints(*program, WholeOutputs(*program)) > kMostComparedPoints) {
      return FailedPrecondition("too many elements to compare");
    }
  }
  const int draws = std::min(DrawsOf(a), DrawsOf(b));
  for (int seed = 1; seed <= draws; ++seed) {
    ASSIGN_OR_RETURN(std::vector<HostTensor> of_a, OutputsOf(a, a, seed, cancel));
    ASSIGN_OR_RETURN(std::vector<HostTensor> of_b, OutputsOf(b, a, seed, cancel));
    for (size_t i = 0; i < of_a.size(); ++i) {
      if (!Compare(of_a[i], of_b[i]).ok()) return false;
    }
  }
  return true;
}

// Normalises reads along axes of one coordinate: the coordinate and the number 0 denote the same
// place.
void SettleUnitAxes(LoopBody* body) {
  auto unit = [&](int axis) {
    const Dim& extent = body->axes[static_cast<size_t>(axis)].extent;
    return extent.is_static() && extent.value() == 1;
  };
  for (Read& read : body->reads) {
    for (IndexExpr& e : read.index) {
      if (e.indirect() >= 0) continue;
      e = e.Substitute([&](int axis) { return unit(axis) ? IndexExpr(0) : IndexExpr::Axis(axis); });
    }
    std::erase_if(read.guards,
                  [&](const Guard& g) { return unit(g.axis) && g.begin <= 0 && g.end > 0; });
  }
  body->value = body->value.MapLeaves([&](const Expr& leaf) {
    if (leaf.op() == ScalarOp::kAxis && unit(leaf.index())) return Expr::ConstInt(DType::kI64, 0);
    return leaf;
  });
}

// Normalises the storage order: dims of one element may have any position in it.
void SettleOrder(Value* value) {
  if (value->order.empty()) return;
  const Dims dims = value->type.shape.ToDims();
  auto unit = [&](int d) { return dims[static_cast<size_t>(d)] == 1; };
  std::vector<int> order;
  for (int d = 0; d < static_cast<int>(dims.size()); ++d) {
    if (unit(d)) order.push_back(d);
  }
  for (int d : value->order) {
    if (!unit(d)) order.push_back(d);
  }
  std::vector<int> plain;
  for (int d : order) {
    if (!unit(d)) plain.push_back(d);
  }
  value->order = std::is_sorted(plain.begin(), plain.end()) ? std::vector<int>() : order;
}

std::string SettledText(Program program) {
  for (LoopOp& op : program.ops) {
    if (op.kind == LoopOp::kLoop) SettleUnitAxes(&op.body);
  }
  for (Value& value : program.values) SettleOrder(&value);
  return ToString(program);
}

// Compares the members' program with that of each point.
class ProgramChecker {
 public:
  ProgramChecker(const ShapeFamily& family, const ProgramOptions& options,
                 const CancelToken* cancel)
      : family_(family), options_(options), cancel_(cancel) {}

  absl::Status Run(const std::vector<CheckedPoint>& points) {
    std::vector<Units> units;
    std::vector<std::string> texts;
    for (const FamilyMember& member : family_.members) {
      ASSIGN_OR_RETURN(Program program, BuildProgram(member.graph, options_));
      units.push_back(member.units);
      texts.push_back(ToString(program));
    }
    size_t line = 0;
    absl::StatusOr<GeneralText> general = GeneralText::Of(units, texts, &line);
    if (!general.ok()) return NoOneProgram(texts.front(), line);
    std::vector<Units> checked;
    std::vector<double> differs;
    std::optional<Difference> first;
    for (const CheckedPoint& point : points) {
      if (cancel_ != nullptr) RETURN_IF_ERROR(cancel_->Check());
      Difference difference{.point = &point};
      // Values are compared until the first difference. Texts tell which dims decide.
      ASSIGN_OR_RETURN(const bool right,
                       IsRight(*general, point, /*compute=*/!first.has_value(), &difference));
      checked.push_back(point.units);
      differs.push_back(right ? 0 : 1);
      if (!right && !first.has_value()) first = std::move(difference);
    }
    if (!first.has_value()) return absl::OkStatus();
    return Differs(*first, points, DecidingNames(family_, checked, differs));
  }

 private:
  // A point at which the members' program is not that of the graph.
  struct Difference {
    const CheckedPoint* point = nullptr;
    std::string expected;
    std::string own;
  };

  absl::StatusOr<bool> IsRight(const GeneralText& general, const CheckedPoint& point, bool compute,
                               Difference* difference) const {
    ASSIGN_OR_RETURN(Program own, BuildProgram(point.graph, options_));
    difference->own = ToString(own);
    absl::StatusOr<std::string> expected = general.At(point.units);
    if (!expected.ok()) return false;
    if (*expected == difference->own) return true;
    difference->expected = *expected;
    // Equal programs may express a dim of 1 or 0 differently.
    absl::StatusOr<Program> parsed = ParseProgram(*expected);
    if (!parsed.ok()) return false;
    if (SettledText(*parsed) == SettledText(own)) return true;
    if (!compute) return false;
    absl::StatusOr<bool> alike = ComputeAlike(*parsed, own, cancel_);
    if (WasGivenUp(alike.status())) return alike.status();
    return alike.ok() && *alike;
  }

  // `names`: of the dims that tell at which points there is a difference.
  absl::Status Differs(const Difference& difference, const std::vector<CheckedPoint>& points,
                       std::vector<std::string> names) const {
    const CheckedPoint& point = *difference.point;
    std::string node = DecidedBy(point, points, &names);
    if (node.empty()) node = FirstDifference(difference.expected, difference.own);
    if (node.empty()) node = "options.dim_ranges";
    return FailedPrecondition(node, ": the value of dim ", StrJoin(names, ", "),
                              " decides what it gives: with ", Shown(family_, point.units),
                              " that is not what one plan for ", ShownRanges(family_),
                              " would compute; ", WayOut(names));
  }

  // The first node whose decision differs here from that at most points, and the deciding dims;
  // empty if there is none.
  std::string DecidedBy(const CheckedPoint& point, const std::vector<CheckedPoint>& points,
                        std::vector<std::string>* names) const {
    for (size_t other : {points.size() / 2, points.size() - 1, size_t{0}}) {
      std::string node = DecidedUnlike(point, points[other].trace, points, names);
      if (!node.empty()) return node;
    }
    return "";
  }

  std::string DecidedUnlike(const CheckedPoint& point, const ShapeTrace& usual,
                            const std::vector<CheckedPoint>& points,
                            std::vector<std::string>* names) const {
    for (size_t n = 0; n < point.trace.size() && n < usual.size(); ++n) {
      const NodeDecisions& a = point.trace[n];
      const NodeDecisions& b = usual[n];
      const bool comparable = a.node == b.node && a.decisions.size() == b.decisions.size();
      for (size_t d = 0; comparable && d < a.decisions.size(); ++d) {
        if (OutcomeOf(a.decisions[d]) == OutcomeOf(b.decisions[d])) continue;
        *names = NamesOf(points, n, d);
        return DescribeNode(a.node, a.op);
      }
      if (!comparable) return DescribeNode(a.node, a.op);
    }
    return "";
  }

  // Equal for numbers that decide alike.
  static int OutcomeOf(const ShapeDecision& d) {
    switch (d.keeps) {
      case Keeps::kNegative:
        return d.number < 0 ? 1 : 0;
      case Keeps::kOrder:
        return d.number < 0 ? -1 : d.number > 0 ? 1 : 0;
      case Keeps::kZero:
        return d.number == 0 ? 1 : 0;
      default:
        return 0;
    }
  }

  // The symbols that decision `d` of node `n` of the traces depends on.
  std::vector<std::string> NamesOf(const std::vector<CheckedPoint>& points, size_t n,
                                   size_t d) const {
    std::vector<Units> units;
    std::vector<double> numbers;
    for (const CheckedPoint& point : points) {
      if (point.trace.size() <= n || point.trace[n].decisions.size() <= d) continue;
      units.push_back(point.units);
      numbers.push_back(point.trace[n].decisions[d].number);
    }
    return DecidingNames(family_, units, numbers);
  }

  // The node of the first line at or after the first difference that has an operator; else of the
  // last one before it.
  std::string FirstDifference(const std::string& a, const std::string& b) const {
    const std::vector<std::string_view> first = StrSplit(a, '\n');
    const std::vector<std::string_view> second = StrSplit(b, '\n');
    bool differ = false;
    std::string found;
    for (size_t i = 0; i < first.size(); ++i) {
      differ = differ || i >= second.size() || first[i] != second[i];
      const size_t at = first[i].find(" @");
      if (at == std::string_view::npos) continue;
      const auto node =
          static_cast<size_t>(std::atoi(std::string(first[i].substr(at + 2)).c_str()));
      if (node >= family_.node_names.size()) continue;
      found = StrCat("node ", QuoteShort(family_.node_names[node]));
      if (differ) break;
    }
    return found;
  }

  // `line`: of the text of a member, where the others say something else.
  absl::Status NoOneProgram(const std::string& text, size_t line) const {
    std::vector<std::string_view> lines = StrSplit(text, '\n');
    lines.resize(std::min(line, lines.size()));
    const std::string node = FirstDifference(text, StrJoin(lines, "\n"));
    return FailedPrecondition(node.empty() ? "options.dim_ranges" : node,
                              ": no one form of it holds for all of ", ShownRanges(family_),
                              ", as where windows with a stride divide a dim evenly at some values "
                              "only; multiples may be of one form (fusionctl: --range ",
                              family_.names.front(), "=MIN..MAX/2); else ", WayOut(family_.names));
  }

  const ShapeFamily& family_;
  const ProgramOptions& options_;
  const CancelToken* cancel_;
};

}  // namespace

std::string ShownRanges(const ShapeFamily& family) {
  std::vector<std::string> words;
  for (size_t s = 0; s < family.names.size(); ++s) {
    const DimRange& range = family.symbols[s];
    words.push_back(StrCat(family.names[s], "=", range.least, "..", range.most));
  }
  return StrJoin(words, ", ");
}

std::string WayOut(const std::vector<std::string>& names) {
  const std::string each = StrJoin(
      names, ", ", [](const std::string& name) { return StrCat("--bind ", name, "=VALUE"); });
  return StrCat(
      "plan parts of the range by themselves, within which that stays the same (fusionctl: "
      "--range ",
      names.front(), "=MIN..MAX), or give ",
      names.size() == 1 ? "the dim one value" : "one of the dims one value", " (", each, ")");
}

absl::Status CheckPrograms(const ShapeFamily& family, const ProgramOptions& options,
                           const std::vector<CheckedPoint>& points, const CancelToken* cancel) {
  return ProgramChecker(family, options, cancel).Run(points);
}

}  // namespace fusion
