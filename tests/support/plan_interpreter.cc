#include "tests/support/plan_interpreter.h"

#include <algorithm>
#include <cstring>

#include "core/bundle/symbol_values.h"
#include "core/graph/evaluate/evaluate.h"
#include "core/graph/evaluate/test_values.h"
#include "core/tensor/strided_copy.h"
#include "tests/support/interpreted_kernel.h"

namespace fusion {
namespace {

class PlanInterpreter {
 public:
  PlanInterpreter(const PlannedModel& model, const std::vector<HostTensor>& inputs,
                  const std::vector<HostTensor>& weights)
      : model_(model), plan_(model.plan), inputs_(inputs), weights_(weights) {
    for (const BoundStrides& b : plan_.bound_strides) {
      if (b.output) continue;
      HostTensor& input = inputs_[static_cast<size_t>(b.position)];
      HostTensor memory = Poisoned(input.dtype(), {SpanOf(input.dims(), b.strides)});
      CopyStrided(input.dtype(), input.dims(), input.bytes(), RowMajorStrides(input.dims()),
                  memory.bytes(), b.strides);
      input = std::move(memory);
    }
  }

  absl::StatusOr<std::vector<HostTensor>> Run() {
    arena_.assign(static_cast<size_t>(plan_.arena_bytes), kPoison);
    prepared_.assign(static_cast<size_t>(plan_.prepared_bytes), kPoison);
    for (int id : plan_.outputs) {
      const PlanTensor& t = plan_.tensors[static_cast<size_t>(id)];
      outputs_.push_back(Poisoned(t.dtype, t.dims));
    }
    for (const BoundStrides& b : plan_.bound_strides) {
      if (!b.output) continue;
      HostTensor& output = outputs_[static_cast<size_t>(b.position)];
      output = Poisoned(output.dtype(), {SpanOf(output.dims(), b.strides)});
    }
    for (const PlanLaunch& launch : plan_.prepare) RETURN_IF_ERROR(Launch(launch));
    places_.resize(PlacesOf(plan_));
    RETURN_IF_ERROR(Range(0, static_cast<int>(plan_.launches.size()), 0));
    for (const BoundStrides& b : plan_.bound_strides) {
      if (!b.output) continue;
      HostTensor& output = outputs_[static_cast<size_t>(b.position)];
      const auto id = static_cast<size_t>(plan_.outputs[static_cast<size_t>(b.position)]);
      HostTensor dense(output.dtype(), plan_.tensors[id].dims);
      CopyStrided(dense.dtype(), dense.dims(), output.bytes(), b.strides, dense.bytes(),
                  RowMajorStrides(dense.dims()));
      output = std::move(dense);
    }
    return std::move(outputs_);
  }

 private:
  static HostTensor Poisoned(DType dtype, const Dims& dims) {
    HostTensor out(dtype, dims);
    std::fill_n(out.bytes(), out.byte_size(), kPoison);
    return out;
  }

  // Launches [begin, end), loops from number `loop` on among them.
  absl::Status Range(int begin, int end, size_t loop) {
    for (int i = begin; i < end;) {
      while (loop < plan_.loops.size() && plan_.loops[loop].first < i) ++loop;
      if (loop == plan_.loops.size() || plan_.loops[loop].first != i) {
        RETURN_IF_ERROR(Launch(plan_.launches[static_cast<size_t>(i++)]));
        continue;
      }
      RETURN_IF_ERROR(Passes(loop));
      i += plan_.loops[loop].launches;
    }
    return absl::OkStatus();
  }

