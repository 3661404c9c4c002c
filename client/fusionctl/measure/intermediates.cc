#include "client/fusionctl/measure/intermediates.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/args/exit_code.h"
#include "client/fusionctl/input/model_file.h"
#include "client/fusionctl/measure/output_summary.h"
#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "core/base/files/file.h"
#include "core/onnx/test_data.h"

namespace fusion {
namespace {

// Maximum bytes of the tensors that one plan keeps. The evaluator needs 8 bytes per element.
constexpr int64_t kBatchBytes = int64_t{256} << 20;
// Maximum size of index.json, which has about 200 bytes per tensor.
constexpr int64_t kMaxIndexBytes = int64_t{64} << 20;
constexpr std::string_view kIndexName = "index.json";

std::string TypeText(DType dtype, const Dims& dims) {
  return StrCat(DTypeName(dtype), DimsToString(dims));
}

// Tensors by name, as --dump-tensors wrote them.
class ReferenceTensors {
 public:
  static absl::StatusOr<ReferenceTensors> Open(const std::string& directory) {
    ReferenceTensors out;
    out.directory_ = directory;
    const std::string path = StrCat(directory, "/", kIndexName);
    absl::StatusOr<std::string> text = ReadFile(path, kMaxIndexBytes);
    if (!text.ok()) return BadInput(Annotate(text.status(), "--reference"));
    const Json index = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
    const auto tensors = index.find("tensors");
    if (!index.is_object() || tensors == index.end() || !tensors->is_array()) {
      return InvalidArgument("--reference: ", Quote(path), " has no list \"tensors\"");
    }
    for (const Json& entry : *tensors) {
      const Json name = entry.value("tensor", Json());
      const Json file = entry.value("file", Json());
      // Files of the directory only.
      const bool sound = name.is_string() && file.is_string() &&
                         file.get<std::string>().find('/') == std::string::npos;
      if (!sound) {
        return InvalidArgument(
            "--reference: ", Quote(path),
            ": expected \"tensor\" and \"file\", a name without \"/\", in ",
            QuoteShort(entry.dump(-1, ' ', true, Json::error_handler_t::replace)));
      }
      out.files_[name.get<std::string>()] = file.get<std::string>();
    }
    return out;
  }

  // The reference for the tensor `got` of this name; nullopt: there is none. If its type differs,
  // it is not read, and the result has no elements.
  absl::StatusOr<std::optional<HostTensor>> Load(const std::string& name,
                                                 const HostTensor& got) const {
    auto it = files_.find(name);
    if (it == files_.end()) return std::optional<HostTensor>();
    const std::string path = StrCat(directory_, "/", it->second);
    absl::StatusOr<NamedType> type = ReadTensorType(path);
    if (!type.ok()) return BadFile(Annotate(type.status(), "--reference"));
    if (type->dtype != got.dtype() || type->dims != got.dims()) {
      const bool same_dims = got.dims() == Dims{0};
      return std::optional<HostTensor>(HostTensor(type->dtype, same_dims ? Dims{0, 0} : Dims{0}));
    }
    absl::StatusOr<NamedTensor> tensor = LoadTensorFile(path);
    if (!tensor.ok()) return BadFile(Annotate(tensor.status(), "--reference"));
    return std::optional<HostTensor>(std::move(tensor->value));
  }

