#include "core/pipeline/families/family_maker.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/base/contains.h"
#include "core/benefit/estimate.h"
#include "core/bundle/symbol_values.h"
#include "core/codegen/generalise.h"
#include "core/pipeline/families/family_checks.h"
#include "core/plan/cost/pin.h"

namespace fusion {

absl::StatusOr<NamedKernels> FamilyMaker::Run() {
  options_.lock = LockFor(model_, LockUse::kMember);
  for (const FamilyMember& member : family_.members) {
    points_.push_back(member.units);
    absl::StatusOr<PlannedModel> planned = MakeMember(member.graph, device_, options_, cancel_);
    if (WasGivenUp(planned.status())) return planned.status();
    if (!planned.ok()) {
      // The tilings of the largest plan are impossible for this member.
      const bool form =
          absl::IsInvalidArgument(planned.status()) || absl::IsFailedPrecondition(planned.status());
      return AtMember(member, planned.status(), form);
    }
    absl::Status alike = CheckAlike(planned->plan);
    if (!alike.ok()) return AtMember(member, alike, /*form=*/true);
    RETURN_IF_ERROR(CheckConstants(planned->plan));
    members_.push_back(*std::move(planned));
  }
  RETURN_IF_ERROR(SizeTensors());
  RETURN_IF_ERROR(SizeLoops());
  RETURN_IF_ERROR(CheckInPlace());
  RETURN_IF_ERROR(MakeKernels());
  AddUnreadInputs();
  model_.plan.symbols = symbols_;
  const absl::Status sound = Verify(model_.plan);
  if (!sound.ok()) return FailedPrecondition(Message(sound));
  std::vector<Dims> inputs;
  for (int t : model_.plan.inputs) {
    inputs.push_back(t < 0 ? Dims() : model_.plan.tensors[static_cast<size_t>(t)].dims);
  }
  absl::Status bound = SymbolUnits(model_.plan, inputs, {{}, family_.names}).status();
  if (!bound.ok()) return FailedPrecondition(Message(bound));
  return std::move(named_);
}

absl::Status FamilyMaker::Refusal(const absl::Status& why) const {
  // Without lines of generated text.
  std::string_view told = Message(why);
  told = told.substr(0, std::min(told.find(": \""), told.find(" in \"")));
  const std::string message(told);
  constexpr std::string_view kOptions = "options.dim_ranges";
  std::vector<int> blamed = blamed_;
  // If no group is to blame, name the nodes of all groups.
  for (const PlanGroup& group : model_.plan.groups) {
    if (blamed_.empty()) blamed.insert(blamed.end(), group.nodes.begin(), group.nodes.end());
  }
  std::vector<std::string> nodes;
  for (int node : blamed) {
    const auto n = static_cast<size_t>(node);
    if (n < family_.node_names.size()) nodes.push_back(family_.node_names[n]);
  }
  constexpr size_t kMostNodes = 3;
  const size_t more = nodes.size() - std::min(nodes.size(), kMostNodes);
  nodes.resize(nodes.size() - more);
  std::string where = StrCat("node ", StrJoin(nodes, ", ", QuoteShort));
  if (more > 0) where += StrCat(" and ", more, " more");
  return FailedPrecondition(nodes.empty() ? std::string(kOptions) : where,
                            ": no one kernel is right for all values of dim ",
                            StrJoin(family_.names, ", "), " in ", ShownRanges(family_), " (",
                            message, "); ", WayOut(family_.names));
}

std::optional<double> FamilyMaker::TimeAt(const Units& units) const {
  std::vector<double> kernel_us;
  for (size_t k = 0; k < texts_.size(); ++k) {
    if (!texts_[k].has_value()) {
      kernel_us.push_back(EstimateKernel(model_.kernels[k].schedule, device_).time_us);
      continue;
    }
    absl::StatusOr<std::string> text = texts_[k]->At(units);
    if (!text.ok()) return std::nullopt;
    absl::StatusOr<Schedule> schedule = ParseSchedule(*text);
    if (!schedule.ok()) return std::nullopt;
    kernel_us.push_back(EstimateKernel(*schedule, device_).time_us);
  }
  Plan at = {.launches = model_.plan.launches, .loops = model_.plan.loops};
  for (PlanLoop& loop : at.loops) loop.most = MostPassesAt(loop, units);
  const std::vector<int64_t> runs = CountedRuns(at);
  double sum = 0;
  for (size_t l = 0; l < runs.size(); ++l) {
    sum += static_cast<double>(runs[l]) * kernel_us[static_cast<size_t>(at.launches[l].kernel)];
  }
  return sum;
}

absl::Status FamilyMaker::AtMember(const FamilyMember& member, const absl::Status& why,
                                   bool form) const {
  std::vector<std::string> values;
  for (size_t s = 0; s < member.units.size(); ++s) {
    values.push_back(StrCat(family_.names[s], "=", member.units[s] * symbols_[s].multiple));
  }
  const std::string shown = StrCat("values like ", StrJoin(values, ", "));
  if (!form) return Annotate(why, shown);
  return FailedPrecondition(shown,
                            " take kernels of another form than the largest ones do, as where "
                            "windows divide a dim evenly at some values only; multiples may be "
                            "of one form, as in NAME=MIN..MAX/2");
}

absl::Status FamilyMaker::CheckAlike(const Plan& plan) {
  const Plan& most = model_.plan;
  for (size_t l = 0; l < most.launches.size(); ++l) {
    const PlanLaunch& launch = most.launches[l];
    const bool same = l < plan.launches.size() && plan.launches[l].group == launch.group &&
                      plan.launches[l].tensors == launch.tensors;
    if (!same) Blame(launch.group);
  }
  auto same_launches = [](const auto& a, const auto& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
      return x.tensors == y.tensors && x.group == y.group;
    });
  };
  if (!same_launches(most.launches, plan.launches) || !same_launches(most.prepare, plan.prepare) ||
      most.tensors.size() != plan.tensors.size()) {
    return FailedPrecondition("launches differ where symbols have other values");
  }
  auto same_loop = [](PlanLoop a, const PlanLoop& b) {
    a.most = b.most;
    return a == b;
  };
  if (!std::equal(most.loops.begin(), most.loops.end(), plan.loops.begin(), plan.loops.end(),
                  same_loop)) {
    return FailedPrecondition("loops differ where symbols have other values");
  }
  for (size_t t = 0; t < plan.tensors.size(); ++t) {
    const PlanTensor& a = most.tensors[t];
    const PlanTensor& b = plan.tensors[t];
    if (a.space == b.space && a.index == b.index && a.dtype == b.dtype &&
        a.dims.size() == b.dims.size()) {
      continue;
    }
    return FailedPrecondition("tensor ", t, " lies elsewhere where symbols have other values");
  }
  return absl::OkStatus();
}

