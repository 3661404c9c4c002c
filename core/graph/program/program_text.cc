#include "core/graph/program/program.h"
#include "core/graph/program/program_checks.h"
#include "core/op/body/loop_body_text.h"
#include "core/op/repeat.h"

namespace fusion {
namespace {

std::string OrderToString(const Value& value) {
  if (value.order.empty()) return "";
  return StrCat(" order [", StrJoin(value.order, ", "), "]");
}

std::string RoomToString(const Value& value) {
  if (!value.room) return "";
  const std::string place =
      value.lies_in == kNoValue ? "" : StrCat(" in %", value.lies_in, " from ", value.begin);
  return StrCat(" room ", value.room->dim, ":", value.room->capacity, place);
}

std::string StridesToString(const Value& value) {
  return value.strides.empty() ? "" : StrCat(" strides ", DimsToString(value.strides));
}

constexpr std::string_view kPortNames[] = {"whole", "carried", "element", "element_from_end"};

std::string OpToString(const Program& program, const LoopOp& op) {
  const Value& out = program.value(op.output);
  std::string head = StrCat("  %", op.output, " = ", op.label, " @", op.origin,
                            out.tensor == kNoTensor ? " inner" : "", " : ", out.type.ToString(),
                            OrderToString(out), RoomToString(out), StridesToString(out));
  if (op.kind == LoopOp::kAppend) {
    return StrCat(head, " = append %", op.inputs[0], " behind %", op.inputs[1], "\n");
  }
  if (op.kind == LoopOp::kOpaque) {
    auto given = [](ValueId in) { return StrCat("%", in); };
    return StrCat(head, " = opaque (", StrJoin(op.inputs, ", ", given), ") ", op.attrs->ToString(),
                  "\n");
  }
  if (op.kind == LoopOp::kReinterpret) return StrCat(head, " = reinterpret %", op.inputs[0], "\n");
  if (op.kind == LoopOp::kRepeat) {
    auto given = [](ValueId in) { return StrCat("%", in); };
    return StrCat(head, " = over (", StrJoin(op.inputs, ", ", given), ") ", LoopToString(op));
  }
  if (op.kind == LoopOp::kResult) {
    return StrCat(head, " = result ", op.result, " of %", op.inputs[0], "\n");
  }
  auto operand = [&](size_t i) { return StrCat("%", op.inputs[i]); };
  return StrCat(head, " = ", LoopBodyToString(op.body, operand), "\n");
}

class ProgramParser {
 public:
  explicit ProgramParser(Lexer& in) : in_(in) {}

  absl::StatusOr<Program> Parse() {
    RETURN_IF_ERROR(in_.Expect("program"));
    program_.open_dims = in_.Accept("open_dims");
    RETURN_IF_ERROR(in_.Expect("{"));
    while (!in_.Accept("}")) {
      if (in_.Accept("output")) {
        ASSIGN_OR_RETURN(ValueId id, Use());
        program_.outputs.push_back(id);
        continue;
      }
      ASSIGN_OR_RETURN(int64_t id, in_.PercentId());
      if (id != static_cast<int64_t>(program_.values.size())) {
        return in_.Error(StrCat("%", program_.values.size(), " before this"));
      }
      RETURN_IF_ERROR(in_.Expect("="));
      RETURN_IF_ERROR(Definition());
    }
    absl::Status sound = CheckWhole(program_);
    if (!sound.ok()) return in_.Error(StrCat(Message(sound), " before this"));
    return std::move(program_);
  }

 private:
  absl::StatusOr<ValueId> Use() {
    const Lexer at = in_;
    ASSIGN_OR_RETURN(int64_t id, in_.PercentId());
    if (id < 0 || id >= static_cast<int64_t>(program_.values.size()))
      return at.Error("the id of a value defined above");
    return static_cast<ValueId>(id);
  }

  absl::StatusOr<TensorType> Type() {
    ASSIGN_OR_RETURN(TensorType type, TensorType::Parse(in_));
    if (!type.shape.is_static()) return in_.Error("a static shape before this");
    return type;
  }