 private:
  std::string directory_;
  std::map<std::string, std::string> files_;
};

// The tensors that can be kept, in order.
struct Wanted {
  std::vector<Intermediate> tensors;
  std::vector<int64_t> bytes;
  int64_t out_of_reach = 0;
};

// The outputs of the model's own nodes that a plan can keep.
Wanted AllWanted(const ModelFile& file, const Graph& graph) {
  std::set<std::string> reachable;
  for (const onnx::NodeProto& node : file.bare().graph().node()) {
    reachable.insert(node.output().begin(), node.output().end());
  }
  std::set<std::string> seen;
  Wanted out;
  for (const Node& node : graph.nodes()) {
    bool reached = false;
    for (TensorId id : node.outputs) {
      if (id == kNoTensor) continue;
      const Tensor& tensor = graph.tensor(id);
      const bool named = !tensor.name.empty() && reachable.contains(tensor.name);
      if (!named || !seen.insert(tensor.name).second) continue;
      reached = true;
      const std::vector<TensorId>& outputs = graph.outputs();
      const Dims dims = tensor.type.shape.ToDims();
      out.tensors.push_back(
          {.name = tensor.name,
           .node = node.name,
           .op = std::string(node.def->name),
           .type = TypeText(tensor.type.dtype, dims),
           .elements = NumElements(dims),
           .is_output = std::find(outputs.begin(), outputs.end(), id) != outputs.end()});
      out.bytes.push_back(NumElements(dims) * DTypeBytes(tensor.type.dtype));
    }
    if (!reached) ++out.out_of_reach;
  }
  return out;
}

// Those that --tensor names.
absl::Status Choose(const std::vector<std::string>& names, Wanted* wanted) {
  if (names.empty()) return absl::OkStatus();
  std::set<std::string> met;
  Wanted chosen{.out_of_reach = wanted->out_of_reach};
  for (size_t i = 0; i < wanted->tensors.size(); ++i) {
    const Intermediate& t = wanted->tensors[i];
    bool named = false;
    for (const std::string& name : names) {
      if (name != t.name && name != t.node) continue;
      met.insert(name);
      named = true;
    }
    if (!named) continue;
    chosen.tensors.push_back(t);
    chosen.bytes.push_back(wanted->bytes[i]);
  }
  for (const std::string& name : names) {
    if (met.contains(name)) continue;
    return InvalidArgument("--tensor ", QuoteShort(name),
                           ": no node of the model has this name, or gives a tensor of it that a "
                           "plan can keep");
  }
  *wanted = std::move(chosen);
  return absl::OkStatus();
}

// Kernel and group of the first launch that writes a tensor of a plan.
void FindKernel(const Plan& plan, int tensor, Intermediate* out) {
  // What a loop gives: its first one.
  for (const PlanLoop& loop : plan.loops) {
    auto last = [&](const PlanLoop::Carried& c) { return c.last == tensor; };
    auto whole = [&](const PlanLoop::Element& e) { return e.written && e.whole == tensor; };
    if (std::none_of(loop.carried.begin(), loop.carried.end(), last) &&
        std::none_of(loop.elements.begin(), loop.elements.end(), whole)) {
      continue;
    }
    const PlanLaunch& launch = plan.launches[static_cast<size_t>(loop.first)];
    out->kernel = plan.kernels[static_cast<size_t>(launch.kernel)].key;
    out->group = plan.groups[static_cast<size_t>(launch.group)].label;
    return;
  }
  for (const PlanLaunch& launch : plan.launches) {
    const auto& tensors = launch.tensors;
    if (std::find(tensors.begin(), tensors.end(), tensor) == tensors.end()) continue;
    out->kernel = plan.kernels[static_cast<size_t>(launch.kernel)].key;
    out->group = plan.groups[static_cast<size_t>(launch.group)].label;
    return;
  }
}

// Processes one batch after the other.
class Inspection {
 public:
  Inspection(const Arguments& arguments, const ModelFile& file, const Client& client,
             const RunInputs& inputs, Progress* progress)
      : arguments_(arguments), file_(file), client_(client), inputs_(inputs), progress_(progress) {}

