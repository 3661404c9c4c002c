#include "core/pipeline/kernels/kernel_registry.h"

#include "core/pipeline/kernels/kernel_builds.h"

namespace fusion {
namespace {

// Most bytes of a compiler's or checker's message in a plan; the log has all of it.
constexpr size_t kMostReasonBytes = 512;

std::string Shortened(std::string_view text) {
  return text.size() <= kMostReasonBytes ? std::string(text)
                                         : StrCat(text.substr(0, kMostReasonBytes), " ...");
}

}  // namespace

KernelRegistry::KernelRegistry(RegisteredKernels kernels, Logger& logger)
    : kernels_(std::move(kernels)), logger_(logger) {}

std::map<std::string, std::string> KernelRegistry::Quarantined() const {
  std::map<std::string, std::string> out;
  if (kernels_.empty()) return out;
  MutexLock lock(&mutex_);
  for (const auto& [name, state] : states_) {
    if (state.state != RegisteredState::kQuarantined) continue;
    out[name] = StrCat("registered kernel ", Quote(name),
                       " is quarantined, generated code runs: ", state.reason);
  }
  return out;
}

bool KernelRegistry::MayPass(const Plan& plan) const {
  if (kernels_.empty()) return false;
  MutexLock lock(&mutex_);
  for (const PlanFallback& fallback : plan.fallbacks) {
    auto state = states_.find(fallback.registered);
    if (state != states_.end() && state->second.may_pass) return true;
  }
  return false;
}

void KernelRegistry::Quarantine(const std::string& name, const absl::Status& why) {
  const std::string reason = Shortened(Message(why));
  {
    MutexLock lock(&mutex_);
    State& state = states_[name];
    if (state.state == RegisteredState::kQuarantined) return;
    state = {RegisteredState::kQuarantined, reason, fusion::MayPass(why)};
  }
  std::string file;
  for (const auto& kernel : kernels_) {
    if (kernel->name() == name) file = kernel->path;
  }
  logger_.Error("registered_kernel_quarantined",
                {{"name", name}, {"source", file}, {"reason", Message(why)}});
}

void KernelRegistry::NoteReady(const Plan& plan) {
  if (kernels_.empty()) return;
  MutexLock lock(&mutex_);
  for (const PlanGroup& group : plan.groups) {
    if (group.registered.empty()) continue;
    State& state = states_[group.registered];
    if (state.state == RegisteredState::kUnused) state.state = RegisteredState::kReady;
  }
}

std::vector<RegisteredCapability> KernelRegistry::Describe() const {
  std::vector<RegisteredCapability> out;
  MutexLock lock(&mutex_);
  for (const auto& kernel : kernels_) {
    auto known = states_.find(kernel->name());
    const State state = known == states_.end() ? State{} : known->second;
    out.push_back({.name = kernel->name(),
                   .pattern = PatternText(kernel->rule),
                   .source = kernel->source_sha256,
                   .force = kernel->force,
                   .state = state.state,
                   .reason = state.reason});
  }
  return out;
}

}  // namespace fusion