  absl::Status Definition() {
    bool input = in_.Peek("input");
    if (input || in_.Peek("weight")) {
      RETURN_IF_ERROR(in_.Expect(input ? "input" : "weight"));
      auto& list = input ? program_.inputs : program_.weights;
      ASSIGN_OR_RETURN(int64_t index, in_.Integer());
      if (index != static_cast<int64_t>(list.size())) {
        return in_.Error(StrCat(list.size(), " before this"));
      }
      RETURN_IF_ERROR(in_.Expect(":"));
      ASSIGN_OR_RETURN(TensorType type, Type());
      Value value{.type = std::move(type),
                  .kind = input ? TensorKind::kInput : TensorKind::kWeight,
                  .index = static_cast<int>(index),
                  .value = {},
                  .order = {}};
      RETURN_IF_ERROR(Order(&value));
      RETURN_IF_ERROR(Room(&value));
      RETURN_IF_ERROR(Strides(&value));
      list.push_back(static_cast<ValueId>(program_.values.size()));
      program_.values.push_back(std::move(value));
      return absl::OkStatus();
    }
    if (in_.Accept("const")) {
      RETURN_IF_ERROR(in_.Expect(":"));
      ASSIGN_OR_RETURN(HostTensor tensor, ParseTensorText(in_));
      program_.values.push_back({.type = {tensor.dtype(), Shape(tensor.dims())},
                                 .kind = TensorKind::kConstant,
                                 .value = std::make_shared<const HostTensor>(std::move(tensor)),
                                 .order = {}});
      return absl::OkStatus();
    }
    return Op();
  }

  absl::Status Order(Value* value) {
    if (!in_.Accept("order")) return absl::OkStatus();
    RETURN_IF_ERROR(in_.Expect("["));
    std::vector<bool> seen(static_cast<size_t>(value->type.shape.rank()), false);
    while (!in_.Accept("]")) {
      if (!value->order.empty()) RETURN_IF_ERROR(in_.Expect(","));
      ASSIGN_OR_RETURN(int64_t d, in_.Integer());
      if (d < 0 || d >= value->type.shape.rank() || seen[static_cast<size_t>(d)]) {
        return in_.Error("a permutation of the dims before this");
      }
      seen[static_cast<size_t>(d)] = true;
      value->order.push_back(static_cast<int>(d));
    }
    if (value->order.size() != seen.size()) return in_.Error("every dim in the order before this");
    return absl::OkStatus();
  }

  absl::Status Strides(Value* value) {
    if (!in_.Accept("strides")) return absl::OkStatus();
    RETURN_IF_ERROR(in_.Expect("["));
    while (!in_.Accept("]")) {
      if (!value->strides.empty()) RETURN_IF_ERROR(in_.Expect(","));
      ASSIGN_OR_RETURN(int64_t stride, in_.Integer());
      value->strides.push_back(stride);
    }
    absl::Status fits = CheckBoundStrides(value->type.shape.ToDims(), value->strides,
                                          DTypeBytes(value->type.dtype));
    if (!fits.ok()) return in_.Error(StrCat("strides that fit before this: ", Message(fits)));
    return absl::OkStatus();
  }

  absl::Status Room(Value* value) {
    if (!in_.Accept("room")) return absl::OkStatus();
    ASSIGN_OR_RETURN(int64_t dim, in_.Integer());
    if (dim < 0 || dim >= value->type.shape.rank()) return in_.Error("one of the dims before this");
    RETURN_IF_ERROR(in_.Expect(":"));
    ASSIGN_OR_RETURN(int64_t capacity, in_.Integer());
    if (capacity < 1 || capacity > kMaxExtent) return in_.Error("a capacity before this");
    value->room = {.dim = static_cast<int>(dim), .capacity = capacity};
    if (!in_.Accept("in")) return absl::OkStatus();
    // A value lies in the next one, see ShareRows.
    ASSIGN_OR_RETURN(int64_t whole, in_.PercentId());
    if (whole != static_cast<int64_t>(program_.values.size()) + 1) {
      return in_.Error(StrCat("%", program_.values.size() + 1, " before this"));
    }
    value->lies_in = static_cast<ValueId>(whole);
    RETURN_IF_ERROR(in_.Expect("from"));
    ASSIGN_OR_RETURN(value->begin, in_.Integer());
    if (value->begin < 0) return in_.Error("a first element before this");
    return absl::OkStatus();
  }