  absl::StatusOr<Intermediates> Run(const Contender& contender) {
    ASSIGN_OR_RETURN(const Graph graph, ImportModel(file_, inputs_.options));
    Wanted wanted = AllWanted(file_, graph);
    RETURN_IF_ERROR(Choose(arguments_.tensors, &wanted));
    found_.out_of_reach = wanted.out_of_reach;
    if (!arguments_.reference.empty()) {
      ASSIGN_OR_RETURN(reference_, ReferenceTensors::Open(arguments_.reference));
    }
    if (!arguments_.dump_tensors.empty()) {
      absl::Status made = MakeDirectories(arguments_.dump_tensors);
      if (!made.ok()) return BadInput(Annotate(made, "--dump-tensors"));
    }
    RETURN_IF_ERROR(CompareOutputs(graph, contender));
    const size_t count = wanted.tensors.size();
    for (size_t begin = 0; begin < count;) {
      size_t end = begin;
      int64_t bytes = 0;
      while (end < count && (end == begin || bytes + wanted.bytes[end] <= kBatchBytes)) {
        bytes += wanted.bytes[end++];
      }
      progress_->Show("comparing", static_cast<int64_t>(begin), static_cast<int64_t>(count));
      RETURN_IF_ERROR(RunBatch({wanted.tensors.begin() + static_cast<std::ptrdiff_t>(begin),
                                wanted.tensors.begin() + static_cast<std::ptrdiff_t>(end)}));
      begin = end;
    }
    if (!arguments_.dump_tensors.empty()) RETURN_IF_ERROR(WriteIndex());
    return std::move(found_);
  }

 private:
  // The normal plan without kept tensors may have other kernels.
  absl::Status CompareOutputs(const Graph& graph, const Contender& contender) {
    if (!arguments_.compare || reference_) return absl::OkStatus();
    progress_->Show("evaluating");
    ASSIGN_OR_RETURN(std::vector<HostTensor> wanted,
                     EvaluateModel(graph, file_, inputs_.data.inputs, contender.plan().threads));
    for (size_t i = 0; i < wanted.size(); ++i) {
      Difference d =
          Compare(contender.outputs()[i], wanted[i], ToleranceFor(arguments_, wanted[i].dtype()));
      if (d.ok()) continue;
      found_.divergent_outputs.push_back(contender.model().outputs()[i]);
      found_.pass = false;
    }
    return absl::OkStatus();
  }

  absl::Status RunBatch(std::vector<Intermediate> batch) {
    PlanOptions options = inputs_.options;
    options.lock.reset();  // it is of a graph that keeps nothing
    for (const Intermediate& t : batch) {
      if (!t.is_output) options.keep_outputs.push_back(t.name);
    }
    ASSIGN_OR_RETURN(Contender kept,
                     Contender::Load(arguments_, file_, client_, options, progress_));
    RETURN_IF_ERROR(kept.Run(inputs_.pointers(), /*counts=*/false));
    std::vector<HostTensor> evaluated;
    if (arguments_.compare && !reference_) {
      progress_->Show("evaluating");
      ASSIGN_OR_RETURN(const Graph graph, ImportModel(file_, options));
      ASSIGN_OR_RETURN(evaluated,
                       EvaluateModel(graph, file_, inputs_.data.inputs, kept.plan().threads));
    }
    std::map<std::string, size_t> position;
    for (size_t i = 0; i < kept.model().outputs().size(); ++i) {
      position[kept.model().outputs()[i]] = i;
    }
    for (Intermediate& t : batch) {
      auto at = position.find(t.name);
      if (at == position.end()) return Internal("the plan does not keep ", QuoteShort(t.name));
      FindKernel(kept.ran(), kept.ran().outputs[at->second], &t);
      const HostTensor& got = kept.outputs()[at->second];
      RETURN_IF_ERROR(Take(got, evaluated.empty() ? nullptr : &evaluated[at->second], &t));
      found_.tensors.push_back(std::move(t));
    }
    return absl::OkStatus();
  }

