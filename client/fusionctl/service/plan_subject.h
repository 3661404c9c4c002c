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

/// The key of the stored plan that `word` (a key or a prefix of one) names. A complete key is not
/// looked up. Fails as FindPlan and Client::ListPlans do.
absl::StatusOr<Digest> FindStoredPlan(const std::string& word, const Client& client);

/// True if `word` names a file, false if it is a plan key or a prefix of one. An existing file
/// takes precedence over a key; a longer prefix avoids the clash. NotFound if it is neither.
/// InvalidArgument if it is a key and `model_option` (empty: none) is given, an option that only
/// applies to a model.
absl::StatusOr<bool> IsFileSubject(const std::string& word, const std::string& model_option);

/// A plan that the command line names: by a model, a stored plan's key, or a file of
/// SaveExplanation. `arguments` must outlive it.
class PlanSubject {
 public:
  /// Reads the file if `word` names one. Errors are bad input. A key needs --server or --store.
  static absl::StatusOr<PlanSubject> Open(const std::string& word, const Arguments& arguments);

  const std::string& word() const { return word_; }
  bool is_model() const { return model_ != nullptr; }
  /// False for a saved explanation.
  bool needs_service() const { return !saved_.has_value(); }

  /// The complete explanation. `client` may be null unless needs_service(). A model with an opt
  /// level is compiled first, because tiles are timed only then.
  absl::StatusOr<PlanExplanation> Explain(const Client* client, Progress* progress) const;
  /// The request for the model's plan. Requires is_model().
  FusionRequest Request() const;
  /// The model's graph in the order of its plan, with the model's names. Requires is_model().
  absl::StatusOr<Graph> PlannedGraph(const Client& client, Progress* progress) const;

 private:
  explicit PlanSubject(const Arguments& arguments) : arguments_(&arguments) {}
  const Arguments* arguments_;
  std::string word_;
  std::unique_ptr<ModelFile> model_;
  std::optional<PlanExplanation> saved_;
};

/// Writes an explanation to a file that PlanSubject reads. Fails as WriteOptionFile does for
/// --save.
absl::Status SaveExplanation(const std::string& path, const PlanExplanation& explanation);

/// Writes the file of `option`, with the permissions that the umask gives. Errors name both: bad
/// input, or kExitService if the file system cannot be written (IsUnwritable).
absl::Status WriteOptionFile(std::string_view option, const std::string& path,
                             std::string_view bytes);

}  // namespace fusion
