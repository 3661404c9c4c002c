// fusion-modelgen: writes exporter-style ONNX models with random weights, and data to run them on.
//
//   fusion-modelgen --list
//   fusion-modelgen bert_layer --out bert.onnx --seq 128 --seed 7 --data bert.data
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>

#include "core/onnx/model_io.h"
#include "core/onnx/test_data.h"
#include "tests/models/models.h"

namespace fusion {
namespace {

constexpr int kUsage = 2;  // as fusionctl

struct Command {
  std::string model;
  std::string out;
  std::string data;
  bool list = false;
  bool dynamic = false;
  bool int8 = false;
  bool qdq = false;
  uint64_t seed = 1;
  std::map<std::string, int64_t> values;
};

// Where a parameter of this name is kept.
int64_t* Field(ModelParams* p, const std::string& name) {
  const std::map<std::string, int64_t*> fields = {
      {"batch", &p->batch},       {"seq", &p->seq},       {"past", &p->past},
      {"layers", &p->layers},     {"hidden", &p->hidden}, {"heads", &p->heads},
      {"kv_heads", &p->kv_heads}, {"ff", &p->ff},         {"rows", &p->rows},
      {"cols", &p->cols},         {"depth", &p->depth},   {"source", &p->source},
      {"channels", &p->channels}, {"image", &p->image}};
  return fields.at(name);
}

void PrintList() {
  for (const ModelSpec& spec : AllModels()) {
    ModelParams defaults = spec.defaults;
    std::string values;
    for (const std::string& name : spec.uses) {
      StrAppend(&values, name == "dyn" || name == "int8" || name == "qdq"
                             ? StrCat(" [--", name, "]")
                             : StrCat(" --", name, " ", *Field(&defaults, name)));
    }
    std::printf("%-20s %s\n%-20s  %s\n", spec.name.c_str(), spec.what.c_str(), "", values.c_str());
  }
}

bool Uses(const ModelSpec& spec, const std::string& name) {
  for (const std::string& used : spec.uses) {
    if (used == name) return true;
  }
  return false;
}

absl::StatusOr<ModelParams> ParamsFor(const ModelSpec& spec, const Command& command) {
  ModelParams params = spec.defaults;
  params.seed = command.seed;
  params.dynamic = command.dynamic;
  params.int8 = command.int8;
  params.qdq = command.qdq;
  auto unused = [&](const std::string& name) {
    return InvalidArgument("model ", spec.name, " has no parameter --", name, "; it has ",
                           StrJoin(spec.uses, ", "));
  };
  if (command.dynamic && !Uses(spec, "dyn")) return unused("dyn");
  if (command.int8 && !Uses(spec, "int8")) return unused("int8");
  if (command.qdq && !Uses(spec, "qdq")) return unused("qdq");
  for (const auto& [name, value] : command.values) {
    if (!Uses(spec, name)) return unused(name);
    *Field(&params, name) = value;
  }
  // Grouped queries are asked for by name only.
  if (!Uses(spec, "kv_heads")) params.kv_heads = params.heads;
  return params;
}

absl::Status Generate(const Command& command) {
  const ModelSpec* spec = FindModel(command.model);
  if (spec == nullptr) return GenerateModel(command.model).status();
  ASSIGN_OR_RETURN(ModelParams params, ParamsFor(*spec, command));
  ASSIGN_OR_RETURN(GeneratedModel generated, GenerateModel(*spec, params));
  RETURN_IF_ERROR(SaveModel(generated.model, command.out));
  std::printf("%s: %s, %d nodes, %s\n", command.out.c_str(), command.model.c_str(),
              generated.model.graph().node_size(),
              HumanBytes(static_cast<int64_t>(generated.model.ByteSizeLong())).c_str());
  if (command.data.empty()) return absl::OkStatus();
  TestDataSet data;
  std::vector<HostTensor> values = GenerateInputs(generated.inputs, command.seed);
  for (size_t i = 0; i < values.size(); ++i) {
    data.inputs.push_back({generated.inputs[i].name, std::move(values[i])});
  }
  return SaveTestDataSet(command.data, data);
}

int Main(int argc, char** argv) {
  Command command;
  CLI::App app{"Writes exporter-style ONNX models with random weights, and data to run them on."};
  app.add_option("model", command.model, "one of --list");
  app.add_flag("--list", command.list, "list the models and their parameters");
  app.add_option("--out", command.out, "file to write");
  app.add_option("--data", command.data, "directory for input_0.pb, input_1.pb, ...");
  app.add_option("--seed", command.seed, "changes weights and data, never the structure");
  app.add_flag("--dyn", command.dynamic, "symbolic dims, shapes computed in the graph");
  app.add_flag("--int8", command.int8, "matrices of 8 bits, dequantised in the graph");
  app.add_flag("--qdq", command.qdq, "the same, and what they are multiplied with is quantised");
  for (const char* name : {"batch", "seq", "past", "source", "layers", "hidden", "heads",
                           "kv_heads", "ff", "rows", "cols", "depth", "channels", "image"}) {
    app.add_option_function<int64_t>(
        StrCat("--", name), [&command, name](int64_t v) { command.values[name] = v; },
        "parameter of the model");
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  if (command.list) {
    PrintList();
    return 0;
  }
  if (command.model.empty() || command.out.empty()) {
    std::fprintf(stderr, "fusion-modelgen: a model and --out are required; see --list\n");
    return kUsage;
  }
  absl::Status status = Generate(command);
  if (status.ok()) return 0;
  std::fprintf(stderr, "fusion-modelgen: %s\n", std::string(Message(status)).c_str());
  return kUsage;
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) { return fusion::Main(argc, argv); }
