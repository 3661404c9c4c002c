#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/commands/commands.h"
#include "client/fusionctl/input/model_file.h"
#include "client/fusionctl/measure/contender.h"
#include "client/fusionctl/measure/output_summary.h"
#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/service/session.h"

namespace fusion {
namespace {

/// One output of one data set, compared.
struct OutputResult {
  std::string data;       // directory, or empty
  std::string reference;  // what it was compared with: "evaluator" or "data"
  std::string name;
  std::string type;
  int64_t elements = 0;
  Difference difference;
};

struct Verification {
  FusionReply reply;  // of the last data set
  std::vector<OutputResult> outputs;
  bool pass = true;
};

/// Runs one data set and adds its outputs.
absl::Status VerifyOne(const Arguments& arguments, const ModelFile& model, const Client& client,
                       std::optional<RunData> data, Progress* progress, Verification* out) {
  PlanOptions options = arguments.options;
  if (data) options = BindToData(options, data->inputs, model);
  bool evaluated = !data || data->outputs.empty();
  std::optional<Graph> graph;
  if (evaluated) {
    ASSIGN_OR_RETURN(graph, ImportModel(model, options));
  }
  if (!data) {
    data.emplace();
    ASSIGN_OR_RETURN(data->inputs, RandomData(*graph, model, arguments.seed));
  }
  ASSIGN_OR_RETURN(Contender fused, Contender::Load(arguments, model, client, options, progress));
  out->reply = fused.reply();
  progress->Show("running");
  std::vector<const HostTensor*> inputs;
  for (const HostTensor& tensor : data->inputs) inputs.push_back(&tensor);
  RETURN_IF_ERROR(fused.Run(inputs, /*counts=*/false));
  const std::vector<HostTensor>& got = fused.outputs();
  if (evaluated) {
    progress->Show("evaluating");
    ASSIGN_OR_RETURN(data->outputs,
                     EvaluateModel(*graph, model, data->inputs, fused.plan().threads));
  }
  if (got.size() != data->outputs.size()) {
    return InvalidArgument(data->name, " has ", data->outputs.size(), " outputs, the model ",
                           got.size());
  }
  for (size_t i = 0; i < got.size(); ++i) {
    const HostTensor& wanted = data->outputs[i];
    OutputResult result{data->name,
                        evaluated ? "evaluator" : "data",
                        fused.model().outputs()[i],
                        StrCat(DTypeName(got[i].dtype()), DimsToString(got[i].dims())),
                        got[i].elements(),
                        Compare(got[i], wanted, ToleranceFor(arguments, wanted.dtype()))};
    if (result.difference.other_type) {
      StrAppend(&result.type,
                StrCat(", expected ", DTypeName(wanted.dtype()), DimsToString(wanted.dims())));
    }
    out->pass = out->pass && result.difference.ok();
    out->outputs.push_back(std::move(result));
  }
  return absl::OkStatus();
}

// "mixed" if only some data sets have outputs.
std::string_view Reference(const Verification& v) {
  if (v.outputs.empty()) return "evaluator";
  std::string_view first = v.outputs.front().reference;
  bool same = std::all_of(v.outputs.begin(), v.outputs.end(),
                          [&](const OutputResult& o) { return o.reference == first; });
  return same ? first : "mixed";
}

// A text that names the reference of the comparison.
std::string ReferenceText(const Arguments& arguments, const Verification& v) {
  if (Reference(v) == "data") return StrCat("the outputs in ", arguments.data);
  if (arguments.data.empty()) return "the reference evaluator";
  std::string on_data = StrCat("the reference evaluator on the inputs in ", arguments.data);
  return Reference(v) == "mixed"
             ? StrCat("the outputs in ", arguments.data, ", and ", on_data, " that have none")
             : StrCat(on_data, ", which has no expected outputs");
}

Json VerificationJson(const Verification& v, const ModelFile& model) {
  Json outputs = Json::array();
  for (const OutputResult& o : v.outputs) {
    Json entry = {
        {"name", o.name}, {"reference", o.reference}, {"elements", o.elements}, {"type", o.type}};
    entry.update(DifferenceJson(o.difference));
    if (o.difference.other_type) entry["outside"] = o.elements;
    if (o.difference.first_outside >= 0) entry["first_outside"] = o.difference.first_outside;
    if (!o.data.empty()) entry["data"] = o.data;
    outputs.push_back(std::move(entry));
  }
  const Plan& plan = v.reply.plan;
  return {{"outputs", outputs},
          {"nodes", plan.nodes},
          {"groups", RunGroups(plan)},
          {"kernels", plan.totals.kernels},
          {"fallbacks", plan.fallbacks.size()},
          {"pass", v.pass},
          {"plan_key", v.reply.plan_key.ToHex()},
          {"reference", Reference(v)},
          {"random_weights", model.made_up_weights()},
          {"target", plan.target},
          {"isa", plan.isa},
          {"threads", plan.threads}};
}

std::string VerificationText(const Arguments& arguments, const Verification& v,
                             const ModelFile& model) {
  const Plan& plan = v.reply.plan;
  Table table({{"output", Table::kCut},
               {"type"},
               {"max|a-b|", Table::kRight},
               {"max|a-b|/max|b|", Table::kRight, /*spare=*/1},
               {"outside", Table::kRight},
               {""}});
  bool several = !v.outputs.empty() && v.outputs.front().data != v.outputs.back().data;
  for (const OutputResult& o : v.outputs) {
    const Difference& d = o.difference;
    std::string note = several ? o.data : "";
    if (d.first_outside >= 0)
      note += StrCat(note.empty() ? "" : "  ", "first at ", d.first_outside);
    table.Add({o.name, o.type, d.other_type ? "-" : ShortNumber(d.max_abs),
               d.other_type ? "-" : ShortNumber(d.max_rel),
               d.other_type ? "type differs" : StrCat(d.outside, " of ", o.elements), note});
  }
  Tolerance tolerance = ToleranceFor(arguments, DType::kF32);
  return StrCat(
      Bold(arguments.model), ": ", Count(plan.nodes, "node"), " in ",
      Count(RunGroups(plan), "group"), ", ", Count(plan.totals.kernels, "kernel"), ", ",
      Count(static_cast<int64_t>(plan.fallbacks.size()), "fallback"), ", on ", TargetText(plan),
      "\n\n", table.ToString(), "\n", v.pass ? Good("PASS") : Bad("FAIL"), " against ",
      ReferenceText(arguments, v), ", tolerance ", ShortNumber(tolerance.atol), " + ",
      ShortNumber(tolerance.rtol), " max|b|",
      model.made_up_weights() ? "; the model has no weights, random ones were used" : "", "\n");
}

// The data sets to verify; nullopt: random inputs.
absl::StatusOr<std::vector<std::optional<RunData>>> LoadSets(const Arguments& arguments,
                                                             const ModelFile& model) {
  std::vector<std::optional<RunData>> sets;
  if (arguments.data.empty() && arguments.inputs.empty()) {
    sets.emplace_back(std::nullopt);
  } else if (arguments.data.empty()) {
    ASSIGN_OR_RETURN(RunInputs inputs, LoadRunInputs(arguments, model));
    sets.emplace_back(std::move(inputs.data));
  } else {
    ASSIGN_OR_RETURN(std::vector<RunData> loaded, LoadData(arguments.data, model));
    ASSIGN_OR_RETURN(auto given, LoadInputs(arguments.inputs, model));
    for (RunData& data : loaded) {
      for (size_t i = 0; i < given.size(); ++i) {
        if (given[i]) data.inputs[i] = *given[i];
      }
      if (!arguments.inputs.empty()) data.outputs.clear();  // they are of other inputs
      sets.emplace_back(std::move(data));
    }
  }
  return sets;
}

}  // namespace

absl::StatusOr<ExitCode> RunVerify(const Arguments& arguments, Progress* progress) {
  ASSIGN_OR_RETURN(std::unique_ptr<ModelFile> model, ModelFile::Load(arguments.model, arguments));
  ASSIGN_OR_RETURN(std::vector<std::optional<RunData>> sets, LoadSets(arguments, *model));
  return WithService(arguments, progress, [&](const Client& client) -> absl::StatusOr<ExitCode> {
    Verification result;
    for (auto& data : sets) {
      RETURN_IF_ERROR(VerifyOne(arguments, *model, client, std::move(data), progress, &result));
    }
    progress->Clear();
    if (arguments.json) {
      PrintJson(VerificationJson(result, *model));
    } else {
      Print(VerificationText(arguments, result, *model));
    }
    return result.pass ? kExitOk : kExitMismatch;
  });
}

}  // namespace fusion