  // `wanted`: the evaluator's result; null: not evaluated.
  absl::Status Take(const HostTensor& got, const HostTensor* wanted, Intermediate* t) {
    t->type = TypeText(got.dtype(), got.dims());
    t->elements = got.elements();
    if (!arguments_.dump_tensors.empty()) {
      // Files are numbered, because tensor names may not be valid file names.
      t->file = StrCat("tensor_", found_.tensors.size(), ".npy");
      absl::Status saved =
          SaveTensorFile(StrCat(arguments_.dump_tensors, "/", t->file), {t->name, got});
      if (!saved.ok()) return BadInput(Annotate(saved, "--dump-tensors"));
    }
    if (!arguments_.compare) return absl::OkStatus();
    std::optional<HostTensor> loaded;
    if (reference_) {
      ASSIGN_OR_RETURN(loaded, reference_->Load(t->name, got));
      if (!loaded) ++found_.without_reference;
      wanted = loaded ? &*loaded : nullptr;
    }
    if (wanted == nullptr) return absl::OkStatus();
    t->difference = Compare(got, *wanted, ToleranceFor(arguments_, wanted->dtype()));
    if (t->difference->ok()) return absl::OkStatus();
    found_.pass = false;
    if (found_.first_divergent < 0) {
      found_.first_divergent = static_cast<int>(found_.tensors.size());
    }
    return absl::OkStatus();
  }

  absl::Status WriteIndex() const {
    Json tensors = Json::array();
    for (const Intermediate& t : found_.tensors) {
      const size_t split = t.type.find('[');
      tensors.push_back({{"tensor", t.name},
                         {"node", t.node},
                         {"op", t.op},
                         {"dtype", t.type.substr(0, split)},
                         {"dims", Json::parse(t.type.substr(split), nullptr, false)},
                         {"output", t.is_output},
                         {"kernel", t.kernel.ToHex()},
                         {"file", t.file}});
    }
    const Json index = {{"model", arguments_.model},
                        {"data", inputs_.data.name},
                        {"seed", arguments_.seed},
                        {"tensors", tensors}};
    absl::Status written = WriteFile(
        StrCat(arguments_.dump_tensors, "/", kIndexName),
        index.dump(2, ' ', false, Json::error_handler_t::replace) + "\n", FileRights::kUmask);
    return BadInput(Annotate(written, "--dump-tensors"));
  }

