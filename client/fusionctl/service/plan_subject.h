#pragma once

#include <memory>
#include <optional>
#include <string>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/input/model_file.h"
#include "client/fusionctl/output/terminal.h"
#include "core/bundle/explanation.h"
#include "core/graph/graph.h"

namespace fusion {

/// The key of the one stored plan that `word`, a key or the beginning of one, names. Fails as
/// FindPlan and Client::ListPlans do.
absl::StatusOr<Digest> FindStoredPlan(const std::string& word, const Client& client);

/// Whether `word` names a file; else it is a plan key or the beginning of one. A file goes before a
/// key: another digit of the key tells it from the file. NotFound if it is neither; InvalidArgument
/// if it is a key and `model_option` (empty: none) says how a model is planned.
absl::StatusOr<bool> IsFileSubject(const std::string& word, const std::string& model_option);

/// A plan as the command line names it: a model, a stored plan's key, or a file that
/// SaveExplanation wrote.
class PlanSubject {
 public:
  /// Reads the file, if it is one; errors are bad input.
  static absl::StatusOr<PlanSubject> Open(const std::string& word, const Arguments& arguments);

  const std::string& word() const { return word_; }
  bool is_model() const { return model_ != nullptr; }
  /// False: everything is in the file.
  bool needs_service() const { return !saved_.has_value(); }

  /// `client` may be null where no service is needed. A model that is planned with an opt level is
  /// compiled first, so that there is something to tell of its tiles.
  absl::StatusOr<PlanExplanation> Explain(const Client* client, Progress* progress) const;
  /// The request that a model's plan is asked for with; of a model only.
  FusionRequest Request() const;
  /// The graph of a model in the order of its plan, with the caller's names.
  absl::StatusOr<Graph> PlannedGraph(const Client& client, Progress* progress) const;

 private:
  explicit PlanSubject(const Arguments& arguments) : arguments_(&arguments) {}
  const Arguments* arguments_;
  std::string word_;
  std::unique_ptr<ModelFile> model_;
  std::optional<PlanExplanation> saved_;
};

/// Keeps what the service said, for PlanSubject to read. InvalidArgument, naming option and file,
/// if it cannot be written.
absl::Status SaveExplanation(const std::string& path, const PlanExplanation& explanation);

/// Writes a file that was asked for with `option`, with the rights that files usually get. Errors
/// are bad input and name both.
absl::Status WriteOptionFile(std::string_view option, const std::string& path,
                             std::string_view bytes);

}  // namespace fusion
