#include "core/plan/assemble/loop_tensors.h"

#include <algorithm>

namespace fusion {
namespace {

constexpr int kNone = -1;

class Adder {
 public:
  Adder(const LoopOp& op, const Plan& body, int first_place, const GroupEvaluator& evaluator,
        TensorTable* tensors)
      : op_(op),
        loop_(*op.loop),
        body_(body),
        first_place_(first_place),
        evaluator_(evaluator),
        tensors_(*tensors),
        operand_of_(loop_.body->values.size(), -1),
        place_of_output_(loop_.body->outputs.size(), kNone) {
    for (size_t i = 0; i < loop_.operands.size(); ++i) {
      operand_of_[static_cast<size_t>(loop_.operands[i].leaf)] = static_cast<int>(i);
    }
    place_of_operand_.resize(loop_.operands.size(), kNone);
  }

  absl::StatusOr<LoopTensors> Run() {
    out_.loop.most = loop_.most;
    out_.loop.must_end = loop_.must_end;
    if (loop_.counted) out_.loop.count = Given(0);
    if (loop_.conditional) {
      out_.loop.begins = Given(loop_.counted ? 1 : 0);
      out_.loop.goes_on = Use(tensors_.AddScratch(DType::kBool, {}));
    }
    if (loop_.pass != kNoValue) out_.loop.pass = Use(tensors_.AddScratch(DType::kI64, {}));
    FindResults();
    AddCarried();
    AddElements();
    if (Has(Space::kArena)) arena_ = Use(tensors_.AddBlock(body_.arena_bytes, false));
    if (Has(Space::kPrepared)) prepared_ = Use(tensors_.AddBlock(body_.prepared_bytes, true));
    for (const PlanTensor& tensor : body_.tensors) {
      ASSIGN_OR_RETURN(int moved, Moved(tensor));
      out_.of_body.push_back(Use(moved));
    }
    for (const PlanLaunch& launch : body_.prepare) {
      std::vector<int> passed;
      for (int t : launch.tensors) passed.push_back(out_.of_body[static_cast<size_t>(t)]);
      tensors_.AddLaunch(/*prepare=*/true, passed);
    }
    return std::move(out_);
  }

 private:
  int Use(int tensor) {
    out_.used.push_back(tensor);
    return tensor;
  }
  // The body's tensor may have zero bytes.
  bool Has(Space space) const {
    return std::any_of(body_.tensors.begin(), body_.tensors.end(),
                       [space](const PlanTensor& t) { return t.space == space; });
  }

  // The tensor of an input of the op.
  int Given(size_t input) { return Use(tensors_.Of(op_.inputs[input])); }
  int Operand(size_t operand) { return Given(loop_.first_operand() + operand); }
  int NewPlace() { return first_place_ + out_.places++; }

  // By number: the tensors of the results of the repeat.
  void FindResults() {
    const Program& program = evaluator_.program();
    for (const LoopOp& op : program.ops) {
      if (op.kind != LoopOp::kResult || op.inputs[0] != op_.output) continue;
      const auto number = static_cast<size_t>(op.result);
      if (results_.size() <= number) results_.resize(number + 1, kNone);
      results_[number] = Use(tensors_.Of(op.output));
    }
    const size_t stacked = loop_.from_end.size();
    if (results_.size() > loop_.carried() + stacked) out_.loop.passes = results_.back();
  }

  void AddCarried() {
    size_t number = 0;
    for (size_t i = 0; i < loop_.operands.size(); ++i) {
      if (loop_.operands[i].port != ProgramLoop::Port::kCarried) continue;
      const TensorType& type = loop_.body->value(loop_.operands[i].leaf).type;
      PlanLoop::Carried carried{.before = NewPlace(),
                                .after = NewPlace(),
                                .initial = Operand(i),
                                .last = results_[number],
                                .spare = Use(tensors_.AddScratch(type.dtype, type.shape.ToDims()))};
      place_of_operand_[i] = carried.before;
      place_of_output_[conditions() + number] = carried.after;
      out_.loop.carried.push_back(carried);
      ++number;
    }
  }

