#include "core/codegen/cpu/emitter.h"
#include "core/op/indexed/opaque.h"
#include "core/schedule/lower/opaque.h"

// Calls of opaque ops: functions of the prelude ("running_fold", "row_order", ...) on whole
// params, for the rows of the current windows.

namespace fusion {
namespace {

std::string_view BoolName(bool b) { return b ? "true" : "false"; }

// "FoldMax<float>" and its identity.
std::pair<std::string, std::string> FoldOf(const std::string& monoid, DType type) {
  const std::string_view element = MemoryTypeName(type);
  const Expr identity = Monoid::Named(monoid, type)->identity()[0];
  const std::string_view name = monoid == "sum"    ? "FoldSum"
                                : monoid == "prod" ? "FoldProd"
                                : monoid == "max"  ? "FoldMax"
                                                   : "FoldMin";
  return {StrCat(name, "<", element, ">"),
          StrCat("(", element, ")",
                 ElementLiteral(type, IsFloat(type) ? identity.value() : 0,
                                IsFloat(type) ? 0 : identity.integer()))};
}

}  // namespace

std::string CpuEmitter::PlainPointer(BufferId id) const {
  return StrCat(buffer(id).name, guard_ ? ".plain()" : "");
}

// Guarded kernels check once that whole params fit in their memory; accesses inside the call are
// not checked.
void CpuEmitter::OpenWholeParams(const CallStmt& call) {
  if (!guard_) return;
  std::vector<std::string> tests;
  for (const auto* list : {&call.inputs, &call.outputs, &call.scratch}) {
    for (BufferId b : *list) {
      const int64_t elements = buffer(b).IsLocal() ? 0 : StoredElements(buffer(b));
      if (elements > 0) tests.push_back(StrCat(buffer(b).name, ".holds(0, ", elements, ")"));
    }
  }
  if (tests.empty()) tests.emplace_back("true");
  out_.Open("if (", StrJoin(tests, " && "), ")");
}

absl::Status CpuEmitter::Write(const CallStmt& call) {
  SayStep(call.op);
  OpenWholeParams(call);
  absl::Status written = absl::OkStatus();
  if (call.op == RunningFold::kName) {
    WriteRunningFold(call);
  } else if (call.op == RowOrder::kName) {
    WriteRowOrder(call);
  } else if (call.op == ChosenPlaces::kName) {
    Use("chosen_places");
    out_.Line("chosen_places(", PlainPointer(call.inputs[0]), ", ", PlainPointer(call.outputs[0]),
              ", ", buffer(call.inputs[0]).shape[0], ");");
  } else if (call.op == BoxChoice::kName) {
    WriteBoxChoice(call);
  } else {
    written = Unimplemented("unimplemented: call of ", call.op, " on the cpu backend");
  }
  if (guard_) out_.Close();
  return written;
}

std::string CpuEmitter::WindowArgs(const std::vector<DimId>& over) const {
  return StrJoin(over, ", ",
                 [this](DimId d) { return StrCat(window(d).begin, ", ", window(d).end); });
}

void CpuEmitter::WriteRunningFold(const CallStmt& call) {
  const Buffer& x = buffer(call.inputs[0]);
  const RunningFold fold = RunningFoldOf(call.attrs, x.shape);
  const auto [functor, identity] = FoldOf(fold.monoid, x.dtype);
  Use("running_fold");
  if (!s_.bitwise && fold.monoid == "sum" && x.dtype == DType::kF32) Use("running_sum_f32");
  const std::string from = PlainPointer(call.inputs[0]);
  const std::string to = PlainPointer(call.outputs[0]);
  const auto* part = call.attrs.Find<std::string>(kOpaquePart);
  if (part == nullptr) {
    out_.Line("fold_rows<", functor, ", ", BoolName(fold.exclusive), ", ", BoolName(fold.reverse),
              ">(", from, ", ", to, ", ", fold.rows.extent, ", ", fold.rows.inner, ", ",
              WindowArgs(call.over), ", ", identity, ");");
    return;
  }
  const std::string row = window(call.over[0]).begin;
  const std::string block = window(call.over[1]).begin;
  const int64_t blocks = dim(call.over[1]).extent;
  const std::string x_row = StrCat(from, " + ", row, " * ", fold.rows.extent);
  if (*part == kOpaqueTotals) {
    out_.Line("fold_totals<", functor, ", ", BoolName(fold.reverse), ">(", x_row, ", ", to, " + ",
              row, " * ", blocks, ", ", fold.rows.extent, ", ", blocks, ", ", block, ", ", identity,
              ");");
    return;
  }
  out_.Line("fold_block<", functor, ", ", BoolName(fold.exclusive), ", ", BoolName(fold.reverse),
            ">(", x_row, ", ", to, " + ", row, " * ", fold.rows.extent, ", ",
            PlainPointer(call.inputs[1]), " + ", row, " * ", blocks, ", ", fold.rows.extent, ", ",
            blocks, ", ", block, ", ", identity, ");");
}

void CpuEmitter::WriteRowOrder(const CallStmt& call) {
  const Buffer& x = buffer(call.inputs[0]);
  const RowOrder order = RowOrderOf(call.attrs, x.shape);
  Use("row_order");
  const std::string from = PlainPointer(call.inputs[0]);
  const std::string to = PlainPointer(call.outputs[0]);
  const std::string room = PlainPointer(call.scratch[0]);
  if (order.things) {
    out_.Line("order_things<", BoolName(order.largest), ">(", from, ", ", to, ", ",
              order.rows.extent, ", ", order.rows.inner, ", ", order.count, ", ", room, ");");
    return;
  }
  const bool wide = DTypeBytes(x.dtype) == 8;
  const int64_t elements = dim(buffer(call.scratch[0]).dims[0]).extent;
  out_.Line("order_rows<", BoolName(order.largest), ">(", from, ", ", to, ", ", order.rows.extent,
            ", ", order.rows.inner, ", ", order.count, ", ", WindowArgs(call.over), ", ",
            wide ? StrCat("(Ranked*)", room) : room, ", ", elements, wide ? " / 2" : "", ");");
}

void CpuEmitter::WriteBoxChoice(const CallStmt& call) {
  const Dims& scores = buffer(call.inputs[1]).shape;
  const BoxChoice choice = BoxChoiceOf(call.attrs, scores);
  Use("box_choice");
  const std::string batch = window(call.over[0]).begin;
  const std::string row =
      StrCat("(", batch, " * ", choice.classes, " + ", window(call.over[1]).begin, ")");
  out_.Line("choose_boxes<", BoolName(choice.centred), ">(", PlainPointer(call.inputs[0]), " + ",
            batch, " * ", 4 * choice.boxes, ", ", PlainPointer(call.inputs[1]), " + ", row, " * ",
            choice.boxes, ", ", PlainPointer(call.inputs[2]), "[0], ",
            choice.limited ? PlainPointer(call.inputs[3]) : "nullptr", ", ", choice.boxes, ", ",
            choice.count, ", ", PlainPointer(call.outputs[0]), " + ", row, " * ", choice.count,
            ", ", PlainPointer(call.scratch[0]), ", ", PlainPointer(call.scratch[1]), ");");
}

}  // namespace fusion
