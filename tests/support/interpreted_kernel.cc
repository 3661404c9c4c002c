#include "tests/support/interpreted_kernel.h"

#include <algorithm>

#include "core/schedule/lower/interpret.h"

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

class InterpretedKernel final : public LoadedKernel {
 public:
  explicit InterpretedKernel(const Schedule& schedule) : schedule_(schedule) {
    descriptor_.struct_size = sizeof(descriptor_);
    descriptor_.abi_version = FUSION_KERNEL_ABI_VERSION;
    descriptor_.isa = "";
    descriptor_.tensors = schedule.params;
    descriptor_.phases = static_cast<int>(schedule.phases.size());
    descriptor_.tasks = [](int, const FusionInt64*) -> FusionInt64 { return 1; };
    descriptor_.alignment = 1;
  }

  const FusionKernelDescriptor& descriptor() const override { return descriptor_; }

  absl::Status Run(const FusionKernelArgs& args, int phase, int64_t begin, int64_t end,
                   int /*worker*/) const override {
    if (phase != 0 || begin == end) return absl::OkStatus();
    std::vector<HostTensor> params;
    for (BufferId p = 0; p < schedule_.params; ++p) {
      const Buffer& b = schedule_.buffer(p);
      params.emplace_back(b.dtype, b.shape);
      const auto* memory = static_cast<const std::byte*>(args.tensors[p].data);
      int64_t size = DTypeBytes(b.dtype);
      ForEach(b, [&](int64_t e, int64_t at) {
        std::copy_n(memory + at * size, size, params.back().bytes() + e * size);
      });
    }
    RETURN_IF_ERROR(Interpret(schedule_, &params));
    for (BufferId p = 0; p < schedule_.params; ++p) {
      const Buffer& b = schedule_.buffer(p);
      if (b.kind != ParamKind::kOutput) continue;
      auto* memory = static_cast<std::byte*>(args.tensors[p].data);
      const HostTensor& value = params[static_cast<size_t>(p)];
      int64_t size = DTypeBytes(b.dtype);
      if (b.layout.blocked >= 0) std::fill_n(memory, StoredElements(b) * size, std::byte{0});
      ForEach(b, [&](int64_t e, int64_t at) {
        std::copy_n(value.bytes() + e * size, size, memory + at * size);
      });
    }
    return absl::OkStatus();
  }

 private:
  const Schedule& schedule_;
  FusionKernelDescriptor descriptor_{};
};

}  // namespace

std::shared_ptr<const LoadedKernel> Interpreted(const Schedule& schedule) {
  return std::make_shared<InterpretedKernel>(schedule);
}

}  // namespace fusion