absl::Status FamilyMaker::CheckConstants(const Plan& plan) const {
  const Plan& most = model_.plan;
  for (size_t c = 0; c < plan.constants.size(); ++c) {
    if (plan.constants[c]->byte_view() == most.constants[c]->byte_view()) continue;
    return FailedPrecondition("constant ", c, ", ", DTypeName(plan.constants[c]->dtype()),
                              DimsToString(most.constants[c]->dims()),
                              ", depends on the values of symbols");
  }
  return absl::OkStatus();
}

absl::StatusOr<SizeExpr> FamilyMaker::Fit(const std::vector<int64_t>& values) {
  auto [it, fresh] = fits_.try_emplace(values);
  if (fresh) it->second = FitSize(points_, values);
  if (it->second.has_value()) return *it->second;
  return FailedPrecondition("no polynomial of the symbols is ", StrJoin(values, ", "));
}

absl::Status FamilyMaker::SizeTensor(size_t t) {
  PlanTensor& most = model_.plan.tensors[t];
  std::vector<SizeExpr> sizes;
  bool varies = false;
  for (Dims PlanTensor::*list : {&PlanTensor::dims, &PlanTensor::strides}) {
    for (size_t d = 0; d < most.dims.size(); ++d) {
      std::vector<int64_t> values;
      for (const PlannedModel& m : members_) values.push_back((m.plan.tensors[t].*list)[d]);
      ASSIGN_OR_RETURN(SizeExpr size, Fit(values));
      const std::optional<int64_t> at_most = size.Evaluate(most_);
      if (at_most != (most.*list)[d]) {
        return FailedPrecondition("size ", size.ToString(family_.names), " is ", (most.*list)[d],
                                  " for the largest values");
      }
      varies = varies || !size.is_static();
      sizes.push_back(std::move(size));
    }
  }
  std::vector<int64_t> begins;
  for (const PlannedModel& m : members_) {
    begins.push_back(m.plan.tensors[t].offset / DTypeBytes(most.dtype));
  }
  if (most.space == Space::kOutput &&
      !std::all_of(begins.begin(), begins.end(), [&](int64_t b) { return b == begins[0]; })) {
    ASSIGN_OR_RETURN(SizeExpr begin, Fit(begins));
    varies = true;
    sizes.push_back(std::move(begin));
  }
  if (!varies) return absl::OkStatus();
  if (most.space != Space::kInput && most.space != Space::kOutput && most.space != Space::kArena &&
      most.space != Space::kPass) {
    return FailedPrecondition("the size of what is prepared once depends on the symbols");
  }
  most.sizes = std::move(sizes);
  return absl::OkStatus();
}

