#include "tests/support/plan_interpreter.h"

#include <algorithm>

#include "core/graph/test_values.h"
#include "core/graph/evaluate.h"
#include "core/schedule/interpret.h"

namespace fusion {
namespace {

// Calls visit(element of the dense tensor, element in memory) for every index of a param.
template <typename Visit>
void ForEach(const Buffer& b, const Visit& visit) {
  int64_t elements = NumElements(b.shape);
  std::vector<int64_t> index(b.shape.size(), 0);
  for (int64_t e = 0; e < elements; ++e) {
    visit(e, StoredOffset(b, index));
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < b.shape[d]) break;
      index[d] = 0;
    }
  }
}

class PlanInterpreter {
 public:
  PlanInterpreter(const PlannedModel& model, const std::vector<HostTensor>& inputs,
                  const std::vector<HostTensor>& weights)
      : model_(model), plan_(model.plan), inputs_(inputs), weights_(weights) {}

  absl::StatusOr<std::vector<HostTensor>> Run() {
    arena_.assign(static_cast<size_t>(plan_.arena_bytes), kPoison);
    prepared_.assign(static_cast<size_t>(plan_.prepared_bytes), kPoison);
    for (int id : plan_.outputs) {
      const PlanTensor& t = plan_.tensors[static_cast<size_t>(id)];
      outputs_.emplace_back(t.dtype, t.dims);
      std::fill_n(outputs_.back().bytes(), outputs_.back().byte_size(), kPoison);
    }
    for (const PlanLaunch& launch : plan_.prepare) RETURN_IF_ERROR(Launch(launch));
    for (const PlanLaunch& launch : plan_.launches) RETURN_IF_ERROR(Launch(launch));
    return std::move(outputs_);
  }

 private:
  static constexpr std::byte kPoison{0xFF};

  std::byte* Place(const PlanTensor& t) {
    auto index = static_cast<size_t>(t.index);
    switch (t.space) {
      case Space::kInput:
        return const_cast<std::byte*>(inputs_[index].bytes());
      case Space::kOutput:
        return outputs_[index].bytes();
      case Space::kWeight:
        return const_cast<std::byte*>(weights_[index].bytes());
      case Space::kConstant:
        return const_cast<std::byte*>(plan_.constants[index]->bytes());
      case Space::kPrepared:
        return prepared_.data() + t.offset;
      case Space::kArena:
        return arena_.data() + t.offset;
    }
    return nullptr;
  }

  absl::Status Launch(const PlanLaunch& launch) {
    const Schedule& schedule = model_.kernels[static_cast<size_t>(launch.kernel)].schedule;
    if (launch.tensors.size() != static_cast<size_t>(schedule.params)) {
      return Internal("a launch passes ", launch.tensors.size(), " tensors to ", schedule.params);
    }
    std::vector<HostTensor> params;
    for (size_t p = 0; p < launch.tensors.size(); ++p) {
      const Buffer& b = schedule.buffer(static_cast<BufferId>(p));
      const PlanTensor& t = plan_.tensors[static_cast<size_t>(launch.tensors[p])];
      int64_t size = DTypeBytes(b.dtype);
      if (t.dtype != b.dtype || StoredElements(b) * size > t.bytes) {
        return Internal("param ", b.name, " of ", schedule.label, " needs ",
                        StoredElements(b) * size, " bytes, its tensor has ", t.bytes);
      }
      params.emplace_back(b.dtype, b.shape);
      const std::byte* memory = Place(t);
      ForEach(b, [&](int64_t e, int64_t at) {
        std::copy_n(memory + at * size, size, params.back().bytes() + e * size);
      });
    }
    RETURN_IF_ERROR(Interpret(schedule, &params));
    for (size_t p = 0; p < launch.tensors.size(); ++p) {
      const Buffer& b = schedule.buffer(static_cast<BufferId>(p));
      if (b.kind != ParamKind::kOutput) continue;
      int64_t size = DTypeBytes(b.dtype);
      std::byte* memory = Place(plan_.tensors[static_cast<size_t>(launch.tensors[p])]);
      if (b.layout.blocked >= 0) std::fill_n(memory, StoredElements(b) * size, std::byte{0});
      ForEach(b, [&](int64_t e, int64_t at) {
        std::copy_n(params[p].bytes() + e * size, size, memory + at * size);
      });
    }
    return absl::OkStatus();
  }

  const PlannedModel& model_;
  const Plan& plan_;
  const std::vector<HostTensor>& inputs_;
  const std::vector<HostTensor>& weights_;
  std::vector<HostTensor> outputs_;
  std::vector<std::byte> arena_;
  std::vector<std::byte> prepared_;
};

}  // namespace

absl::StatusOr<std::vector<HostTensor>> InterpretPlan(const PlannedModel& model,
                                                      const std::vector<HostTensor>& inputs,
                                                      const std::vector<HostTensor>& weights) {
  return PlanInterpreter(model, inputs, weights).Run();
}

PlanValues RandomPlanValues(const PlannedModel& model, uint64_t seed) {
  PlanValues values;
  for (ValueId v : model.program.inputs) {
    values.inputs.push_back(RandomTensor(model.program.value(v).type, ++seed * 7919));
  }
  for (ValueId v : model.program.weights) {
    values.weights.push_back(RandomTensor(model.program.value(v).type, ++seed * 7919));
  }
  return values;
}

absl::StatusOr<std::vector<HostTensor>> EvaluatePlanned(const Graph& graph,
                                                        const PlannedModel& model,
                                                        const PlanValues& values) {
  return Evaluate(graph, values.inputs, [&](TensorId id) -> absl::StatusOr<const HostTensor*> {
    for (size_t w = 0; w < values.weights.size(); ++w) {
      if (model.program.value(model.program.weights[w]).tensor == id) return &values.weights[w];
    }
    return NotFound("weight %", id, " is not read by the program");
  });
}

}  // namespace fusion