  absl::Status Op() {
    LoopOp op;
    Value out;
    ASSIGN_OR_RETURN(op.label, in_.Identifier());
    RETURN_IF_ERROR(in_.Expect("@"));
    ASSIGN_OR_RETURN(int64_t origin, in_.Integer());
    op.origin = static_cast<NodeId>(origin);
    bool inner = in_.Accept("inner");
    RETURN_IF_ERROR(in_.Expect(":"));
    ASSIGN_OR_RETURN(out.type, Type());
    RETURN_IF_ERROR(Order(&out));
    RETURN_IF_ERROR(Room(&out));
    RETURN_IF_ERROR(Strides(&out));
    RETURN_IF_ERROR(in_.Expect("="));
    op.output = static_cast<ValueId>(program_.values.size());
    out.producer = static_cast<LoopId>(program_.ops.size());
    // The program stands alone: which graph tensor it was does not matter, that it was one does.
    out.tensor = inner ? kNoTensor : op.output;
    if (in_.Accept("append")) {
      op.kind = LoopOp::kAppend;
      ASSIGN_OR_RETURN(ValueId rows, Use());
      RETURN_IF_ERROR(in_.Expect("behind"));
      ASSIGN_OR_RETURN(ValueId past, Use());
      op.inputs = {rows, past};
    } else if (in_.Accept("reinterpret")) {
      op.kind = LoopOp::kReinterpret;
      ASSIGN_OR_RETURN(ValueId input, Use());
      op.inputs = {input};
    } else if (in_.Accept("opaque")) {
      op.kind = LoopOp::kOpaque;
      RETURN_IF_ERROR(Inputs(&op));
      ASSIGN_OR_RETURN(AttrMap attrs, AttrMap::Parse(in_));
      op.attrs = std::make_shared<const AttrMap>(std::move(attrs));
    } else if (in_.Accept("over")) {
      op.kind = LoopOp::kRepeat;
      RETURN_IF_ERROR(Repeat(&op));
    } else if (in_.Accept("result")) {
      op.kind = LoopOp::kResult;
      RETURN_IF_ERROR(Result(&op));
    } else {
      RETURN_IF_ERROR(Body(&op));
    }
    program_.values.push_back(std::move(out));
    absl::Status sound = CheckOp(program_, op);
    if (!sound.ok()) return in_.Error(StrCat(Message(sound), " before this"));
    program_.ops.push_back(std::move(op));
    return absl::OkStatus();
  }

  // "(%1, %2)"
  absl::Status Inputs(LoopOp* op) {
    RETURN_IF_ERROR(in_.Expect("("));
    while (!in_.Accept(")")) {
      if (!op->inputs.empty()) RETURN_IF_ERROR(in_.Expect(","));
      ASSIGN_OR_RETURN(ValueId given, Use());
      op->inputs.push_back(given);
    }
    return absl::OkStatus();
  }

  absl::Status Repeat(LoopOp* op) {
    RETURN_IF_ERROR(Inputs(op));
    RETURN_IF_ERROR(in_.Expect("repeat"));
    auto loop = std::make_shared<ProgramLoop>();
    ASSIGN_OR_RETURN(loop->most, in_.Integer());
    loop->must_end = in_.Accept("must_end");
    loop->counted = in_.Accept("counted");
    loop->conditional = in_.Accept("conditional");
    if (in_.Accept("pass")) {
      ASSIGN_OR_RETURN(int64_t pass, in_.PercentId());
      loop->pass = static_cast<ValueId>(pass);
    }
    RETURN_IF_ERROR(in_.Expect("("));
    while (!in_.Accept(")")) {
      if (!loop->operands.empty()) RETURN_IF_ERROR(in_.Expect(","));
      RETURN_IF_ERROR(Operand(loop.get()));
    }
    RETURN_IF_ERROR(in_.Expect("stacks"));
    RETURN_IF_ERROR(in_.Expect("["));
    while (!in_.Accept("]")) {
      if (!loop->from_end.empty()) RETURN_IF_ERROR(in_.Expect(","));
      const bool back = in_.Accept("back");
      if (!back) RETURN_IF_ERROR(in_.Expect("forward"));
      loop->from_end.push_back(back);
    }
    if (in_.depth() == kMaxRepeatDepth) return in_.Error("no deeper body");
    ++in_.depth();
    absl::StatusOr<Program> parsed = ProgramParser(in_).Parse();
    --in_.depth();
    ASSIGN_OR_RETURN(Program body, std::move(parsed));
    loop->body = std::make_shared<const Program>(std::move(body));
    op->loop = std::move(loop);
    return absl::OkStatus();
  }

