#include "tests/support/kernel_harness.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

namespace fusion::testing {
namespace {

std::string IsaFlags(Isa isa) {
  switch (isa) {
    case Isa::kX86V2: return "-march=x86-64-v2";
    case Isa::kAvx2: return "-mavx2 -mfma -mbmi2 -mf16c";
    case Isa::kAvx512:
      return "-mavx2 -mfma -mbmi2 -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl "
             "-mprefer-vector-width=512";
  }
  return "";
}

// The bytes of a param as the kernel wants them, and back.
std::vector<std::byte> ToStorage(const Buffer& buffer, const HostTensor& dense) {
  int64_t size = DTypeBytes(buffer.dtype);
  std::vector<std::byte> bytes(static_cast<size_t>(std::max<int64_t>(StoredElements(buffer), 1) * size));
  std::vector<int64_t> index(buffer.shape.size(), 0);
  for (int64_t e = 0; e < dense.elements(); ++e) {
    std::memcpy(bytes.data() + StoredOffset(buffer, index) * size, dense.bytes() + e * size,
                static_cast<size_t>(size));
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < buffer.shape[d]) break;
      index[d] = 0;
    }
  }
  return bytes;
}

HostTensor FromStorage(const Buffer& buffer, const std::vector<std::byte>& bytes) {
  int64_t size = DTypeBytes(buffer.dtype);
  HostTensor dense(buffer.dtype, buffer.shape);
  std::vector<int64_t> index(buffer.shape.size(), 0);
  for (int64_t e = 0; e < dense.elements(); ++e) {
    std::memcpy(dense.bytes() + e * size, bytes.data() + StoredOffset(buffer, index) * size,
                static_cast<size_t>(size));
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < buffer.shape[d]) break;
      index[d] = 0;
    }
  }
  return dense;
}

absl::Status RunKernel(const Schedule& schedule, const DeviceSpec& device,
                       std::vector<HostTensor>* params, std::string* source_out) {
  ASSIGN_OR_RETURN(const Backend* backend, FindBackend("cpu"));
  ASSIGN_OR_RETURN(KernelSource source, backend->Emit(schedule, device, "fk_test"));
  if (source_out != nullptr) *source_out = source.text;
  if (getenv("DUMP")) fprintf(stderr,"%s\n%s\n",ToString(schedule).c_str(),source.text.substr(source.text.find("static void block")).c_str());
  ASSIGN_OR_RETURN(auto kernel, CompileAndLoad(source, device.isa, schedule.bitwise));
  std::vector<std::vector<std::byte>> storage;
  std::vector<FusionTensor> tensors;
  for (size_t p = 0; p < params->size(); ++p) {
    storage.push_back(ToStorage(schedule.buffer(static_cast<BufferId>(p)), (*params)[p]));
  }
  for (auto& bytes : storage) tensors.push_back({bytes.data(), nullptr});
  const FusionKernelDescriptor& d = kernel->descriptor();
  // Scratch full of NaN: reading before writing shows.
  std::vector<float> scratch(d.scratch_bytes / 4 + 64, std::nanf(""));
  auto aligned = (reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64;
  FusionKernelArgs args{sizeof(FusionKernelArgs), FUSION_KERNEL_ABI_VERSION, tensors.data(), nullptr,
                        nullptr, reinterpret_cast<void*>(aligned), 0};
  for (int phase = 0; phase < d.phases; ++phase) {
    // One task a call, backwards: tasks must not depend on each other.
    for (int64_t t = d.tasks(phase, nullptr); t-- > 0;) {
      RETURN_IF_ERROR(kernel->Run(args, phase, t, t + 1, 0));
    }
  }
  for (size_t p = 0; p < params->size(); ++p) {
    const Buffer& b = schedule.buffer(static_cast<BufferId>(p));
    if (b.kind == ParamKind::kOutput) (*params)[p] = FromStorage(b, storage[p]);
  }
  return absl::OkStatus();
}

}  // namespace

HostTensor RandomTensor(const TensorType& type, uint32_t seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<double> normal;
  HostTensor t(type.dtype, type.shape.ToDims());
  for (int64_t i = 0; i < t.elements(); ++i) {
    if (IsFloat(type.dtype)) {
      t.SetDouble(i, normal(rng));
    } else {
      t.SetInt(i, static_cast<int64_t>(rng() % 2));
    }
  }
  return t;
}

HostTensor AdversarialTensor(const TensorType& type, uint32_t seed) {
  HostTensor t = RandomTensor(type, seed);
  if (!IsFloat(type.dtype)) return t;
  std::mt19937 rng(seed + 77);
  const double special[] = {NAN, HUGE_VAL, -HUGE_VAL, -0.0, 1e-40, -1e-42};
  for (int64_t i = 0; i < t.elements(); ++i) {
    if (rng() % 23 == 0) t.SetDouble(i, special[rng() % 6]);
  }
  return t;
}

