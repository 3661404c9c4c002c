#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/build/builder.h"

namespace fusion {

/// The symbolic dims of one request: their names, the numbers the caller binds them to, and which
/// stay open. Dims in "local" form name symbols by their number here; Resolve gives the graph's
/// form.
///
///   SymbolTable symbols(options.dim_bindings);
///   Dim total = symbols.FromText("past + 1");
///   RETURN_IF_ERROR(symbols.CheckBindings());
///   RETURN_IF_ERROR(symbols.BindBatch(options.batch_size, input_names, local_shapes));
///   ASSIGN_OR_RETURN(Dim dim, symbols.Resolve(total, &builder));
///
/// Not thread-safe.
class SymbolTable {
 public:
  explicit SymbolTable(const std::map<std::string, int64_t>& bindings,
                       std::set<std::string> ranged = {})
      : bindings_(bindings), ranged_(std::move(ranged)) {}

  /// A symbol with bounds. Its number counts up from 0. InvalidArgument if the name is taken or
  /// empty, or the bounds contradict each other or the binding.
  absl::Status Declare(SymbolDecl decl);

  /// The local dim of an ONNX dim_param: a sum such as "s16 + s62", "seq - 1" or "2*s0" is taken
  /// apart, anything else is one symbol. A binding of the whole text goes first.
  Dim FromText(const std::string& text);
  /// A symbol of this very name.
  Dim FromName(const std::string& name);

  /// InvalidArgument if a binding names nothing, is negative or absurd, or contradicts another.
  absl::Status CheckBindings() const;

  /// Binds the symbols that lead `shapes` (local) to `batch_size` as ImportOptions::batch_size
  /// says.
  absl::Status BindBatch(int64_t batch_size, const std::vector<Shape>& shapes);

  /// The dim with bound symbols replaced by their numbers; open ones are added to `builder`.
  /// InvalidArgument if a number does not come out between 0 and kMaxExtent.
  absl::StatusOr<Dim> Resolve(const Dim& local, GraphBuilder* builder);
  absl::StatusOr<Shape> Resolve(const Shape& local, GraphBuilder* builder);

  /// The number, if every symbol is bound and it is a sane one.
  std::optional<int64_t> StaticValue(const Dim& local) const;

  /// 'dim "seq" is symbolic; bind it with dim_bindings' for the open symbols in the graph's
  /// `types`; empty if there are none.
  std::string OpenSymbolHint(const std::vector<TensorType>& types) const;

  /// A message about the graph, in which symbols have numbers, with the model's names for them.
  absl::Status InModelWords(const absl::Status& status) const;

 private:
  struct Entry {
    SymbolDecl decl;
    std::optional<int64_t> value;
    SymbolId graph_id = -1;
  };
  std::optional<Dim> ParseSum(std::string_view text);
  std::optional<Dim> ParseProduct(std::string_view text);
  std::string Names() const;
  const Entry& entry(SymbolId id) const { return entries_[static_cast<size_t>(id)]; }

  const std::map<std::string, int64_t>& bindings_;
  const std::set<std::string> ranged_;
  std::vector<Entry> entries_;
  std::map<std::string, SymbolId, std::less<>> by_name_;
  // Sums that a binding gives as a whole: the local dim and the number.
  std::map<std::string, Dim> bound_sums_;
};

}  // namespace fusion
