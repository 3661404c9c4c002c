#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "core/base/threads/cancel.h"
#include "core/graph/build/canonical.h"
#include "core/graph/shape_trace.h"
#include "core/pipeline/families/family.h"

namespace fusion {

using DimValues = std::map<std::string, int64_t>;

/// Optional results of one import; null: not wanted.
struct ImportNotes {
  std::map<std::string, Dims>* folded = nullptr;  // ImportOptions::folded
  ShapeTrace* trace = nullptr;                    // ImportOptions::trace
};

/// Imports the model of a request for these values of its dims.
using Importer = std::function<absl::StatusOr<Graph>(const DimValues&, const ImportNotes&)>;

/// Turns each range of a single value into a binding.
void BindSingleValues(PlanOptions* options);

/// The dims of a request, open ones at their largest values. InvalidArgument, naming the dim, for a
/// range that ends below 2 and for a dim that also has a binding.
absl::StatusOr<DimValues> LargestDims(const PlanOptions& options);

/// Names of tensors that depend on shapes alone and whose own shape depends on open dims, such as
/// tables of positions and masks: they are not constants of the family. Empty without open dims.
std::set<std::string> OpenTables(const PlanOptions& options, const Importer& import);

/// The graphs of a request with open dims. `largest`: the graph of the largest values, which gets
/// shape classes. `key`: distinguishes families with the same largest graph. The family is checked
/// (CheckDecisions, CheckPrograms): FailedPrecondition, naming node and dim, if one plan is not
/// proven right for all values. InvalidArgument if the model cannot be imported for a value.
absl::StatusOr<std::shared_ptr<const ShapeFamily>> ImportFamily(const PlanOptions& options,
                                                                const Importer& import,
                                                                const CancelToken* cancel,
                                                                CanonicalGraph* largest,
                                                                std::string* key);

}  // namespace fusion
