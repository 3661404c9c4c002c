#include "core/check/kernel_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

namespace fusion {
namespace {

constexpr int64_t kFence = 256;  // bytes on either side of a tensor
constexpr std::byte kFenceByte{0xA5};
// Four of them are a NaN for f32, two for f64, one for f16 and bf16; integers become -1.
constexpr std::byte kPoison{0xFF};

// Memory between two fences.
class Fenced {
 public:
  explicit Fenced(int64_t bytes) : size_(bytes), area_(DType::kU8, {bytes + 2 * kFence}) {
    std::fill_n(area_.bytes(), kFence, kFenceByte);
    std::fill_n(data(), bytes, kPoison);
    std::fill_n(data() + bytes, kFence, kFenceByte);
  }

  std::byte* data() { return area_.bytes() + kFence; }
  const std::byte* data() const { return area_.bytes() + kFence; }
  int64_t size() const { return size_; }

  bool FencesStand() const {
    auto intact = [](const std::byte* at) {
      return std::all_of(at, at + kFence, [](std::byte b) { return b == kFenceByte; });
    };
    return intact(area_.bytes()) && intact(data() + size_);
  }

 private:
  int64_t size_;
  HostTensor area_;  // 64-byte aligned
};

// Calls visit(from, to) for every element of a box, in index order: `from` and `to` are sums of
// per-dim offsets.
struct Walk {
  Dims extents;
  std::vector<std::vector<int64_t>> from;  // by dim, by index
  std::vector<std::vector<int64_t>> to;

  template <typename Visit>
  void Run(const Visit& visit) const {
    if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return;
    Step(0, 0, 0, visit);
  }

