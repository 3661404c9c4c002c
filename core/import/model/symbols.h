#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/build/builder.h"

namespace fusion {

/// The symbolic dims of one request: their names, the numbers that the caller binds them to, and
/// which stay open. A "local" Dim or Shape uses the symbol numbers of this table; Resolve converts
/// it to the graph's form.
///
///   SymbolTable symbols(options.dim_bindings);
///   Dim total = symbols.FromText("past + 1");
///   RETURN_IF_ERROR(symbols.CheckBindings());
///   RETURN_IF_ERROR(symbols.BindBatch(options.batch_size, local_shapes));
///   ASSIGN_OR_RETURN(Dim dim, symbols.Resolve(total, &builder));
///
/// Order of calls: first Declare, FromText and FromName for every dim, then CheckBindings, then
/// BindBatch, then Resolve. `bindings` must outlive the table. Not thread-safe.
class SymbolTable {
 public:
  /// `ranged`: see ImportOptions::ranged_dims.
  explicit SymbolTable(const std::map<std::string, int64_t>& bindings,
                       std::set<std::string> ranged = {})
      : bindings_(bindings), ranged_(std::move(ranged)) {}

  /// Adds a symbol with bounds; numbers count up from 0. InvalidArgument if the name is taken or
  /// empty, or if the bounds contradict each other or the binding.
  absl::Status Declare(SymbolDecl decl);

  /// The local dim of an ONNX dim_param. A sum such as "s16 + s62", "seq - 1" or "2*s0" is parsed;
  /// any other text is one symbol. A binding of the whole text takes precedence.
  Dim FromText(const std::string& text);
  /// The symbol with exactly this name.
  Dim FromName(const std::string& name);

  /// InvalidArgument if a binding matches no dim, is out of range, or contradicts another.
  absl::Status CheckBindings() const;

  /// Binds the leading symbols of `shapes` (local form) to `batch_size`; 0: does nothing.
  /// InvalidArgument if `batch_size` violates the bounds of a symbol, or if then every leading dim
  /// is a number and none is `batch_size`.
  absl::Status BindBatch(int64_t batch_size, const std::vector<Shape>& shapes);

  /// The dim with bound symbols replaced by their numbers; open symbols are added to `builder`.
  /// InvalidArgument if the result is outside 0..kMaxExtent.
  absl::StatusOr<Dim> Resolve(const Dim& local, GraphBuilder* builder);
  absl::StatusOr<Shape> Resolve(const Shape& local, GraphBuilder* builder);

  /// The number, if every symbol is bound and the result is in range.
  std::optional<int64_t> StaticValue(const Dim& local) const;

  /// 'dim "seq" is symbolic; bind it with dim_bindings' for the open symbols in the graph's
  /// `types`; empty if there are none.
  std::string OpenSymbolHint(const std::vector<TensorType>& types) const;

  /// Replaces symbol numbers in a message about the graph by the model's names.
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
  // Texts of sums that are bound as a whole: the local dim and the number.
  std::map<std::string, Dim> bound_sums_;
};

}  // namespace fusion
