#include "client/fusionctl/repro/repro_files.h"

#include "client/fusionctl/output/print.h"
#include "core/bundle/text.h"
#include "core/op/attr.h"
#include "core/wire/plan.h"

namespace fusion {
namespace {

constexpr int kFormat = 1;
constexpr std::string_view kManifest = "manifest.json";
constexpr std::string_view kPlan = "plan.pb";
constexpr std::string_view kGraph = "graph.txt";

constexpr std::string_view kReadme =
    R"(A plan of fusiond, to be looked at and run elsewhere. It holds no weights and no names of the
model: only what constants and shapes decide is in graph.txt and in the sources.

  fusionctl repro --replay FILE    compiles the kernels, compares each with its reference, runs the
                                   plan on seeded random numbers and compares it with the evaluator

It compiles and runs the sources in here: replay files only of people that you trust.

  manifest.json        versions, target, options, what the plan key is made of, kernels in order
  graph.txt            the graph in canonical form
  plan.pb              fusion.v1.Plan with its ledger (proto/fusion/v1/plan.proto)
  kernels/NAME.cc      source, as the code generator wrote it
  kernels/NAME.schedule, .smg, .program
                       schedule, space-mapping graph, and the loop ops that the kernel is compared
                       with
)";

std::string KernelFile(const std::string& symbol, std::string_view suffix) {
  return StrCat("kernels/", symbol, suffix);
}

// The texts of a kernel and their suffixes.
struct TextFile {
  std::string_view suffix;
  std::string KernelTexts::*text;
};
constexpr TextFile kTextFiles[] = {{".cc", &KernelTexts::source},
                                   {".schedule", &KernelTexts::schedule},
                                   {".program", &KernelTexts::reference},
                                   {".smg", &KernelTexts::smg}};

absl::StatusOr<const std::string*> FileOf(const ReproFiles& files, const std::string& name) {
  auto it = files.find(name);
  if (it == files.end()) return InvalidArgument(name, " is missing");
  return &it->second;
}

absl::StatusOr<std::string> TextOf(const Json& object, const char* field) {
  const auto it = object.find(field);
  if (it != object.end() && it->is_string()) return it->get<std::string>();
  return InvalidArgument(kManifest, ": expected a text ", Quote(field));
}

absl::StatusOr<Digest> DigestOf(const Json& object, const char* field) {
  ASSIGN_OR_RETURN(std::string hex, TextOf(object, field));
  Digest digest;
  if (Digest::FromHex(hex, &digest)) return digest;
  return InvalidArgument(kManifest, ": ", Quote(field), " is ", QuoteShort(hex),
                         "; expected 64 hex digits");
}

absl::StatusOr<KernelTexts> KernelFrom(const ReproFiles& files, const Json& entry,
                                       const PlanKernel& planned) {
  KernelTexts texts;
  ASSIGN_OR_RETURN(texts.key, DigestOf(entry, "key"));
  if (texts.key != planned.key) {
    return InvalidArgument(kManifest, ": kernel ", texts.key.ToHex(), ", the plan has ",
                           planned.key.ToHex(), " in its place");
  }
  ASSIGN_OR_RETURN(texts.content, DigestOf(entry, "content_sha256"));
  ASSIGN_OR_RETURN(texts.compiler, TextOf(entry, "compiler"));
  for (const TextFile& file : kTextFiles) {
    ASSIGN_OR_RETURN(const std::string* text,
                     FileOf(files, KernelFile(planned.symbol, file.suffix)));
    texts.*file.text = *text;
  }
  return texts;
}

}  // namespace

