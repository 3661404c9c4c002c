#include "core/import/bodies/followed_passes.h"

#include <algorithm>

#include "core/graph/evaluate/evaluate.h"

namespace fusion {
namespace {

using Step = Decomposition::Step;

// What it costs to look at a step or a carried value at all, in points.
constexpr double kPointsOfStep = 16;

class Follower {
 public:
  Follower(const Repeat& body, const std::vector<const HostTensor*>& given, size_t carried,
           double* points)
      : body_(body),
        carried_(carried),
        values_(given.size()),
        needed_(given.size(), false),
        points_(*points) {
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i] != nullptr) values_[i] = *given[i];
    }
    for (const Step& step : body_.steps) {
      first_.push_back(values_.size());
      values_.resize(values_.size() + static_cast<size_t>(step.outputs));
    }
    needed_.resize(values_.size(), false);
  }

  std::optional<int64_t> Run(int64_t most) {
    if (!FindNeeded()) return std::nullopt;
    for (int64_t pass = 0; pass < most; ++pass) {
      points_ -= kPointsOfStep * static_cast<double>(1 + carried_);
      if (points_ < 0) return std::nullopt;
      HostTensor number(DType::kI64, {});
      number.SetInt(0, pass);
      values_[0] = std::move(number);
      for (size_t s : steps_) {
        if (!Take(body_.steps[s], first_[s])) return std::nullopt;
      }
      const HostTensor& goes_on = Output(0);
      if (goes_on.elements() != 1) return std::nullopt;
      if (goes_on.GetInt(0) == 0) return pass + 1;
      std::vector<std::optional<HostTensor>> next(1 + carried_);
      for (size_t i = 1; i <= carried_; ++i) {
        if (needed_[i]) next[i] = Output(i);
      }
      std::move(next.begin(), next.end(), values_.begin());
    }
    return most;
  }

 private:
  const HostTensor& Output(size_t i) const {
    return *values_[static_cast<size_t>(body_.outputs[i].value)];
  }

  // What the condition looks at, from pass to pass; false if that begins with something unknown.
  bool FindNeeded() {
    std::vector<size_t> producer(values_.size());
    for (size_t s = 0; s < body_.steps.size(); ++s) {
      const auto outputs = static_cast<size_t>(body_.steps[s].outputs);
      for (size_t i = 0; i < outputs; ++i) producer[first_[s] + i] = s;
    }
    std::vector<Decomposition::Value> open = {body_.outputs[0].value};
    while (!open.empty()) {
      const auto value = static_cast<size_t>(open.back());
      open.pop_back();
      if (needed_[value]) continue;
      needed_[value] = true;
      if (value >= body_.inputs.size()) {
        for (Decomposition::Value in : body_.steps[producer[value]].inputs) {
          if (in >= 0) open.push_back(in);
        }
      } else if (value > 0) {
        if (!values_[value]) return false;
        if (value <= carried_) open.push_back(body_.outputs[value].value);
      }
    }
    for (size_t s = 0; s < body_.steps.size(); ++s) {
      const auto begin = needed_.begin() + static_cast<int64_t>(first_[s]);
      const auto end = begin + body_.steps[s].outputs;
      if (std::find(begin, end, true) != end) steps_.push_back(s);
    }
    return true;
  }

  // The values of a step; false if nobody can say or they cost too much.
  bool Take(const Step& step, size_t first) {
    points_ -= kPointsOfStep;
    if (points_ < 0) return false;
    if (step.constant) {
      values_[first] = step.constant;
      return true;
    }
    std::vector<std::optional<TensorType>> types;
    std::vector<const HostTensor*> inputs;
    for (Decomposition::Value in : step.inputs) {
      inputs.push_back(in < 0 ? nullptr : &*values_[static_cast<size_t>(in)]);
      types.emplace_back();
      if (in >= 0) types.back() = {inputs.back()->dtype(), Shape(inputs.back()->dims())};
    }
    auto out = EvaluateCall(OpCall(*step.def, std::move(types), step.attrs, step.outputs), inputs,
                            &points_);
    if (!out.ok() || out->size() != static_cast<size_t>(step.outputs)) return false;
    std::move(out->begin(), out->end(), values_.begin() + static_cast<int64_t>(first));
    return true;
  }

  const Repeat& body_;
  size_t carried_;
  std::vector<std::optional<HostTensor>> values_;  // of the pass that is made
  std::vector<bool> needed_;
  std::vector<size_t> first_;  // value of each step
  std::vector<size_t> steps_;  // that the condition looks at
  double& points_;
};

}  // namespace

std::optional<int64_t> FollowedPasses(const Repeat& body,
                                      const std::vector<const HostTensor*>& given, size_t carried,
                                      int64_t most, double* points) {
  return Follower(body, given, carried, points).Run(most);
}

}  // namespace fusion