  void AddElements() {
    auto add = [&](int whole, bool from_end, bool written) {
      out_.loop.elements.push_back(
          {.place = NewPlace(), .whole = whole, .from_end = from_end, .written = written});
      return out_.loop.elements.back().place;
    };
    for (size_t i = 0; i < loop_.operands.size(); ++i) {
      const ProgramLoop::Port port = loop_.operands[i].port;
      const bool from_end = port == ProgramLoop::Port::kElementFromEnd;
      if (port != ProgramLoop::Port::kElement && !from_end) continue;
      place_of_operand_[i] = add(Operand(i), from_end, false);
    }
    for (size_t i = 0; i < loop_.from_end.size(); ++i) {
      const size_t number = loop_.carried() + i;
      place_of_output_[conditions() + number] = add(results_[number], loop_.from_end[i], true);
    }
  }

  size_t conditions() const { return loop_.conditional ? 1 : 0; }

  absl::StatusOr<int> Moved(const PlanTensor& tensor) {
    const auto index = static_cast<size_t>(tensor.index);
    switch (tensor.space) {
      case Space::kInput:
        return AtLeaf(tensor, loop_.body->inputs[index]);
      case Space::kWeight: {
        const ValueId leaf = loop_.body->weights[index];
        const auto operand = static_cast<size_t>(operand_of_[static_cast<size_t>(leaf)]);
        if (!evaluator_.IsConstant(op_.inputs[loop_.first_operand() + operand])) {
          return Unimplemented("a loop reads what follows from weights alone and is an output too");
        }
        return Whole(operand, tensor);
      }
      case Space::kOutput:
        if (place_of_output_[index] == kNone) return out_.loop.goes_on;
        return tensors_.AddAtPlace(tensor, place_of_output_[index]);
      case Space::kConstant:
        return tensors_.AddConstant(body_.constants[index]);
      case Space::kPrepared:
        return tensors_.AddWithin(prepared_, tensor, tensor.offset);
      case Space::kArena:
        return tensors_.AddWithin(arena_, tensor, tensor.offset);
      case Space::kPass:
        return tensors_.AddAtPlace(tensor, first_place_ + out_.places + tensor.index);
    }
    return kNone;
  }

  absl::StatusOr<int> AtLeaf(const PlanTensor& tensor, ValueId leaf) {
    if (leaf == loop_.pass) return out_.loop.pass;
    const auto operand = static_cast<size_t>(operand_of_[static_cast<size_t>(leaf)]);
    const int place = place_of_operand_[operand];
    if (place == kNone) return Whole(operand, tensor);
    return tensors_.AddAtPlace(tensor, place);
  }

  // An operand in place; `inside` is its tensor in the body's plan.
  absl::StatusOr<int> Whole(size_t operand, const PlanTensor& inside) {
    const int outside = Operand(operand);
    if (tensors_.tensor(outside).strides != inside.strides) {
      return Unimplemented("a loop reads a tensor that lies in a shared buffer");
    }
    return outside;
  }

  const LoopOp& op_;
  const ProgramLoop& loop_;
  const Plan& body_;
  const int first_place_;
  const GroupEvaluator& evaluator_;
  TensorTable& tensors_;
  std::vector<int> operand_of_;        // by value of the body; -1: none
  std::vector<int> place_of_operand_;  // kNone: it is where it is
  std::vector<int> place_of_output_;   // by output of the body; kNone: the condition
  std::vector<int> results_;           // tensors
  int arena_ = kNone;
  int prepared_ = kNone;
  LoopTensors out_;
};

}  // namespace

absl::StatusOr<LoopTensors> AddLoopTensors(const LoopOp& op, const Plan& body, int first_place,
                                           const GroupEvaluator& evaluator, TensorTable* tensors) {
  return Adder(op, body, first_place, evaluator, tensors).Run();
}

PlanLoop MovedLoop(const PlanLoop& loop, const LoopTensors& moved, int first_place,
                   int first_launch) {
  auto tensor = [&](int t) { return t < 0 ? t : moved.of_body[static_cast<size_t>(t)]; };
  auto place = [&](int p) { return first_place + moved.places + p; };
  PlanLoop out = loop;
  out.first += first_launch;
  for (int PlanLoop::*named : {&PlanLoop::count, &PlanLoop::begins, &PlanLoop::goes_on,
                               &PlanLoop::pass, &PlanLoop::passes}) {
    out.*named = tensor(loop.*named);
  }
  for (PlanLoop::Carried& c : out.carried) {
    c = {.before = place(c.before),
         .after = place(c.after),
         .initial = tensor(c.initial),
         .last = tensor(c.last),
         .spare = tensor(c.spare)};
  }
  for (PlanLoop::Element& e : out.elements) {
    e.place = place(e.place);
    e.whole = tensor(e.whole);
  }
  return out;
}

}  // namespace fusion