absl::Status FamilyMaker::SizeTensors() {
  const Plan& plan = model_.plan;
  std::vector<bool> named(plan.tensors.size(), false);
  auto name = [&](const std::vector<int>& tensors) {
    for (int t : tensors) {
      if (t >= 0) named[static_cast<size_t>(t)] = true;
    }
  };
  for (const auto& list : {TensorsOfRuns(plan), plan.inputs, plan.outputs, plan.weights}) {
    name(list);
  }
  for (const PlanLaunch& launch : plan.prepare) name(launch.tensors);
  for (size_t t = 0; t < plan.tensors.size(); ++t) {
    if (!named[t]) continue;
    absl::Status sized = SizeTensor(t);
    if (sized.ok()) continue;
    for (const PlanLaunch& launch : plan.launches) {
      if (Contains(launch.tensors, static_cast<int>(t))) Blame(launch.group);
    }
    return Annotate(sized, StrCat("tensor ", t, " ", DTypeName(model_.plan.tensors[t].dtype),
                                  DimsToString(model_.plan.tensors[t].dims)));
  }
  return absl::OkStatus();
}

void FamilyMaker::AddUnreadInputs() {
  Plan& plan = model_.plan;
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    if (plan.inputs[i] >= 0) continue;
    if (std::optional<PlanTensor> tensor = UnreadInput(i)) {
      plan.inputs[i] = static_cast<int>(plan.tensors.size());
      plan.tensors.push_back(*std::move(tensor));
    }
  }
}

std::optional<PlanTensor> FamilyMaker::UnreadInput(size_t input) {
  PlanTensor tensor{.space = Space::kInput, .index = static_cast<int>(input)};
  std::vector<Dims> dims;
  for (const FamilyMember& member : family_.members) {
    const std::vector<TensorId>& inputs = member.graph.inputs();
    if (input >= inputs.size()) return std::nullopt;
    const TensorType& type = member.graph.tensor(inputs[input]).type;
    tensor.dtype = type.dtype;
    dims.push_back(type.shape.ToDims());
    if (dims.back().size() != dims.front().size()) return std::nullopt;
  }
  std::vector<Dims> strides;
  for (const Dims& of : dims) strides.push_back(RowMajorStrides(of));
  for (const auto& [lists, most] :
       {std::pair(&dims, &tensor.dims), std::pair(&strides, &tensor.strides)}) {
    for (size_t d = 0; d < dims.front().size(); ++d) {
      std::vector<int64_t> values;
      for (const Dims& list : *lists) values.push_back(list[d]);
      absl::StatusOr<SizeExpr> size = Fit(values);
      const std::optional<int64_t> at_most = size.ok() ? size->Evaluate(most_) : std::nullopt;
      if (!at_most.has_value()) return std::nullopt;
      most->push_back(*at_most);
      tensor.sizes.push_back(*std::move(size));
    }
  }
  tensor.bytes = NumElements(tensor.dims) * DTypeBytes(tensor.dtype);
  return tensor;
}