  // State is copied from pass to pass here, unlike in the executor.
  absl::Status Passes(size_t l) {
    const PlanLoop& loop = plan_.loops[l];
    auto at = [&](int tensor) { return Place(plan_.tensors[static_cast<size_t>(tensor)]); };
    auto place = [&](int p) -> std::byte*& { return places_[static_cast<size_t>(p)]; };
    auto bytes = [&](const PlanLoop::Carried& c) {
      const PlanTensor& t = plan_.tensors[static_cast<size_t>(c.last)];
      return NumElements(t.dims) * DTypeBytes(t.dtype);
    };
    for (const PlanLoop::Carried& c : loop.carried) {
      std::copy_n(at(c.initial), bytes(c), at(c.last));
      place(c.before) = at(c.last);
      place(c.after) = at(c.spare);
    }
    int64_t most = loop.most;
    if (loop.count >= 0) {
      most = std::min(most, *reinterpret_cast<const int64_t*>(at(loop.count)));
    }
    bool goes_on = loop.begins < 0 || *at(loop.begins) != std::byte{0};
    int64_t pass = 0;
    for (; pass < most && goes_on; ++pass) {
      for (const PlanLoop::Element& e : loop.elements) {
        place(e.place) =
            at(e.whole) + ElementBytesAt(plan_, e, {}) * (e.from_end ? loop.most - 1 - pass : pass);
      }
      if (loop.pass >= 0) std::memcpy(at(loop.pass), &pass, sizeof(pass));
      RETURN_IF_ERROR(Range(loop.first, loop.first + loop.launches, l + 1));
      for (const PlanLoop::Carried& c : loop.carried) {
        std::copy_n(at(c.spare), bytes(c), at(c.last));
      }
      if (loop.goes_on >= 0) goes_on = *at(loop.goes_on) != std::byte{0};
    }
    if (loop.passes >= 0) std::memcpy(at(loop.passes), &pass, sizeof(pass));
    return absl::OkStatus();
  }
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
      case Space::kPass:
        return places_[index];
    }
    return nullptr;
  }

  absl::Status Launch(const PlanLaunch& launch) {
    const Schedule& schedule = model_.kernels[static_cast<size_t>(launch.kernel)].schedule;
    if (launch.tensors.size() != static_cast<size_t>(schedule.params)) {
      return Internal("a launch passes ", launch.tensors.size(), " tensors to ", schedule.params);
    }
    std::vector<FusionTensor> tensors;
    for (size_t p = 0; p < launch.tensors.size(); ++p) {
      const Buffer& b = schedule.buffer(static_cast<BufferId>(p));
      const PlanTensor& t = plan_.tensors[static_cast<size_t>(launch.tensors[p])];
      int64_t bytes = StoredElements(b) * DTypeBytes(b.dtype);
      if (t.dtype != b.dtype || bytes > t.bytes) {
        return Internal("param ", b.name, " of ", schedule.label, " needs ", bytes,
                        " bytes, its tensor has ", t.bytes);
      }
      tensors.push_back({Place(t), nullptr});
    }
    FusionKernelArgs args{sizeof(FusionKernelArgs),
                          FUSION_KERNEL_ABI_VERSION,
                          tensors.data(),
                          nullptr,
                          nullptr,
                          nullptr,
                          0};
    return Interpreted(schedule)->Run(args, /*phase=*/0, 0, 1, /*worker=*/0);
  }

  const PlannedModel& model_;
  const Plan& plan_;
  std::vector<HostTensor> inputs_;  // as they lie in memory
  const std::vector<HostTensor>& weights_;
  std::vector<HostTensor> outputs_;
  std::vector<std::byte> arena_;
  std::vector<std::byte> prepared_;
  std::vector<std::byte*> places_;  // of loops, in the pass under way
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

absl::StatusOr<std::vector<HostTensor>> EvaluateProgram(const PlannedModel& model,
                                                        const PlanValues& values) {
  const Program& program = model.program;
  std::map<ValueId, const HostTensor*> given;
  for (size_t i = 0; i < values.inputs.size(); ++i) given[program.inputs[i]] = &values.inputs[i];
  for (size_t w = 0; w < values.weights.size(); ++w) {
    given[program.weights[w]] = &values.weights[w];
  }
  std::vector<Box> whole;
  for (ValueId v : program.outputs) {
    whole.push_back(Box::Whole(program.value(v).type.shape.ToDims()));
  }
  return EvaluateBoxes(program, whole, [&given](ValueId v) {
    auto found = given.find(v);
    return found == given.end() ? nullptr : found->second;
  });
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
