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

/// What one import also tells; null: nobody asks.
struct ImportNotes {
  std::map<std::string, Dims>* folded = nullptr;  // ImportOptions::folded
  ShapeTrace* trace = nullptr;                    // ImportOptions::trace
};

/// Imports the model of a request where its dims have these values.
using Importer = std::function<absl::StatusOr<Graph>(const DimValues&, const ImportNotes&)>;

/// Turns each range of one value into a binding.
void BindSingleValues(PlanOptions* options);

/// The dims of a request where its open ones have their largest values. InvalidArgument, naming the
/// dim, for a range that leaves nothing open and for a dim that also has a value.
absl::StatusOr<DimValues> LargestDims(const PlanOptions& options);

/// Names of the tensors that depend on shapes alone and have a shape that depends on open dims, as
/// tables of positions and masks: they are no constants of the family. Empty without open dims.
std::set<std::string> OpenTables(const PlanOptions& options, const Importer& import);

/// The graphs of a request whose dims stay open. `largest` is that of the largest values; it gets
/// shape classes. `key`: tells families of one largest graph apart. The family is checked
/// (CheckDecisions, CheckPrograms): FailedPrecondition, naming node and dim, where no one plan is
/// proven right for all values.
absl::StatusOr<std::shared_ptr<const ShapeFamily>> ImportFamily(const PlanOptions& options,
                                                                const Importer& import,
                                                                const CancelToken* cancel,
                                                                CanonicalGraph* largest,
                                                                std::string* key);

}  // namespace fusion
