#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/commands/commands.h"
#include "client/fusionctl/output/explain_output.h"
#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/service/plan_subject.h"
#include "client/fusionctl/service/session.h"
#include "core/base/files/launcher.h"
#include "core/view/draw_svg.h"
#include "core/view/plan_picture.h"

namespace fusion {
namespace {

// Maximum number of matching names in an error.
constexpr size_t kNamed = 4;

// The node that an argument of --why names.
absl::StatusOr<int> FindNode(const PlanExplanation& plan, const std::string& word) {
  if (word[0] == '#') {
    int node = -1;
    auto [end, error] = std::from_chars(word.data() + 1, word.data() + word.size(), node);
    bool sound = error == std::errc() && end == word.data() + word.size();
    if (sound && node >= 0 && node < plan.plan.nodes) return node;
    return InvalidArgument("--why ", QuoteShort(word), ": the plan has nodes #0..#",
                           plan.plan.nodes - 1);
  }
  if (plan.node_names.empty()) {
    return InvalidArgument("--why ", QuoteShort(word),
                           ": the names of a plan's nodes are its model's; give the model, or "
                           "positions #0..#",
                           plan.plan.nodes - 1);
  }
  std::vector<int> whole;
  std::vector<int> part;
  for (size_t n = 0; n < plan.node_names.size(); ++n) {
    if (plan.node_names[n] == word) whole.push_back(static_cast<int>(n));
    if (plan.node_names[n].find(word) != std::string::npos) part.push_back(static_cast<int>(n));
  }
  const std::vector<int>& found = whole.empty() ? part : whole;
  if (found.size() == 1) return found[0];
  if (found.empty()) {
    return InvalidArgument("--why ", QuoteShort(word), ": no node has a name like it");
  }
  std::vector<int> named(
      found.begin(), found.begin() + static_cast<std::ptrdiff_t>(std::min(found.size(), kNamed)));
  return InvalidArgument(
      "--why ", QuoteShort(word), ": ", found.size(), " nodes fit: ",
      StrJoin(named, ", ", [&](int n) { return StrCat("#", n, " ", NodeText(plan, n)); }),
      named.size() < found.size() ? ", ..." : "");
}

absl::StatusOr<ExplainFilter> FilterOf(const Arguments& arguments, const PlanExplanation& whole) {
  ExplainFilter filter{.nodes = {}, .group = arguments.group};
  for (const std::string& word : arguments.why) {
    ASSIGN_OR_RETURN(int node, FindNode(whole, word));
    filter.nodes.push_back(node);
  }
  if (filter.nodes.size() == 2 && filter.nodes[0] == filter.nodes[1]) {
    return InvalidArgument("--why: ", QuoteShort(arguments.why[0]), " and ",
                           QuoteShort(arguments.why[1]), " are the same node");
  }
  return filter;
}

absl::Status WritePictures(const Arguments& arguments, const PlanSubject& subject,
                           const Client* client, const PlanExplanation& whole, Progress* progress) {
  if (arguments.dot.empty() && arguments.svg.empty()) return absl::OkStatus();
  if (!subject.is_model()) {
    return InvalidArgument(arguments.dot.empty() ? "--svg" : "--dot",
                           ": the service keeps no graphs; a picture is drawn of a model only");
  }
  ASSIGN_OR_RETURN(Graph graph, subject.PlannedGraph(*client, progress));
  std::string dot = PlanPicture(graph, whole);
  if (!arguments.dot.empty()) RETURN_IF_ERROR(WriteOptionFile("--dot", arguments.dot, dot));
  if (arguments.svg.empty()) return absl::OkStatus();
  progress->Show("drawing");
  std::unique_ptr<CommandRunner> runner = MakeProcessRunner(SiblingProgram("fusion-exec"));
  absl::StatusOr<std::string> svg = DrawSvg(dot, *runner);
  if (!svg.ok()) return Annotate(svg.status(), "--svg");
  return WriteOptionFile("--svg", arguments.svg, *svg);
}

Json MissJson(const FusionReply& reply) {
  Json out = {{"plan_key", reply.plan_key.ToHex()},
              {"cache", CacheOutcomeName(reply.cache)},
              {"nearest_plan_key", reply.miss->nearest ? reply.miss->nearest->ToHex() : ""},
              {"compared_plans", reply.miss->compared},
              {"summary", reply.miss->summary},
              {"differences", Json::array()}};
  for (const KeyDifference& d : reply.miss->differences) {
    out["differences"].push_back({{"field", d.field}, {"asked", d.asked}, {"stored", d.stored}});
  }
  return out;
}

std::string MissText(const std::string& subject, const FusionReply& reply) {
  const MissExplanation& miss = *reply.miss;
  const bool found =
      reply.cache == CacheOutcome::kHitMemory || reply.cache == CacheOutcome::kHitStore;
  std::string out = StrCat(subject, ": ", found ? "the plan is there: " : "no plan was there: ",
                           reply.plan_key.ToHex().substr(0, 16), ", ",
                           CacheOutcomeName(reply.cache), "\n", miss.summary, "\n");
  if (!miss.nearest.has_value()) return out;
  StrAppend(&out, StrCat("nearest of ", miss.compared,
                         " stored plans: ", miss.nearest->ToHex().substr(0, 16), "\n"));
  for (const KeyDifference& d : miss.differences) {
    auto side = [](const std::string& text) { return text.empty() ? "(nothing)" : text; };
    StrAppend(&out, StrCat("\n", d.field, "\n  asked   ", side(d.asked), "\n  stored  ",
                           side(d.stored), "\n"));
  }
  return out;
}

absl::StatusOr<ExitCode> ExplainMiss(const Arguments& arguments, const PlanSubject& subject,
                                     const Client& client, Progress* progress) {
  progress->Show("asking");
  FusionRequest request = subject.Request();
  request.mode = PlanMode::kPlanOnly;
  request.explain_miss = true;
  ASSIGN_OR_RETURN(FusionReply reply, client.PlanFusion(request));
  progress->Clear();
  if (!reply.miss.has_value()) {
    return Unimplemented("--miss: the service at ", client.address(), " is too old for it");
  }
  if (arguments.json) {
    PrintJson(MissJson(reply));
  } else {
    Print(MissText(subject.word(), reply));
  }
  return kExitOk;
}

// `client` may be null if the subject needs no service.
absl::StatusOr<ExitCode> ExplainWith(const Arguments& arguments, const PlanSubject& subject,
                                     const Client* client, Progress* progress) {
  progress->Show("planning");
  ASSIGN_OR_RETURN(PlanExplanation whole, subject.Explain(client, progress));
  RETURN_IF_ERROR(WritePictures(arguments, subject, client, whole, progress));
  progress->Clear();
  if (!arguments.save.empty()) RETURN_IF_ERROR(SaveExplanation(arguments.save, whole));
  ASSIGN_OR_RETURN(ExplainFilter filter, FilterOf(arguments, whole));
  bool narrow = !filter.nodes.empty() || filter.group >= 0;
  PlanExplanation part = whole;
  if (narrow) {
    // The same function as the service's.
    ASSIGN_OR_RETURN(part, Explain(whole.plan, filter));
    part.plan_key = whole.plan_key;
    part.node_names = whole.node_names;
  }
  if (!arguments.candidates) DropCandidates(&part);
  if (arguments.json) {
    PrintJson(ExplanationJson(part));
  } else if (narrow) {
    Print(DetailText(whole, part, filter));
  } else {
    Print(OverviewText(subject.word(), part));
  }
  return kExitOk;
}

}  // namespace

absl::StatusOr<ExitCode> RunExplain(const Arguments& arguments, Progress* progress) {
  ASSIGN_OR_RETURN(PlanSubject subject, PlanSubject::Open(arguments.subject, arguments));
  if (arguments.miss && !subject.is_model()) {
    return InvalidArgument("--miss: ", QuoteShort(arguments.subject),
                           " is no model; what was asked for is a model");
  }
  if (!subject.needs_service()) return ExplainWith(arguments, subject, nullptr, progress);
  return WithService(arguments, progress, [&](const Client& client) {
    if (arguments.miss) return ExplainMiss(arguments, subject, client, progress);
    return ExplainWith(arguments, subject, &client, progress);
  });
}

}  // namespace fusion
