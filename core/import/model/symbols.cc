#include "core/import/model/symbols.h"

#include <algorithm>
#include <charconv>

#include "core/graph/symbol_names.h"

namespace fusion {
namespace {

constexpr size_t kMaxTerms = 32;

bool IsIdentifier(std::string_view text) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.empty() || !letter(text.front())) return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return letter(c) || digit(c) || c == '.'; });
}

std::optional<int64_t> ParseNumber(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool ok = error == std::errc() && end == text.data() + text.size();
  return ok && value >= 0 && value <= kMaxExtent ? std::optional(value) : std::nullopt;
}

// Sums and products here stay far from 2^127.
__extension__ typedef __int128 Wide;

}  // namespace

absl::Status SymbolTable::Declare(SymbolDecl decl) {
  auto where = [&] { return StrCat("symbol ", QuoteShort(decl.name)); };
  if (decl.name.empty()) return InvalidArgument("symbol ", entries_.size(), " has no name");
  if (by_name_.count(decl.name) != 0) return InvalidArgument(where(), " is declared twice");
  bool ordered = decl.min >= 0 && decl.max >= 0 && (decl.max == 0 || decl.max >= decl.min);
  if (!ordered || decl.min > kMaxExtent || decl.max > kMaxExtent || decl.multiple_of < 1 ||
      decl.multiple_of > kMaxExtent) {
    return InvalidArgument(where(), ": min ", decl.min, ", max ", decl.max, ", multiple of ",
                           decl.multiple_of, "; expected 0 <= min <= max and a positive multiple");
  }
  auto fits = [&](int64_t value) {
    return value >= decl.min && (decl.max == 0 || value <= decl.max) &&
           value % decl.multiple_of == 0;
  };
  for (int64_t value : decl.likely) {
    if (!fits(value))
      return InvalidArgument(where(), ": likely value ", value, " breaks its bounds");
  }
  Entry entry{.decl = decl};
  if (auto bound = bindings_.find(decl.name); bound != bindings_.end()) {
    if (!fits(bound->second)) {
      return InvalidArgument("dim ", QuoteShort(decl.name), " is bound to ", bound->second,
                             ", declared with min ", decl.min, ", max ", decl.max,
                             " (0: none), multiple of ", decl.multiple_of);
    }
    entry.value = bound->second;
  }
  by_name_[decl.name] = static_cast<SymbolId>(entries_.size());
  entries_.push_back(std::move(entry));
  return absl::OkStatus();
}

Dim SymbolTable::FromName(const std::string& name) {
  auto known = by_name_.find(name);
  if (known == by_name_.end()) {
    Entry entry{.decl = {.name = name}};
    if (auto bound = bindings_.find(name); bound != bindings_.end()) entry.value = bound->second;
    known = by_name_.emplace(name, static_cast<SymbolId>(entries_.size())).first;
    entries_.push_back(std::move(entry));
  }
  return Dim::Symbol(known->second);
}

std::optional<Dim> SymbolTable::ParseProduct(std::string_view text) {
  size_t star = text.find('*');
  std::string_view left = text.substr(0, star);
  if (star == std::string_view::npos) {
    if (auto number = ParseNumber(left)) return Dim(*number);
    if (!IsIdentifier(left)) return std::nullopt;
    return FromName(std::string(left));
  }
  std::string_view right = text.substr(star + 1);
  if (IsIdentifier(left)) std::swap(left, right);
  auto factor = ParseNumber(left);
  if (!factor || !IsIdentifier(right)) return std::nullopt;
  return FromName(std::string(right)) * *factor;
}