  absl::Status Operand(ProgramLoop* loop) {
    size_t port = 0;
    while (port < std::size(kPortNames) && !in_.Accept(kPortNames[port])) ++port;
    if (port == std::size(kPortNames)) return in_.Error("how an operand is read");
    ASSIGN_OR_RETURN(int64_t leaf, in_.PercentId());
    loop->operands.push_back({static_cast<ProgramLoop::Port>(port), static_cast<ValueId>(leaf)});
    return absl::OkStatus();
  }

  absl::Status Result(LoopOp* op) {
    ASSIGN_OR_RETURN(int64_t number, in_.Integer());
    RETURN_IF_ERROR(in_.Expect("of"));
    ASSIGN_OR_RETURN(ValueId over, Use());
    op->inputs = {over};
    if (number < 0 || number > kMaxRepeatOperands) return in_.Error("a result before this");
    op->result = static_cast<int>(number);
    return absl::OkStatus();
  }

  absl::Status Body(LoopOp* op) {
    ASSIGN_OR_RETURN(op->body, ParseLoopBody(in_, [&](Lexer&) -> absl::StatusOr<DType> {
                       ASSIGN_OR_RETURN(ValueId input, Use());
                       op->inputs.push_back(input);
                       return program_.value(input).type.dtype;
                     }));
    return absl::OkStatus();
  }

  Lexer& in_;
  Program program_;
};

}  // namespace

std::string LoopToString(const LoopOp& op) {
  const ProgramLoop& loop = *op.loop;
  auto port = [](const ProgramLoop::Operand& operand) {
    return StrCat(kPortNames[static_cast<size_t>(operand.port)], " %", operand.leaf);
  };
  return StrCat("repeat ", loop.most, loop.must_end ? " must_end" : "",
                loop.counted ? " counted" : "", loop.conditional ? " conditional" : "",
                loop.pass == kNoValue ? "" : StrCat(" pass %", loop.pass), " (",
                StrJoin(loop.operands, ", ", port), ") stacks [",
                StrJoin(loop.from_end, ", ", [](bool back) { return back ? "back" : "forward"; }),
                "] ", ToString(*loop.body));
}

std::string ToString(const Program& program) {
  std::string out = program.open_dims ? "program open_dims {\n" : "program {\n";
  for (size_t i = 0; i < program.values.size(); ++i) {
    const Value& v = program.values[i];
    if (v.kind == TensorKind::kConstant) {
      out += StrCat("  %", i, " = const : ", TensorToText(*v.value), "\n");
    } else if (v.kind != TensorKind::kIntermediate) {
      out += StrCat("  %", i, " = ", v.kind == TensorKind::kInput ? "input " : "weight ", v.index,
                    " : ", v.type.ToString(), OrderToString(v), RoomToString(v), StridesToString(v),
                    "\n");
    } else {
      out += OpToString(program, program.op(v.producer));
    }
  }
  for (ValueId id : program.outputs) out += StrCat("  output %", id, "\n");
  return out + "}\n";
}

absl::StatusOr<Program> ParseProgram(std::string_view text) {
  Lexer in(text);
  ASSIGN_OR_RETURN(Program program, ProgramParser(in).Parse());
  if (!in.AtEnd()) return in.Error("the end");
  return program;
}

}  // namespace fusion