absl::Status FamilyMaker::SizeLoops() {
  for (size_t l = 0; l < model_.plan.loops.size(); ++l) {
    PlanLoop& loop = model_.plan.loops[l];
    std::vector<int64_t> passes;
    for (const PlannedModel& m : members_) passes.push_back(m.plan.loops[l].most);
    ASSIGN_OR_RETURN(SizeExpr most, Fit(passes));
    const SizeExpr room = SizeExpr(loop.most) - most;
    if (most.Evaluate(most_) != loop.most || room.LowerBound(least_, most_).value_or(-1) < 0) {
      Blame(model_.plan.launches[static_cast<size_t>(loop.first)].group);
      return FailedPrecondition("a loop makes ", most.ToString(family_.names), " passes, but ",
                                loop.most, " for the largest values");
    }
    if (!most.is_static()) loop.open_most = std::move(most);
  }
  return absl::OkStatus();
}

absl::Status FamilyMaker::CheckInPlace() {
  for (const PlanLaunch& launch : model_.plan.launches) {
    const Schedule& schedule = ScheduleOf(launch);
    for (size_t a = 0; a < launch.tensors.size(); ++a) {
      for (size_t b = 0; b < a; ++b) {
        const PlanTensor& x = model_.plan.tensors[static_cast<size_t>(launch.tensors[a])];
        const PlanTensor& y = model_.plan.tensors[static_cast<size_t>(launch.tensors[b])];
        const bool written = schedule.buffer(static_cast<BufferId>(a)).kind == ParamKind::kOutput ||
                             schedule.buffer(static_cast<BufferId>(b)).kind == ParamKind::kOutput;
        if (!written || x.space != Space::kArena || y.space != Space::kArena) continue;
        const bool apart = x.offset + x.bytes <= y.offset || y.offset + y.bytes <= x.offset;
        if (apart || (x.offset == y.offset && x.sizes == y.sizes)) continue;
        Blame(launch.group);
        return FailedPrecondition(
            "it writes in the place of a tensor that has other sizes where "
            "symbols have other values");
      }
    }
  }
  return absl::OkStatus();
}

void FamilyMaker::Blame(int group) {
  if (blamed_.empty()) blamed_ = model_.plan.groups[static_cast<size_t>(group)].nodes;
}

const Schedule& FamilyMaker::ScheduleOf(const PlanLaunch& launch) const {
  return model_.kernels[static_cast<size_t>(launch.kernel)].schedule;
}

