#include "tests/support/whole_program.h"

#include <algorithm>
#include <cstdlib>

#include "core/device/host_isa.h"
#include "core/graph/program/half_precision.h"

namespace fusion {

DeviceSpec DeviceNamed(std::string_view name, int threads) {
  auto specs = BuiltInSpecs();
  FUSION_CHECK(specs.ok(), StrCat("built-in specs: ", Message(specs.status())));
  auto spec = ResolveTarget(*specs, {.name = std::string(name), .threads = threads}, nullptr);
  FUSION_CHECK(spec.ok(), StrCat("a built-in spec: ", Message(spec.status())));
  return *spec;
}

std::vector<std::string> RunnableDevices() {
  std::vector<std::string> names = EveryRunnableDevice();
  // But for products of bf16 (tests/conformance/low_precision_kernels_test.cc) as avx512.
  std::erase(names, StrCat("generic-", IsaName(Isa::kAvx512Bf16)));
  return names;
}

std::vector<std::string> EveryRunnableDevice() {
  std::vector<std::string> names;
  for (Isa isa : kIsas) {
    if (HostRuns(isa)) names.push_back(StrCat("generic-", IsaName(isa)));
  }
  return names;
}

std::vector<std::string> InTurn(std::vector<std::string> devices, std::string_view case_name) {
  constexpr uint64_t kRuns = 3;
  const char* const turn = std::getenv("FUSION_ISA_TURN");
  if (turn == nullptr) return devices;
  uint64_t place = std::strtoull(turn, nullptr, 10);
  for (char c : case_name) place += static_cast<unsigned char>(c);
  std::vector<std::string> out;
  for (size_t i = 0; i < devices.size(); ++i) {
    const bool always = i == 0 || i + 1 == devices.size();
    if (always || (place + i) % kRuns == 0) out.push_back(std::move(devices[i]));
  }
  return out;
}

absl::StatusOr<WholeProgram> AsOneGroup(const Program& program) {
  WholeProgram whole;
  std::vector<LoopId> loops;
  for (size_t i = 0; i < program.ops.size(); ++i) loops.push_back(static_cast<LoopId>(i));
  std::vector<ValueId> values;
  whole.program = ExtractProgram(program, loops, &values);
  std::vector<bool> outside;
  std::vector<bool> constant;
  for (ValueId v : values) {
    outside.push_back(std::find(program.outputs.begin(), program.outputs.end(), v) !=
                      program.outputs.end());
    constant.push_back(program.value(v).kind == TensorKind::kWeight);
  }
  loops = KeepWide(outside, &whole.program);
  ASSIGN_OR_RETURN(whole.group, MakeGroup(whole.program, loops, outside, constant));
  return whole;
}

}  // namespace fusion