 private:
  template <typename Visit>
  void Step(size_t dim, int64_t from_at, int64_t to_at, const Visit& visit) const {
    if (dim == extents.size()) return visit(from_at, to_at);
    for (size_t i = 0; i < static_cast<size_t>(extents[dim]); ++i) {
      Step(dim + 1, from_at + from[dim][i], to_at + to[dim][i], visit);
    }
  }
};

std::vector<std::vector<int64_t>> Linear(const Dims& extents, const Dims& strides) {
  std::vector<std::vector<int64_t>> offsets(extents.size());
  for (size_t d = 0; d < extents.size(); ++d) {
    for (int64_t i = 0; i < extents[d]; ++i) offsets[d].push_back(i * strides[d]);
  }
  return offsets;
}

// StoredOffset is a sum of one term a dim.
std::vector<std::vector<int64_t>> Stored(const Buffer& buffer) {
  std::vector<std::vector<int64_t>> offsets(buffer.shape.size());
  std::vector<int64_t> index(buffer.shape.size(), 0);
  for (size_t d = 0; d < buffer.shape.size(); ++d) {
    for (index[d] = 0; index[d] < buffer.shape[d]; ++index[d]) {
      offsets[d].push_back(StoredOffset(buffer, index));
    }
    index[d] = 0;
  }
  return offsets;
}

void Move(const HostTensor& from, int64_t from_at, HostTensor* to, int64_t to_at) {
  int64_t size = DTypeBytes(from.dtype());
  std::memcpy(to->bytes() + to_at * size, from.bytes() + from_at * size, static_cast<size_t>(size));
}

// The memory of a value, flat; gaps are poison.
HostTensor InMemory(const Value& value, const HostTensor& dense) {
  HostTensor memory(dense.dtype(), {StorageElements(value)});
  if (StorageStrides(value) == RowMajorStrides(dense.dims())) {
    std::copy_n(dense.bytes(), dense.byte_size(), memory.bytes());
    return memory;
  }
  std::fill_n(memory.bytes(), memory.byte_size(), kPoison);
  Walk walk{dense.dims(), Linear(dense.dims(), RowMajorStrides(dense.dims())),
            Linear(dense.dims(), StorageStrides(value))};
  walk.Run([&](int64_t from, int64_t to) { Move(dense, from, &memory, to); });
  return memory;
}

HostTensor FromMemory(const Value& value, const HostTensor& memory) {
  HostTensor dense(memory.dtype(), value.type.shape.ToDims());
  Walk walk{dense.dims(), Linear(dense.dims(), StorageStrides(value)),
            Linear(dense.dims(), RowMajorStrides(dense.dims()))};
  walk.Run([&](int64_t from, int64_t to) { Move(memory, from, &dense, to); });
  return dense;
}

// True if the gaps between the elements of a value (memory with room, or strides of the caller) are
// still poison.
bool GapsStand(const Value& value, const HostTensor& memory) {
  if (!value.room && value.strides.empty()) return true;
  HostTensor gaps = memory;
  HostTensor poison(memory.dtype(), {1});
  std::fill_n(poison.bytes(), poison.byte_size(), kPoison);
  const Dims dims = value.type.shape.ToDims();
  const Walk walk{dims, Linear(dims, Dims(dims.size(), 0)), Linear(dims, StorageStrides(value))};
  walk.Run([&](int64_t from, int64_t to) { Move(poison, from, &gaps, to); });
  return std::all_of(gaps.bytes(), gaps.bytes() + gaps.byte_size(),
                     [](std::byte b) { return b == kPoison; });
}

absl::StatusOr<HostTensor> Pack(const Buffer& buffer, const IndexExpr& source,
                                const HostTensor& memory) {
  HostTensor packed(buffer.dtype, {StoredElements(buffer)});
  Walk walk{buffer.shape, {}, Stored(buffer)};
  // A dim may run backwards, as the windows of a transposed convolution do.
  int64_t first = source.constant();
  int64_t last = source.constant();
  for (size_t d = 0; d < buffer.shape.size(); ++d) {
    int64_t step = source.CoefficientOf(static_cast<int>(d));
    (step < 0 ? first : last) += step * std::max<int64_t>(buffer.shape[d] - 1, 0);
    walk.from.push_back({});
    for (int64_t i = 0; i < buffer.shape[d]; ++i) walk.from.back().push_back(i * step);
  }
  if (packed.elements() > 0 && (first < 0 || last >= memory.elements())) {
    return InvalidArgument("reference: a packed param reads elements ", first, "..", last, " of ",
                           memory.elements());
  }
  walk.Run([&](int64_t from, int64_t to) { Move(memory, from + source.constant(), &packed, to); });
  return packed;
}

const Value& ValueOf(const KernelReference& reference, const KernelReference::Param& param) {
  const Program& program = reference.program;
  auto index = static_cast<size_t>(param.index);
  return program.value(param.output ? program.outputs[index] : program.inputs[index]);
}

// InvalidArgument unless kernel, schedule, reference and inputs match in number.
absl::Status CheckFit(const LoadedKernel& kernel, const Schedule& schedule,
                      const KernelReference& reference, const std::vector<HostTensor>& inputs) {
  const FusionKernelDescriptor& d = kernel.descriptor();
  if (d.tensors != schedule.params || reference.params.size() != static_cast<size_t>(d.tensors)) {
    return InvalidArgument("the kernel takes ", d.tensors, " tensors, its schedule ",
                           schedule.params, ", its reference ", reference.params.size());
  }
  if (d.phases != static_cast<int>(schedule.phases.size())) {
    return InvalidArgument("the kernel has ", d.phases, " phases, its schedule ",
                           schedule.phases.size());
  }
  if (inputs.size() != reference.program.inputs.size()) {
    return InvalidArgument("the reference has ", reference.program.inputs.size(), " inputs, given ",
                           inputs.size());
  }
  return absl::OkStatus();
}

absl::Status CheckSizes(const LoadedKernel& kernel, const std::vector<int64_t>* sizes) {
  const size_t given = sizes == nullptr ? 0 : sizes->size();
  if (static_cast<size_t>(kernel.descriptor().dims) == given) return absl::OkStatus();
  return InvalidArgument("the kernel takes ", kernel.descriptor().dims, " sizes, given ", given);
}

using Params = std::vector<std::shared_ptr<Fenced>>;

absl::StatusOr<Params> MakeParams(const Schedule& schedule, const KernelReference& reference,
                                  const std::vector<HostTensor>& inputs,
                                  const KernelRunOptions& options) {
  Params params;
  for (size_t p = 0; p < reference.params.size(); ++p) {
    const Buffer& buffer = schedule.buffer(static_cast<BufferId>(p));
    const KernelReference::Param& param = reference.params[p];
    params.push_back(std::make_shared<Fenced>(StoredBytes(buffer)));
    if (param.output) continue;
    ASSIGN_OR_RETURN(HostTensor stored,
                     ToStorage(buffer, reference, param, inputs[static_cast<size_t>(param.index)]));
    std::copy_n(stored.bytes(), stored.byte_size(), params.back()->data());
  }
  for (auto [output, input] : schedule.may_alias) {
    if (options.in_place) params[static_cast<size_t>(output)] = params[static_cast<size_t>(input)];
  }
  return params;
}

// Runs one task. An index out of range is OK here: the kernel used the nearest element, and the
// evaluator decides whether that is right.
absl::Status RunTask(const LoadedKernel& kernel, const FusionGuardedKernelArgs& args, int phase,
                     int64_t task) {
  absl::Status status = kernel.Run(args.args, phase, task, task + 1, 0);
  if (status.ok() || !kernel.guarded()) return status;
  const int code = args.faults[0].code;
  if (code == FUSION_KERNEL_BAD_INDEX) return absl::OkStatus();
  return code == FUSION_KERNEL_OK ? status : FaultStatus(args.faults[0]);
}

absl::Status RunTasks(const LoadedKernel& kernel, const Schedule& schedule, const Params& params,
                      const std::vector<int64_t>* sizes) {
  const FusionKernelDescriptor& d = kernel.descriptor();
  std::vector<FusionTensor> tensors;
  std::vector<FusionInt64> elements;  // of a guarded kernel
  for (size_t p = 0; p < params.size(); ++p) {
    const Buffer& buffer = schedule.buffer(static_cast<BufferId>(p));
    const BufferLayout& layout = buffer.layout;
    tensors.push_back({params[p]->data(), layout.blocked < 0 ? layout.strides.data() : nullptr});
    elements.push_back(params[p]->size() / DTypeBytes(buffer.dtype));
  }
  Fenced scratch(static_cast<int64_t>(d.scratch_bytes));
  Fenced workspace(static_cast<int64_t>(d.workspace_bytes));
  const FusionInt64* dims = sizes == nullptr ? nullptr : sizes->data();
  RETURN_IF_ERROR(CheckReach(kernel, dims, elements));
  FusionKernelFault fault{};
  const size_t size = kernel.guarded() ? sizeof(FusionGuardedKernelArgs) : sizeof(FusionKernelArgs);
  const FusionGuardedKernelArgs args{
      {static_cast<unsigned>(size), FUSION_KERNEL_ABI_VERSION, tensors.data(), dims,
       workspace.data(), scratch.data(), d.scratch_bytes},
      elements.data(),
      &fault};
  for (int phase = 0; phase < d.phases; ++phase) {
    for (int64_t task = d.tasks(phase, dims); task-- > 0;) {
      RETURN_IF_ERROR(RunTask(kernel, args, phase, task));
    }
  }
  if (!scratch.FencesStand()) return Internal("the kernel wrote outside its scratch");
  if (!workspace.FencesStand()) return Internal("the kernel wrote outside its workspace");
  return absl::OkStatus();
}

// Inputs that share no memory with an output must still hold what they held.
absl::Status CheckUntouched(const Schedule& schedule, const Params& params, const Params& before) {
  for (size_t p = 0; p < params.size(); ++p) {
    const Buffer& buffer = schedule.buffer(static_cast<BufferId>(p));
    if (!params[p]->FencesStand()) {
      return Internal("the kernel wrote outside param ", p, " (", buffer.name, ")");
    }
    bool shared = std::count(params.begin(), params.end(), params[p]) > 1;
    if (buffer.kind == ParamKind::kOutput || shared) continue;
    if (std::memcmp(params[p]->data(), before[p]->data(), static_cast<size_t>(params[p]->size())) !=
        0) {
      return Internal("the kernel changed its input, param ", p, " (", buffer.name, ")");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HostTensor> ToStorage(const Buffer& buffer, const KernelReference& reference,
                                     const KernelReference::Param& param, const HostTensor& value) {
  HostTensor memory = InMemory(ValueOf(reference, param), value);
  if (memory.dtype() != buffer.dtype) {
    return InvalidArgument("param ", buffer.name, " is ", DTypeName(buffer.dtype), ", its value ",
                           DTypeName(memory.dtype()));
  }
  if (param.packed) return Pack(buffer, param.source, memory);
  if (StoredElements(buffer) != memory.elements()) {
    return InvalidArgument("param ", buffer.name, " has ", StoredElements(buffer),
                           " elements, its value ", memory.elements());
  }
  return memory;
}

absl::StatusOr<std::vector<HostTensor>> RunKernel(const LoadedKernel& kernel,
                                                  const Schedule& schedule,
                                                  const KernelReference& reference,
                                                  const std::vector<HostTensor>& inputs,
                                                  const KernelRunOptions& options) {
  RETURN_IF_ERROR(CheckFit(kernel, schedule, reference, inputs));
  RETURN_IF_ERROR(CheckSizes(kernel, options.sizes));
  ASSIGN_OR_RETURN(Params params, MakeParams(schedule, reference, inputs, options));
  Params before;
  for (const auto& memory : params) before.push_back(std::make_shared<Fenced>(*memory));
  RETURN_IF_ERROR(RunTasks(kernel, schedule, params, options.sizes));
  RETURN_IF_ERROR(CheckUntouched(schedule, params, before));
  std::vector<HostTensor> outputs(reference.program.outputs.size());
  for (size_t p = 0; p < params.size(); ++p) {
    const KernelReference::Param& param = reference.params[p];
    if (!param.output) continue;
    const Buffer& buffer = schedule.buffer(static_cast<BufferId>(p));
    HostTensor memory(buffer.dtype, {StoredElements(buffer)});
    std::copy_n(params[p]->data(), memory.byte_size(), memory.bytes());
    const Value& value = ValueOf(reference, param);
    const int64_t elements = StorageElements(value);
    if (!param.packed && memory.elements() != elements) {
      return InvalidArgument("param ", buffer.name, " has ", memory.elements(),
                             " elements, its value ", elements);
    }
    if (!param.packed && !GapsStand(value, memory)) {
      return Internal("the kernel wrote between the rows of param ", p, " (", buffer.name, ")");
    }
    outputs[static_cast<size_t>(param.index)] =
        param.packed ? std::move(memory) : FromMemory(value, memory);
  }
  return outputs;
}

}  // namespace fusion