  const Arguments& arguments_;
  const ModelFile& file_;
  const Client& client_;
  const RunInputs& inputs_;
  Progress* progress_;
  std::optional<ReferenceTensors> reference_;
  Intermediates found_;
};

Json TensorJson(const Intermediate& t) {
  Json out = {{"tensor", t.name},
              {"node", t.node},
              {"op", t.op},
              {"type", t.type},
              {"elements", t.elements},
              {"output", t.is_output},
              {"group", t.group},
              {"kernel", t.kernel.ToHex()}};
  if (!t.file.empty()) out["file"] = t.file;
  if (!t.difference) return out;
  const Difference& d = *t.difference;
  out.update(DifferenceJson(d));
  if (d.other_type) out["outside"] = t.elements;
  if (d.first_outside >= 0) out["first_outside"] = d.first_outside;
  if (d.other_type) out["other_type"] = true;
  return out;
}

std::string NodeText(const Intermediate& t) {
  return StrCat("node ", Quote(t.node), " (", t.op, ")");
}

// The result of --compare as text.
std::string VerdictText(const Arguments& arguments, const Intermediates& found) {
  const std::string with = arguments.reference.empty()
                               ? "the reference evaluator"
                               : StrCat("the tensors in ", arguments.reference);
  if (found.first_divergent >= 0) {
    const Intermediate& t = found.tensors[static_cast<size_t>(found.first_divergent)];
    const Difference& d = *t.difference;
    const std::string how =
        d.other_type ? "it has another type or shape"
                     : StrCat("max|a-b| ", ShortNumber(d.max_abs), ", ", ShortNumber(d.max_rel),
                              " of max|b|, ", d.outside, " of ", t.elements,
                              " elements outside, the first at ", d.first_outside);
    return StrCat(Bad("FAIL"), " against ", with, ": first at ", NodeText(t), ", tensor ",
                  Quote(t.name), " of kernel ", t.kernel.ToHex().substr(0, 8), " (", t.group,
                  "): ", how, "\n");
  }
  if (!found.divergent_outputs.empty()) {
    return StrCat(Bad("FAIL"), " against ", with, ": outputs ",
                  StrJoin(found.divergent_outputs, ", ", QuoteShort),
                  " differ, and no tensor does where all are kept: a kernel that the plan has "
                  "only where nothing is kept\n");
  }
  Tolerance tolerance = ToleranceFor(arguments, DType::kF32);
  std::string out = StrCat(Good("PASS"), " against ", with, ": ",
                           static_cast<int64_t>(found.tensors.size()) - found.without_reference,
                           " tensors within ", ShortNumber(tolerance.atol), " + ",
                           ShortNumber(tolerance.rtol), " max|b|");
  if (found.without_reference > 0) {
    out += StrCat("; ", found.without_reference, " have no reference");
  }
  return out + "\n";
}

}  // namespace

absl::StatusOr<Intermediates> LookAtIntermediates(const Arguments& arguments, const ModelFile& file,
                                                  const Client& client, const RunInputs& inputs,
                                                  const Contender& contender, Progress* progress) {
  return Inspection(arguments, file, client, inputs, progress).Run(contender);
}

void AddIntermediatesJson(const Arguments& arguments, const Intermediates& found, Json* out) {
  Json tensors = Json::array();
  for (const Intermediate& t : found.tensors) tensors.push_back(TensorJson(t));
  (*out)["tensors"] = tensors;
  (*out)["nodes_out_of_reach"] = found.out_of_reach;
  if (!arguments.dump_tensors.empty()) (*out)["dump_tensors"] = arguments.dump_tensors;
  if (!arguments.compare) return;
  (*out)["reference"] = arguments.reference.empty() ? "evaluator" : arguments.reference;
  (*out)["without_reference"] = found.without_reference;
  (*out)["divergent_outputs"] = found.divergent_outputs;
  (*out)["first_divergent"] =
      found.first_divergent < 0
          ? Json()
          : TensorJson(found.tensors[static_cast<size_t>(found.first_divergent)]);
  (*out)["pass"] = found.pass;
}

std::string IntermediatesText(const Arguments& arguments, const Intermediates& found) {
  std::vector<Table::Column> columns = {{"node", Table::kCut},
                                        {"op", Table::kLeft, /*spare=*/2},
                                        {"tensor", Table::kCut, /*spare=*/4},
                                        {"type"},
                                        {"kernel", Table::kLeft, /*spare=*/3}};
  if (arguments.compare) {
    columns.push_back({"max|a-b|", Table::kRight});
    columns.push_back({"max|a-b|/max|b|", Table::kRight, /*spare=*/1});
    columns.push_back({"outside", Table::kRight});
  }
  if (!arguments.dump_tensors.empty()) columns.push_back({"file"});
  Table table(std::move(columns));
  for (const Intermediate& t : found.tensors) {
    std::vector<std::string> row = {t.node, t.op, t.name, t.type, t.kernel.ToHex().substr(0, 8)};
    if (arguments.compare) {
      const bool compared = t.difference && !t.difference->other_type;
      row.push_back(compared ? ShortNumber(t.difference->max_abs) : "-");
      row.push_back(compared ? ShortNumber(t.difference->max_rel) : "-");
      row.push_back(!t.difference              ? "no reference"
                    : t.difference->other_type ? "type differs"
                                               : StrCat(t.difference->outside, " of ", t.elements));
    }
    if (!arguments.dump_tensors.empty()) row.push_back(t.file);
    table.Add(std::move(row));
  }
  std::string out = table.ToString();
  if (found.out_of_reach > 0) {
    out += StrCat("\n", Count(found.out_of_reach, "node"),
                  " inside functions or loops, whose tensors a plan cannot be asked for\n");
  }
  if (!arguments.dump_tensors.empty()) {
    out += StrCat("\n", found.tensors.size(), " tensors in ", arguments.dump_tensors, "\n");
  }
  if (arguments.compare) out += StrCat("\n", VerdictText(arguments, found));
  return out;
}

}  // namespace fusion