absl::Status FamilyMaker::MakeKernels() {
  absl::StatusOr<const Backend*> backend = FindBackend(device_.backend);
  codegen_ = IdentifyCodegen(device_, toolchain_, options_);
  named_.codegen_version = codegen_.version;
  std::map<std::vector<int>, int> kernel_of;  // by kernel of the largest and of each member
  std::vector<PlannedKernel> kernels = std::move(model_.kernels);
  std::vector<PlanKernel> heads = std::move(model_.plan.kernels);
  model_.kernels.clear();
  model_.plan.kernels.clear();
  for (auto launches : {&Plan::prepare, &Plan::launches}) {
    for (size_t l = 0; l < (model_.plan.*launches).size(); ++l) {
      PlanLaunch& launch = (model_.plan.*launches)[l];
      std::vector<int> key = {launch.kernel};
      for (const PlannedModel& m : members_) key.push_back((m.plan.*launches)[l].kernel);
      auto [it, fresh] = kernel_of.try_emplace(key, static_cast<int>(kernel_of.size()));
      if (fresh) {
        const auto most = static_cast<size_t>(launch.kernel);
        model_.kernels.push_back(kernels[most]);
        model_.plan.kernels.push_back(heads[most]);
        absl::Status made = AddKernel(key, backend.ok() ? *backend : nullptr);
        if (!made.ok()) {
          Blame(launch.group);
          return made;
        }
      }
      if (launches == &Plan::prepare &&
          !model_.plan.kernels[static_cast<size_t>(it->second)].sizes.empty()) {
        Blame(launch.group);
        return FailedPrecondition("what is prepared once depends on the symbols");
      }
      launch.kernel = it->second;
      model_.plan.groups[static_cast<size_t>(launch.group)].kernel = it->second;
    }
  }
  return absl::OkStatus();
}

const PlannedKernel& FamilyMaker::KernelOf(size_t member, const std::vector<int>& key) const {
  return members_[member].kernels[static_cast<size_t>(key[member + 1])];
}

absl::Status FamilyMaker::AddKernel(const std::vector<int>& key, const Backend* backend) {
  PlannedKernel& most = model_.kernels.back();
  PlanKernel& planned = model_.plan.kernels.back();
  std::vector<std::string> texts;
  std::vector<std::string> references;
  for (size_t m = 0; m < members_.size(); ++m) {
    texts.push_back(KernelOf(m, key).text);
    references.push_back(ToString(KernelOf(m, key).reference));
  }
  ASSIGN_OR_RETURN(GeneralText schedules, GeneralText::Of(points_, texts));
  texts_.emplace_back();
  if (schedules.IsStatic()) return AddStatic(KernelOf(0, key), backend, &planned);
  texts_.back() = schedules;
  // Use the general text, not the lowered one: what holds for 512, a power of two, need not hold
  // for other sizes.
  ASSIGN_OR_RETURN(most.text, schedules.At(most_));
  ASSIGN_OR_RETURN(most.schedule, ParseSchedule(most.text));
  std::vector<bool> varies;
  RETURN_IF_ERROR(CheckExtents(most.schedule, key, &varies));
  CompileJob job;
  absl::Status refusal = absl::OkStatus();
  GeneralSource general;
  if (backend != nullptr) {
    std::vector<std::string> sources;
    for (size_t m = 0; m < members_.size() && refusal.ok(); ++m) {
      // Parsed as the largest one is: buffers are numbered as they appear.
      ASSIGN_OR_RETURN(Schedule schedule, ParseSchedule(texts[m]));
      absl::StatusOr<KernelSource> source = backend->EmitMember(
          schedule, most.schedule, varies, device_, kUnnamedSymbol, {.guard = codegen_.guard});
      refusal = source.status();
      if (!source.ok()) break;
      sources.push_back(std::move(source->text));
      planned.scratch_bytes = std::max(planned.scratch_bytes, source->scratch_bytes);
      planned.workspace_bytes = std::max(planned.workspace_bytes, source->workspace_bytes);
    }
    if (refusal.ok()) {
      ASSIGN_OR_RETURN(general, GeneraliseSource(points_, sources));
      RETURN_IF_ERROR(CheckNeeds(general));
    }
  }
  if (refusal.ok()) RETURN_IF_ERROR(AddMembers(schedules, references, general.sizes, &job));
  NameKernel(device_, codegen_, KeyTextOf(general, job), &job, &planned);
  job.source = WithSymbol(general.text, job.symbol);
  job.scratch_bytes = planned.scratch_bytes;
  job.workspace_bytes = planned.workspace_bytes;
  job.schedule = most.text;
  job.label = most.schedule.label;
  job.numerics = model_.plan.numerics;
  planned.sizes = std::move(general.sizes);
  named_.refusals.push_back(std::move(refusal));
  named_.jobs.push_back(std::move(job));
  return absl::OkStatus();
}

