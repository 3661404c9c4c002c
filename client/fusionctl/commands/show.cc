#include <nlohmann/json.hpp>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/commands/commands.h"
#include "client/fusionctl/input/model_file.h"
#include "client/fusionctl/input/named_graph.h"
#include "client/fusionctl/output/dot.h"
#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/service/session.h"
#include "client/fusionctl/service/stored_kernel.h"
#include "core/graph/build/text.h"

namespace fusion {
namespace {

// The dumps from which a form is made.
std::vector<DumpKind> TextsFor(const Arguments& arguments) {
  bool dot = arguments.format == ShowFormat::kDot;
  switch (arguments.what) {
    case ShowWhat::kGraph:
      return {DumpKind::kGraph};
    case ShowWhat::kProgram:
      return {DumpKind::kProgram};
    case ShowWhat::kSmg:
      return dot ? std::vector{DumpKind::kProgram, DumpKind::kSmg} : std::vector{DumpKind::kSmg};
    case ShowWhat::kSchedule:
      return {DumpKind::kSchedule};
    case ShowWhat::kPlan:
      return dot ? std::vector{DumpKind::kGraph} : std::vector<DumpKind>{};
    case ShowWhat::kSource:
      return {DumpKind::kSource};
  }
  return {};
}

// The headline of a text.
std::string Title(const FusionReply& reply, const Dump& text) {
  const Plan& plan = reply.plan;
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    if (text.name == StrCat("group ", g)) return StrCat(text.name, ": ", plan.groups[g].label);
  }
  for (const PlanKernel& kernel : plan.kernels) {
    if (text.name == kernel.key.ToHex())
      return StrCat("kernel ", kernel.symbol, ": ", kernel.label);
  }
  return text.name;
}

absl::StatusOr<std::string> SmgsAsDot(const FusionReply& reply) {
  std::optional<Program> program;
  std::vector<std::pair<std::string, Smg>> smgs;
  for (const Dump& text : reply.dumps) {
    if (text.kind != DumpKind::kProgram) continue;
    ASSIGN_OR_RETURN(program, ParseProgram(text.text));
  }
  if (!program) return Internal("the service sent no program");
  for (const Dump& text : reply.dumps) {
    if (text.kind != DumpKind::kSmg || text.text.rfind('#', 0) == 0) continue;
    ASSIGN_OR_RETURN(Smg smg, ParseSmg(text.text, *program));
    smgs.emplace_back(Title(reply, text), std::move(smg));
  }
  return SmgDot(smgs);
}

absl::StatusOr<std::string> Dot(const Arguments& arguments, const FusionReply& reply) {
  if (arguments.what == ShowWhat::kSmg) return SmgsAsDot(reply);
  ASSIGN_OR_RETURN(Graph graph, NamedGraph(reply));
  return arguments.what == ShowWhat::kPlan ? PlanDot(graph, reply) : GraphDot(graph);
}

Json GraphJson(const Graph& graph, const std::string& text) {
  Json nodes = Json::array();
  for (const Node& node : graph.nodes()) {
    nodes.push_back({{"op", node.def->name},
                     {"name", node.name},
                     {"inputs", node.inputs},
                     {"outputs", node.outputs}});
  }
  Json tensors = Json::array();
  for (const Tensor& t : graph.tensors()) {
    constexpr std::string_view kKinds[] = {"input", "weight", "constant", "intermediate"};
    tensors.push_back({{"name", t.name},
                       {"kind", kKinds[static_cast<size_t>(t.kind)]},
                       {"type", DTypeName(t.type.dtype)},
                       {"shape", t.type.shape.ToString()}});
  }
  return {{"nodes", nodes},
          {"tensors", tensors},
          {"inputs", graph.inputs()},
          {"outputs", graph.outputs()},
          {"text", text}};
}

absl::Status ShowJson(const Arguments& arguments, const FusionReply& reply) {
  if (arguments.what == ShowWhat::kPlan) {
    PrintJson(ReplyJson(reply));
    return absl::OkStatus();
  }
  if (arguments.what == ShowWhat::kGraph) {
    ASSIGN_OR_RETURN(Graph graph, NamedGraph(reply));
    PrintJson(GraphJson(graph, ToString(graph)));
    return absl::OkStatus();
  }
  Json texts = Json::array();
  for (const Dump& text : reply.dumps) {
    texts.push_back({{"name", text.name}, {"title", Title(reply, text)}, {"text", text.text}});
  }
  PrintJson(Json{{"texts", texts}});
  return absl::OkStatus();
}

absl::StatusOr<std::string> Text(const Arguments& arguments, const FusionReply& reply) {
  if (arguments.what == ShowWhat::kPlan) return DescribePlan(reply);
  if (arguments.what == ShowWhat::kGraph) {
    ASSIGN_OR_RETURN(Graph graph, NamedGraph(reply));
    return ToString(graph);
  }
  std::string out;
  for (const Dump& text : reply.dumps) {
    if (reply.dumps.size() > 1) {
      out += StrCat(out.empty() ? "" : "\n", Bold(StrCat("== ", Title(reply, text))), "\n");
    }
    out += text.text;
    if (!text.text.empty() && text.text.back() != '\n') out += '\n';
  }
  return out;
}

// Inserts spaces after '+' in long labels, so that lines can be wrapped there.
std::string Breakable(std::string_view text, size_t columns) {
  constexpr size_t kIndent = 4;  // of what follows a break
  if (columns <= 2 * kIndent) return std::string(text);
  std::string out;
  size_t word = 0, plus = 0;  // where the word begins in `out`, and what is behind its last '+'
  for (const char c : text) {
    if (out.size() - word >= columns - kIndent && plus > word && c != ' ' && c != '\n') {
      out.insert(plus, 1, ' ');
      word = plus + 1;
    }
    out += c;
    if (c == ' ' || c == '\n') word = out.size();
    if (c == '+') plus = out.size();
  }
  return out;
}

}  // namespace

absl::StatusOr<ExitCode> RunShow(const Arguments& arguments, Progress* progress) {
  if (IsKernelSubject(arguments.model)) return ShowStoredKernel(arguments, progress);
  ASSIGN_OR_RETURN(std::unique_ptr<ModelFile> model, ModelFile::Load(arguments.model, arguments));
  return WithService(arguments, progress, [&](const Client& client) -> absl::StatusOr<ExitCode> {
    FusionRequest request = model->Request(arguments, arguments.options);
    request.mode = PlanMode::kPlanOnly;
    request.dumps = TextsFor(arguments);
    ASSIGN_OR_RETURN(FusionReply reply, PlanWithProgress(client, request, progress));
    progress->Clear();
    if (arguments.format == ShowFormat::kJson) {
      RETURN_IF_ERROR(ShowJson(arguments, reply));
      return kExitOk;
    }
    ASSIGN_OR_RETURN(std::string text, arguments.format == ShowFormat::kDot
                                           ? Dot(arguments, reply)
                                           : Text(arguments, reply));
    // A plan is for people; the other forms are read back by programs.
    const bool for_people =
        arguments.what == ShowWhat::kPlan && arguments.format == ShowFormat::kText;
    for_people ? Print(Breakable(text, StdoutColumns())) : PrintAsItIs(text);
    return kExitOk;
  });
}

}  // namespace fusion
