#include "client/fusionctl/measure/output_summary.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/args/exit_code.h"
#include "client/fusionctl/measure/statistics.h"
#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/print.h"
#include "core/onnx/test_data.h"

namespace fusion {
namespace {

// Of each output that people and --json see.
constexpr int64_t kShownElements = 6;

/// One output in short.
struct OutputSummary {
  double least = 0;  // of finite elements
  double most = 0;
  double mean = 0;
  int64_t finite = 0;
};

OutputSummary Summarise(const HostTensor& tensor) {
  OutputSummary out;
  double sum = 0;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    double value = tensor.GetDouble(i);
    if (!std::isfinite(value)) continue;
    out.least = out.finite == 0 ? value : std::min(out.least, value);
    out.most = out.finite == 0 ? value : std::max(out.most, value);
    sum += value;
    ++out.finite;
  }
  if (out.finite > 0) out.mean = sum / static_cast<double>(out.finite);
  return out;
}

std::vector<double> FirstElements(const HostTensor& tensor) {
  std::vector<double> out;
  for (int64_t i = 0; i < std::min(tensor.elements(), kShownElements); ++i) {
    out.push_back(tensor.GetDouble(i));
  }
  return out;
}

std::string TypeText(const HostTensor& tensor) {
  return StrCat(DTypeName(tensor.dtype()), DimsToString(tensor.dims()));
}

}  // namespace

Json DifferenceJson(const Difference& difference) {
  auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json("inf"); };
  return {{"max_abs", number(difference.max_abs)},
          {"max_rel", number(difference.max_rel)},
          {"outside", difference.outside}};
}

std::string OutputsText(const std::vector<std::string>& names,
                        const std::vector<HostTensor>& tensors) {
  Table table({{"output", Table::kCut},
               {"type"},
               {"min", Table::kRight},
               {"mean", Table::kRight},
               {"max", Table::kRight},
               {"not finite", Table::kRight},
               {"first elements", Table::kCut}});
  for (size_t i = 0; i < tensors.size(); ++i) {
    const HostTensor& tensor = tensors[i];
    OutputSummary summary = Summarise(tensor);
    auto number = [&](double value) { return summary.finite == 0 ? "-" : ShortNumber(value); };
    std::string first = StrJoin(FirstElements(tensor), " ", ShortNumber);
    if (tensor.elements() > kShownElements) first += " ...";
    table.Add({names[i], TypeText(tensor), number(summary.least), number(summary.mean),
               number(summary.most), StrCat(tensor.elements() - summary.finite), first});
  }
  return table.ToString();
}

Json OutputsJson(const std::vector<std::string>& names, const std::vector<HostTensor>& tensors) {
  Json outputs = Json::array();
  for (size_t i = 0; i < tensors.size(); ++i) {
    OutputSummary summary = Summarise(tensors[i]);
    outputs.push_back({{"name", names[i]},
                       {"type", TypeText(tensors[i])},
                       {"elements", tensors[i].elements()},
                       {"finite", summary.finite},
                       {"min", summary.least},
                       {"max", summary.most},
                       {"mean", summary.mean},
                       {"first", FirstElements(tensors[i])}});
  }
  return outputs;
}

std::string SourceText(const RunInputs& inputs) {
  return inputs.data.given ? StrCat("the inputs in ", inputs.data.name) : inputs.data.name;
}

std::string LatencyText(const std::vector<double>& samples_us) {
  MedianInterval m = MedianOf(samples_us);
  std::string out = HumanMicroseconds(m.median);
  if (samples_us.size() > 1) {
    out += StrCat(", median of ", samples_us.size(), ", 95 % interval ", HumanMicroseconds(m.low),
                  " .. ", HumanMicroseconds(m.high));
  }
  return out;
}

absl::Status SaveOutputs(const Arguments& arguments, const std::vector<std::string>& names,
                         const std::vector<HostTensor>& tensors) {
  TestDataSet set;
  for (size_t i = 0; i < tensors.size(); ++i) set.outputs.push_back({names[i], tensors[i]});
  absl::Status saved = SaveTestDataSet(arguments.out, set, arguments.npy ? ".npy" : ".pb");
  return BadInput(Annotate(saved, StrCat("--out ", Quote(arguments.out))));
}

}  // namespace fusion