DeviceSpec Device(std::string_view name, int threads) {
  auto specs = BuiltInSpecs();
  FUSION_CHECK(specs.ok(), StrCat("built-in specs: ", Message(specs.status())));
  auto spec = ResolveTarget(*specs, {.name = std::string(name), .threads = threads}, nullptr);
  FUSION_CHECK(spec.ok(), StrCat("a built-in spec: ", Message(spec.status())));
  return *spec;
}

absl::StatusOr<FusionGroup> WholeProgram(const Program& program) {
  std::vector<LoopId> loops;
  for (size_t i = 0; i < program.ops.size(); ++i) loops.push_back(static_cast<LoopId>(i));
  std::vector<bool> outside(program.values.size(), false);
  std::vector<bool> constant(program.values.size(), false);
  for (ValueId v : program.outputs) outside[static_cast<size_t>(v)] = true;
  for (size_t v = 0; v < program.values.size(); ++v) {
    constant[v] = program.values[v].kind == TensorKind::kWeight;
  }
  return MakeGroup(program, loops, outside, constant);
}

absl::StatusOr<std::shared_ptr<const LoadedKernel>> CompileAndLoad(const KernelSource& source,
                                                                   Isa isa, bool bitwise) {
  char dir[] = "/tmp/fusion_test_XXXXXX";
  if (mkdtemp(dir) == nullptr) return Internal("no temporary directory");
  std::string cpp = StrCat(dir, "/k.cc");
  std::string so = StrCat(dir, "/k.so");
  std::ofstream(cpp) << source.text;
  std::string command =
      StrCat("g++ -std=c++17 -O2 -fPIC -shared -nostdlib -fno-exceptions -fno-rtti -fno-math-errno "
             "-fno-trapping-math -fno-asynchronous-unwind-tables -fno-tree-loop-distribute-patterns "
             "-Wall -Wextra -Werror -Wno-unused-function ",
             bitwise ? "-ffp-contract=off " : "-ffp-contract=fast ", IsaFlags(isa), " ", cpp, " -o ", so,
             " 2> ", dir, "/log");
  int code = std::system(command.c_str());
  std::stringstream log;
  log << std::ifstream(StrCat(dir, "/log")).rdbuf();
  std::stringstream bytes;
  bytes << std::ifstream(so, std::ios::binary).rdbuf();
  std::string cleanup = StrCat("rm -rf ", dir);
  int ignored = std::system(cleanup.c_str());
  (void)ignored;
  if (code != 0) return Internal("g++ failed:\n", log.str().substr(0, 4000));
  return LoadCpuKernel(bytes.str(), source.symbol);
}

absl::Status RunLowered(const FusionGroup& group, const Lowered& lowered, const DeviceSpec& device,
                        std::vector<HostTensor>* values, std::string* source) {
  std::vector<HostTensor> params;
  for (size_t p = 0; p < lowered.params.size(); ++p) {
    const LoweredParam& param = lowered.params[p];
    const Buffer& buffer = lowered.schedule.buffer(static_cast<BufferId>(p));
    const HostTensor& value = (*values)[static_cast<size_t>(param.value)];
    if (param.packed) {
      Schedule pack = PackSchedule(group, lowered, p);
      std::vector<HostTensor> both = {value.Reshaped(pack.buffer(0).shape),
                                      HostTensor(buffer.dtype, buffer.shape)};
      RETURN_IF_ERROR(RunKernel(pack, device, &both, nullptr));
      params.push_back(std::move(both[1]));
    } else if (param.output) {
      params.emplace_back(buffer.dtype, buffer.shape);
    } else {
      params.push_back(value.Reshaped(buffer.shape));
    }
  }
  RETURN_IF_ERROR(RunKernel(lowered.schedule, device, &params, source));
  for (size_t p = 0; p < params.size(); ++p) {
    const LoweredParam& param = lowered.params[p];
    if (!param.output) continue;
    HostTensor& to = (*values)[static_cast<size_t>(param.value)];
    to = params[p].Reshaped(to.dims());
  }
  return absl::OkStatus();
}

std::string Difference(const HostTensor& got, const HostTensor& want, double atol, double rtol) {
  if (got.dtype() != want.dtype() || got.dims() != want.dims()) return "another type";
  double scale = 0;
  for (int64_t i = 0; i < want.elements(); ++i) {
    double b = std::fabs(want.GetDouble(i));
    if (std::isfinite(b)) scale = std::max(scale, b);
  }
  for (int64_t i = 0; i < want.elements(); ++i) {
    double a = got.GetDouble(i);
    double b = want.GetDouble(i);
    bool same = std::isnan(a) ? std::isnan(b)
                : std::isinf(a) || std::isinf(b) ? a == b
                                                 : std::fabs(a - b) <= atol + rtol * scale;
    if (!same) return StrCat("element ", i, " is ", a, ", expected ", b, " (max|b| ", scale, ")");
  }
  return "";
}

}  // namespace fusion::testing