std::optional<Dim> SymbolTable::ParseSum(std::string_view text) {
  // Operators stand between spaces ("s16 + s62"); "batch-size" is a name.
  std::vector<std::string_view> words = StrSplit(text, ' ');
  if (words.size() % 2 == 0 || words.size() > 2 * kMaxTerms) return std::nullopt;
  // All of it must be well-formed before any part becomes a symbol.
  for (size_t i = 0; i < words.size(); ++i) {
    bool op = words[i] == "+" || words[i] == "-";
    size_t star = words[i].find('*');
    std::string_view a = words[i].substr(0, star);
    std::string_view b = star == std::string_view::npos ? "1" : words[i].substr(star + 1);
    bool product = star == std::string_view::npos
                       ? IsIdentifier(a) || ParseNumber(a)
                       : (IsIdentifier(a) && ParseNumber(b)) || (ParseNumber(a) && IsIdentifier(b));
    if (i % 2 == 1 ? !op : !product) return std::nullopt;
  }
  Dim sum;
  for (size_t i = 0; i < words.size(); i += 2) {
    auto product = ParseProduct(words[i]);
    if (!product) return std::nullopt;
    bool minus = i > 0 && words[i - 1] == "-";
    sum = minus ? sum - *product : sum + *product;
  }
  return sum;
}

Dim SymbolTable::FromText(const std::string& text) {
  auto sum = ParseSum(text);
  if (!sum) return FromName(text);
  bool compound = sum->terms().size() != 1 || *sum != Dim::Symbol(sum->terms()[0].symbol);
  auto bound = bindings_.find(text);
  if (!compound || bound == bindings_.end()) return *sum;
  bound_sums_.emplace(text, *sum);
  return Dim(bound->second);
}

std::string SymbolTable::Names() const {
  if (entries_.empty()) return "all dims are numbers";
  constexpr size_t kShown = 16;
  std::string out = "symbolic dims: ";
  for (size_t i = 0; i < entries_.size() && i < kShown; ++i) {
    StrAppend(&out, i > 0 ? ", " : "");
    StrAppend(&out, QuoteShort(entries_[i].decl.name));
  }
  if (entries_.size() > kShown) out += ", ...";
  return out;
}

absl::Status SymbolTable::CheckBindings() const {
  for (const auto& [name, value] : bindings_) {
    if (value < 0 || value > kMaxExtent) {
      return InvalidArgument("dim ", QuoteShort(name), " is bound to ", value, ", expected 0..",
                             kMaxExtent);
    }
    auto sum = bound_sums_.find(name);
    if (by_name_.count(name) == 0 && sum == bound_sums_.end()) {
      return InvalidArgument(ranged_.contains(name) ? "dim_ranges" : "dim_bindings", " name ",
                             QuoteShort(name), ", which is no dim; ", Names());
    }
    if (sum == bound_sums_.end()) continue;
    auto other = StaticValue(sum->second);
    if (other && *other != value) {
      return InvalidArgument("dim ", QuoteShort(name), " is bound to ", value,
                             ", the symbols in it add up to ", *other);
    }
  }
  return absl::OkStatus();
}

absl::Status SymbolTable::BindBatch(int64_t batch_size, const std::vector<Shape>& shapes) {
  if (batch_size == 0) return absl::OkStatus();
  if (batch_size < 0 || batch_size > kMaxExtent) {
    return InvalidArgument("batch_size is ", batch_size, ", expected 0 (not given) or 1..",
                           kMaxExtent);
  }
  bool any = false;
  std::string leads;
  for (const Shape& shape : shapes) {
    if (shape.rank() == 0) continue;
    const Dim& lead = shape.dim(0);
    bool symbol = lead.terms().size() == 1 && lead == Dim::Symbol(lead.terms()[0].symbol);
    if (symbol) {
      Entry& e = entries_[static_cast<size_t>(lead.terms()[0].symbol)];
      if (!e.value) {
        const SymbolDecl& d = e.decl;
        if (batch_size < d.min || (d.max > 0 && batch_size > d.max) ||
            batch_size % d.multiple_of != 0) {
          return InvalidArgument("batch_size ", batch_size, " breaks the bounds of dim ",
                                 QuoteShort(d.name), ": min ", d.min, ", max ", d.max,
                                 " (0: none), multiple of ", d.multiple_of);
        }
        e.value = batch_size;
      }
    }
    auto value = StaticValue(lead);
    any |= !value || *value == batch_size;
    if (value && leads.size() < 200) StrAppend(&leads, StrCat(leads.empty() ? "" : ", ", *value));
  }
  if (any || leads.empty()) return absl::OkStatus();
  return InvalidArgument("batch_size is ", batch_size,
                         ", but no input has that as its leading dim; leading dims are ", leads);
}

