#include "client/fusionctl/service/plan_subject.h"

#include <filesystem>

#include "client/fusionctl/args/exit_code.h"
#include "client/fusionctl/input/named_graph.h"
#include "client/fusionctl/service/plan_keys.h"
#include "client/fusionctl/service/session.h"
#include "core/base/files/file.h"
#include "core/wire/explanation.h"

namespace fusion {
namespace {

// The first line of a saved explanation.
constexpr std::string_view kMagic = "fusion.v1.ExplainPlanResponse\n";
// Enough for a plan of a hundred thousand nodes, at about 500 bytes per entry.
constexpr int64_t kMaxSavedBytes = int64_t{1} << 30;

// False also for an unreadable file, which is reported later.
bool IsSaved(const std::string& path) {
  absl::StatusOr<RegularFile> file = OpenRegularFile(path);
  std::string start(kMagic.size(), '\0');
  return file.ok() && BytesOf(*file).ReadFully(start.data(), start.size()).ok() && start == kMagic;
}

}  // namespace

absl::StatusOr<Digest> FindStoredPlan(const std::string& word, const Client& client) {
  Digest whole;
  if (Digest::FromHex(word, &whole)) return whole;
  ASSIGN_OR_RETURN(std::vector<PlanSummary> plans, client.ListPlans());
  return FindPlan(word, plans);
}

absl::StatusOr<bool> IsFileSubject(const std::string& word, const std::string& model_option) {
  std::error_code ignored;
  if (std::filesystem::exists(word, ignored)) return true;
  if (!LooksLikeKey(word)) {
    return NotFound(QuoteShort(word), " is neither a file nor a plan key of ", kMinKeyDigits,
                    "..64 hex digits");
  }
  if (!model_option.empty()) {
    return InvalidArgument(model_option, " says how a model is planned; ", QuoteShort(word),
                           " is the key of a plan, no file");
  }
  return false;
}

absl::StatusOr<PlanSubject> PlanSubject::Open(const std::string& word, const Arguments& arguments) {
  PlanSubject subject(arguments);
  subject.word_ = word;
  ASSIGN_OR_RETURN(bool is_file, IsFileSubject(word, arguments.model_option));
  if (!is_file) {
    if (arguments.server.empty() && arguments.store.empty()) {
      return InvalidArgument("the plan ", word,
                             " of which service? expected --server ADDRESS or --store DIR");
    }
    return subject;
  }
  if (!IsSaved(word)) {
    ASSIGN_OR_RETURN(subject.model_, ModelFile::Load(word, arguments));
    return subject;
  }
  if (!arguments.model_option.empty()) {
    return InvalidArgument(arguments.model_option, " says how a model is planned; ",
                           QuoteShort(word), " is a plan that was saved");
  }
  absl::StatusOr<std::string> bytes = ReadFile(word, kMaxSavedBytes);
  if (!bytes.ok()) return BadInput(bytes.status());
  absl::StatusOr<PlanExplanation> saved =
      ExplanationFromBytes(std::string_view(*bytes).substr(kMagic.size()));
  if (!saved.ok()) return BadInput(Annotate(saved.status(), word));
  subject.saved_ = *std::move(saved);
  return subject;
}

absl::StatusOr<PlanExplanation> PlanSubject::Explain(const Client* client,
                                                     Progress* progress) const {
  if (saved_.has_value()) {
    ASSIGN_OR_RETURN(PlanExplanation part, fusion::Explain(saved_->plan, {}));
    part.plan_key = saved_->plan_key;
    part.node_names = saved_->node_names;
    part.cache = saved_->cache;
    return part;
  }
  if (model_ != nullptr) {
    const FusionRequest request = Request();
    // Tiles are timed when kernels are compiled, which ExplainPlan does not do.
    if (request.options.opt_level > 0 && request.options.lock == nullptr) {
      const absl::Status made = PlanWithProgress(*client, request, progress).status();
      // A service that cannot compile the plan can still explain it.
      if (!absl::IsUnimplemented(made) && !absl::IsFailedPrecondition(made)) RETURN_IF_ERROR(made);
    }
    return client->ExplainPlan(request);
  }
  ASSIGN_OR_RETURN(Digest key, FindStoredPlan(word_, *client));
  return client->ExplainPlan(key);
}

FusionRequest PlanSubject::Request() const {
  return model_->Request(*arguments_, arguments_->options);
}

absl::StatusOr<Graph> PlanSubject::PlannedGraph(const Client& client, Progress* progress) const {
  FusionRequest request = Request();
  request.mode = PlanMode::kPlanOnly;
  request.dumps = {DumpKind::kGraph};
  ASSIGN_OR_RETURN(FusionReply reply, PlanWithProgress(client, request, progress));
  return NamedGraph(reply);
}

absl::Status SaveExplanation(const std::string& path, const PlanExplanation& explanation) {
  return WriteOptionFile("--save", path, StrCat(kMagic, ExplanationToBytes(explanation)));
}

absl::Status WriteOptionFile(std::string_view option, const std::string& path,
                             std::string_view bytes) {
  // Pages and pictures may be for other users too.
  absl::Status written = WriteFile(path, bytes, FileRights::kUmask);
  return BadInput(Annotate(written, option));
}

}  // namespace fusion