ReproFiles ToFiles(const Repro& repro) {
  ReproFiles files;
  Json key = Json::object();
  for (const KeyField& field : repro.fields) key[field.name] = field.value;
  Json kernels = Json::array();
  for (size_t k = 0; k < repro.kernels.size(); ++k) {
    const PlanKernel& planned = repro.plan.kernels[k];
    const KernelTexts& texts = repro.kernels[k];
    kernels.push_back({{"key", texts.key.ToHex()},
                       {"symbol", planned.symbol},
                       {"ops", planned.label},
                       {"backend", planned.backend},
                       {"isa", planned.isa},
                       {"content_sha256", texts.content.ToHex()},
                       {"compiler", texts.compiler}});
    for (const TextFile& file : kTextFiles) {
      files[KernelFile(planned.symbol, file.suffix)] = texts.*file.text;
    }
  }
  const Json manifest = {{"format", kFormat},
                         {"program", repro.program},
                         {"plan_key", repro.plan_key.ToHex()},
                         {"target", repro.plan.target},
                         {"isa", repro.plan.isa},
                         {"threads", repro.plan.threads},
                         {"fusion", FusionName(repro.plan.fusion)},
                         {"numerics", NumericsName(repro.plan.numerics)},
                         {"plan_key_fields", key},
                         {"kernels", kernels}};
  files[std::string(kManifest)] =
      manifest.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  files["README.txt"] = kReadme;
  files[std::string(kPlan)] = StrCat(PlanToBytes(repro.plan), LedgerToBytes(repro.plan));
  files[std::string(kGraph)] = repro.graph;
  return files;
}

absl::StatusOr<Repro> FromFiles(const ReproFiles& files) {
  Repro repro;
  ASSIGN_OR_RETURN(const std::string* text, FileOf(files, std::string(kManifest)));
  const Json manifest = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!manifest.is_object()) return InvalidArgument(kManifest, " is no JSON object");
  if (manifest.value("format", Json()) != Json(kFormat)) {
    return InvalidArgument(kManifest, ": format ", manifest.value("format", Json()).dump(),
                           "; expected ", kFormat);
  }
  ASSIGN_OR_RETURN(repro.program, TextOf(manifest, "program"));
  ASSIGN_OR_RETURN(repro.plan_key, DigestOf(manifest, "plan_key"));
  const Json fields = manifest.value("plan_key_fields", Json::object());
  for (const auto& [name, value] : fields.items()) {
    if (value.is_string()) repro.fields.push_back({name, value.get<std::string>()});
  }
  ASSIGN_OR_RETURN(const std::string* plan, FileOf(files, std::string(kPlan)));
  absl::StatusOr<Plan> decoded = PlanFromBytes(*plan);
  if (!decoded.ok()) return Annotate(decoded.status(), kPlan);
  repro.plan = *std::move(decoded);
  ASSIGN_OR_RETURN(const std::string* graph, FileOf(files, std::string(kGraph)));
  repro.graph = *graph;
  const Json kernels = manifest.value("kernels", Json());
  if (!kernels.is_array() || kernels.size() != repro.plan.kernels.size()) {
    return InvalidArgument(kManifest, ": expected \"kernels\", a list of ",
                           repro.plan.kernels.size());
  }
  for (size_t k = 0; k < kernels.size(); ++k) {
    if (!kernels[k].is_object())
      return InvalidArgument(kManifest, ": kernels[", k, "] is no object");
    ASSIGN_OR_RETURN(KernelTexts texts, KernelFrom(files, kernels[k], repro.plan.kernels[k]));
    repro.kernels.push_back(std::move(texts));
  }
  return repro;
}

absl::StatusOr<std::string> WithConstants(const std::string& graph, const Plan& plan) {
  constexpr std::string_view kMark = " sha256 ";
  constexpr size_t kDigits = 64;
  std::map<std::string, const HostTensor*> held;
  for (const auto& constant : plan.constants) {
    held[Sha256(constant->byte_view()).ToHex()] = constant.get();
  }
  std::string out;
  for (std::string_view line : StrSplit(graph, '\n')) {
    if (!out.empty()) out += '\n';
    const size_t mark = line.rfind(kMark);
    const bool hashed = mark != std::string_view::npos && line.find('"') < mark &&
                        line.rfind('"') < mark && line.size() == mark + kMark.size() + kDigits;
    if (!hashed) {
      out += line;
      continue;
    }
    auto it = held.find(std::string(line.substr(mark + kMark.size())));
    if (it == held.end()) {
      return NotFound("the service keeps no graphs, and this one has a constant, SHA-256 ",
                      line.substr(mark + kMark.size()),
                      ", that is not part of the plan; give the model instead of the key");
    }
    // `%3 = const "" : f32[4,8] sha256 ...`: the text of a tensor begins with its type.
    const size_t type = line.rfind(" : ", mark);
    out += StrCat(line.substr(0, type), " : ", TensorToText(*it->second));
  }
  return out;
}

}  // namespace fusion