std::optional<int64_t> SymbolTable::StaticValue(const Dim& local) const {
  Wide sum = local.constant();
  for (const Dim::Term& t : local.terms()) {
    const Entry& e = entry(t.symbol);
    if (!e.value) return std::nullopt;
    sum += static_cast<Wide>(t.coefficient) * *e.value;
  }
  if (sum < 0 || sum > kMaxExtent) return std::nullopt;
  return static_cast<int64_t>(sum);
}

absl::StatusOr<Dim> SymbolTable::Resolve(const Dim& local, GraphBuilder* builder) {
  Wide constant = local.constant();
  Dim open;
  for (const Dim::Term& t : local.terms()) {
    Entry& e = entries_[static_cast<size_t>(t.symbol)];
    if (e.value) {
      constant += static_cast<Wide>(t.coefficient) * *e.value;
      continue;
    }
    if (e.graph_id < 0) e.graph_id = builder->AddSymbol(e.decl);
    open = open + Dim::Symbol(e.graph_id, t.coefficient);
  }
  bool sane = constant <= kMaxExtent && constant >= (open.is_static() ? 0 : -Wide{kMaxExtent});
  if (!sane) {
    return InvalidArgument("an extent is ", constant < 0 ? "negative" : "larger than 2^40",
                           " with the dims as they are bound");
  }
  return open + Dim(static_cast<int64_t>(constant));
}

absl::StatusOr<Shape> SymbolTable::Resolve(const Shape& local, GraphBuilder* builder) {
  std::vector<Dim> dims;
  for (const Dim& dim : local.dims()) {
    ASSIGN_OR_RETURN(Dim resolved, Resolve(dim, builder));
    dims.push_back(std::move(resolved));
  }
  return Shape(std::move(dims));
}

std::string SymbolTable::OpenSymbolHint(const std::vector<TensorType>& types) const {
  std::vector<SymbolId> open;
  for (const TensorType& type : types) {
    for (const Dim& dim : type.shape.dims()) {
      for (const Dim::Term& t : dim.terms()) open.push_back(t.symbol);
    }
  }
  std::sort(open.begin(), open.end());
  open.erase(std::unique(open.begin(), open.end()), open.end());
  constexpr size_t kShown = 8;
  if (open.size() > kShown) open.resize(kShown);
  std::string out;
  for (SymbolId id : open) {
    auto found = std::find_if(entries_.begin(), entries_.end(),
                              [id](const Entry& e) { return e.graph_id == id; });
    if (found == entries_.end()) continue;
    StrAppend(&out, StrCat(out.empty() ? "" : "; ", "dim ", QuoteShort(found->decl.name),
                           " is symbolic"));
  }
  if (!out.empty()) {
    out +=
        "; bind it with dim_bindings or, if it is the batch, with batch_size, or leave it open "
        "with dim_ranges";
  }
  return out;
}

absl::Status SymbolTable::InModelWords(const absl::Status& status) const {
  std::vector<SymbolDecl> symbols;
  for (const Entry& e : entries_) {
    if (e.graph_id < 0) continue;
    const auto id = static_cast<size_t>(e.graph_id);
    if (symbols.size() <= id) symbols.resize(id + 1);
    symbols[id] = e.decl;
  }
  return WithSymbolNames(status, symbols);
}

}  // namespace fusion