std::string FamilyMaker::KeyTextOf(const GeneralSource& general, const CompileJob& job) const {
  std::string text = "family of";
  for (const DimRange& range : symbols_) {
    text += StrCat(" ", range.least, "..", range.most, "/", range.multiple);
  }
  text += "\nsizes";
  for (const SizeExpr& size : general.sizes) text += StrCat(" [", size.ToString(), "]");
  text += "\nchecked";
  for (const CheckedMember& member : job.members) {
    text += StrCat(" ", Sha256({member.schedule, "\n", member.reference}).ToHex());
  }
  return StrCat(text, "\n", general.text);
}

absl::Status FamilyMaker::AddStatic(const PlannedKernel& kernel, const Backend* backend,
                                    PlanKernel* planned) {
  absl::Status refusal = absl::OkStatus();
  named_.jobs.push_back(
      EmitKernel(kernel, device_, codegen_, model_.plan.numerics, backend, planned, &refusal));
  named_.refusals.push_back(std::move(refusal));
  return absl::OkStatus();
}

absl::Status FamilyMaker::CheckExtents(const Schedule& most, const std::vector<int>& key,
                                       std::vector<bool>* varies) {
  for (size_t d = 0; d < most.dims.size(); ++d) {
    std::vector<int64_t> values;
    for (size_t m = 0; m < members_.size(); ++m) {
      values.push_back(KernelOf(m, key).schedule.dims[d].extent);
    }
    ASSIGN_OR_RETURN(SizeExpr extent, Fit(values));
    varies->push_back(!extent.is_static());
    const SizeExpr room = SizeExpr(most.dims[d].extent) - extent;
    if (extent.LowerBound(least_, most_).value_or(-1) >= 0 &&
        room.LowerBound(least_, most_).value_or(-1) >= 0) {
      continue;
    }
    return FailedPrecondition("dim ", most.dims[d].name, " of ", extent.ToString(family_.names),
                              " elements may be longer than for the largest values, ",
                              most.dims[d].extent, ", or shorter than 0");
  }
  return absl::OkStatus();
}

absl::Status FamilyMaker::CheckNeeds(const GeneralSource& general) const {
  for (const auto& [a, b] : general.needs) {
    if ((b - a).LowerBound(least_, most_).value_or(-1) >= 0) continue;
    return FailedPrecondition("it is written for ", a.ToString(family_.names),
                              " <= ", b.ToString(family_.names), ", which not all values keep");
  }
  return absl::OkStatus();
}

absl::Status FamilyMaker::AddMembers(const GeneralText& schedules,
                                     const std::vector<std::string>& references,
                                     const std::vector<SizeExpr>& sizes, CompileJob* job) const {
  ASSIGN_OR_RETURN(GeneralText reference, GeneralText::Of(points_, references));
  std::set<Units> cases;
  Units small;
  Units middle;
  for (size_t s = 0; s < least_.size(); ++s) {
    small.push_back(std::min(most_[s], least_[s] + 2));
    middle.push_back(MiddleOf(least_[s], most_[s]));
  }
  cases.insert(small);
  cases.insert(middle);
  for (Units& corner : Corners(symbols_)) cases.insert(std::move(corner));
  for (const Units& units : cases) {
    CheckedMember member;
    ASSIGN_OR_RETURN(member.schedule, schedules.At(units));
    ASSIGN_OR_RETURN(member.reference, reference.At(units));
    for (const SizeExpr& size : sizes) {
      std::optional<int64_t> value = size.Evaluate(units);
      if (!value.has_value()) return FailedPrecondition("sizes beyond 2^62");
      member.sizes.push_back(*value);
    }
    job->members.push_back(std::move(member));
  }
  return absl::OkStatus();
}

}  // namespace fusion
