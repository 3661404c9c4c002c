#include "client/fusionctl/measure/contender.h"

#include <nlohmann/json.hpp>

#include "client/fused_model.h"
#include "client/fusionctl/measure/statistics.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/service/session.h"
#include "core/bundle/symbol_values.h"
#include "core/tensor/strided_copy.h"

namespace fusion {

absl::StatusOr<Contender> Contender::Load(const Arguments& arguments, const ModelFile& file,
                                          const Client& client, const PlanOptions& options,
                                          Progress* progress, Weights weights) {
  Contender out;
  FusionRequest request = file.Request(arguments, options);
  ASSIGN_OR_RETURN(out.reply_, PlanWithProgress(client, request, progress));
  progress->Show("loading kernels and weights");
  ASSIGN_OR_RETURN(out.model_, FusedModel::Load(client, request, [&](const std::string& name) {
                     return weights == Weights::kTaken ? file.TakeWeight(name) : file.Weight(name);
                   }));
  return out;
}

// The inputs of all runs have the same dims.
absl::Status Contender::MakeOutputs(const std::vector<const HostTensor*>& inputs) {
  if (!out_.empty()) return absl::OkStatus();
  if (!plan().variants.empty()) {
    std::vector<Dims> dims;
    for (const HostTensor* input : inputs) dims.push_back(input->dims());
    ASSIGN_OR_RETURN(std::vector<int64_t> units,
                     SymbolUnits(plan(), dims, {model_->inputs(), reply_.binding.symbols}));
    variant_ = VariantAt(plan(), units);
  }
  if (!plan().shared_buffers.empty()) {
    ASSIGN_OR_RETURN(memory_, LoadSharedMemory(plan(), inputs));
    start_ = memory_.rows;
  }
  ASSIGN_OR_RETURN(outputs_, model_->MakeOutputs(inputs));
  for (HostTensor& tensor : outputs_) out_.push_back(&tensor);
  return plan().bound_strides.empty() ? absl::OkStatus() : Place(inputs);
}

// Puts inputs and outputs where the plan expects them, so that runs copy nothing.
absl::Status Contender::Place(const std::vector<const HostTensor*>& inputs) {
  RETURN_IF_ERROR(model_->RunInto(inputs, out_));  // checks them
  for (const HostTensor* input : inputs) {
    placed_in_.push_back({input->dtype(), &input->dims(), const_cast<std::byte*>(input->bytes()),
                          input->byte_size()});
  }
  for (HostTensor* output : out_) {
    placed_out_.push_back({output->dtype(), &output->dims(), output->bytes(), output->byte_size()});
  }
  for (size_t s = 0; s < plan().shared_buffers.size(); ++s) {
    for (const bool output : {false, true}) {
      const SharedBuffer& shared = plan().shared_buffers[s];
      BoundTensor& placed = output ? placed_out_[static_cast<size_t>(shared.output)]
                                   : placed_in_[static_cast<size_t>(shared.input)];
      placed.data = memory_.buffers[s].bytes();
      placed.bytes = memory_.buffers[s].byte_size();
    }
  }
  for (const BoundStrides& bound : plan().bound_strides) {
    BoundTensor& placed =
        (bound.output ? placed_out_ : placed_in_)[static_cast<size_t>(bound.position)];
    strided_.emplace_back();
    // The dims of an input that the plan does not read are unchecked.
    if (!bound.output && plan().inputs[static_cast<size_t>(bound.position)] < 0) continue;
    ASSIGN_OR_RETURN(HostTensor memory,
                     HostTensor::Create(placed.dtype, {SpanOf(*placed.dims, bound.strides)}));
    if (!bound.output) {
      CopyStrided(placed.dtype, *placed.dims, placed.data, RowMajorStrides(*placed.dims),
                  memory.bytes(), bound.strides);
    }
    placed.data = memory.bytes();
    placed.bytes = memory.byte_size();
    strided_.back() = std::move(memory);
  }
  return absl::OkStatus();
}

// Copies outputs with strides or in shared buffers to the dense tensors of outputs_.
void Contender::FetchOutputs() {
  for (size_t s = 0; s < plan().shared_buffers.size(); ++s) {
    const SharedBuffer& shared = plan().shared_buffers[s];
    HostTensor& to = outputs_[static_cast<size_t>(shared.output)];
    if (!strided_.empty()) memory_.rows[s] = to.dims()[static_cast<size_t>(shared.dim)];
    to = RowsOf(plan(), memory_, s);
  }
  for (size_t i = 0; i < strided_.size(); ++i) {
    const BoundStrides& bound = plan().bound_strides[i];
    if (!bound.output) continue;
    HostTensor& to = outputs_[static_cast<size_t>(bound.position)];
    CopyStrided(to.dtype(), to.dims(), strided_[i].bytes(), bound.strides, to.bytes(),
                RowMajorStrides(to.dims()));
  }
}

// Before every run, shared buffers have the contents of the inputs.
absl::Status Contender::RunOnce(const std::vector<const HostTensor*>& inputs, RunProfile* profile) {
  if (!strided_.empty()) return model_->RunInPlace(placed_in_, placed_out_, profile);
  if (plan().shared_buffers.empty()) return model_->RunInto(inputs, out_, profile);
  memory_.rows = start_;
  return model_->RunShared(inputs, out_, &memory_, profile);
}

absl::Status Contender::Run(const std::vector<const HostTensor*>& inputs, bool counts) {
  RETURN_IF_ERROR(MakeOutputs(inputs));
  Nanoseconds begin = Clock::Real().Now();
  RETURN_IF_ERROR(RunOnce(inputs, nullptr));
  if (counts) latency_us_.push_back(ToMicroseconds(Clock::Real().Now() - begin));
  FetchOutputs();
  if (plan().output_extents.empty()) return absl::OkStatus();
  cut_ = outputs_;
  return CutOutputs(plan().output_extents, &cut_);
}

absl::Status Contender::Profile(const std::vector<const HostTensor*>& inputs) {
  RunProfile profile;
  RETURN_IF_ERROR(MakeOutputs(inputs));
  RETURN_IF_ERROR(RunOnce(inputs, &profile));
  launch_us_.resize(profile.launch_us.size());
  for (size_t i = 0; i < launch_us_.size(); ++i) launch_us_[i].push_back(profile.launch_us[i]);
  return absl::OkStatus();
}

std::vector<const HostTensor*> RunInputs::pointers() const {
  std::vector<const HostTensor*> out;
  for (const HostTensor& tensor : data.inputs) out.push_back(&tensor);
  return out;
}

absl::StatusOr<RunInputs> LoadRunInputs(const Arguments& arguments, const ModelFile& file) {
  RunInputs out{.options = arguments.options};
  ASSIGN_OR_RETURN(auto given, LoadInputs(arguments.inputs, file));
  if (!arguments.data.empty()) {
    ASSIGN_OR_RETURN(std::vector<RunData> sets, LoadData(arguments.data, file));
    out.data = std::move(sets.front());
  } else {
    out.data.given = !arguments.inputs.empty();
    out.data.name = out.data.given ? "files and random numbers" : "random inputs";
    ASSIGN_OR_RETURN(Graph graph, ImportModel(file, BindToData(out.options, given, file)));
    ASSIGN_OR_RETURN(out.data.inputs, RandomData(graph, file, arguments.seed));
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i]) out.data.inputs[i] = *std::move(given[i]);
  }
  if (out.data.given) out.options = BindToData(out.options, out.data.inputs, file);
  return out;
}

Json LatencyJson(const std::vector<double>& samples_us) {
  MedianInterval m = MedianOf(samples_us);
  return {{"median", m.median},
          {"low95", m.low},
          {"high95", m.high},
          {"p10", Quantile(samples_us, 0.1)},
          {"p90", Quantile(samples_us, 0.9)},
          {"n", samples_us.size()}};
}

}  // namespace fusion
