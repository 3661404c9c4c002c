// fusionctl store: maintains the stored plans and kernels of a service.
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "client/admin_client.h"
#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/args/exit_code.h"
#include "client/fusionctl/commands/commands.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/service/plan_keys.h"
#include "client/fusionctl/service/session.h"
#include "client/fusionctl/service/stored_kernel.h"
#include "core/base/files/file.h"
#include "core/base/files/server_state.h"
#include "core/base/files/unwritable.h"

namespace fusion {
namespace {

constexpr size_t kBlockBytes = 1 << 20;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

absl::Status FileError(std::string_view option, const std::string& path) {
  const int why = errno;
  return WithWriteError(
      InvalidArgument(option, " ", Quote(path), ": ", std::generic_category().message(why)), why);
}

// The plans that the command line names; calls the service only if a key is incomplete.
absl::StatusOr<std::vector<Digest>> PlansOf(const Arguments& a, const Client& client) {
  std::vector<Digest> out;
  std::optional<std::vector<PlanSummary>> stored;
  for (const std::string& word : a.plan_keys) {
    Digest whole;
    if (Digest::FromHex(word, &whole)) {
      out.push_back(whole);
      continue;
    }
    if (!LooksLikeKey(word)) {
      return InvalidArgument(QuoteShort(word), " is no key of a plan: expected ", kMinKeyDigits,
                             " to 64 hex digits");
    }
    if (!stored.has_value()) {
      ASSIGN_OR_RETURN(stored, client.ListPlans());
    }
    ASSIGN_OR_RETURN(Digest found, FindPlan(word, *stored));
    out.push_back(found);
  }
  return out;
}

template <typename Damages>
Json DamageJson(const Damages& damages) {
  Json out = Json::array();
  for (const v1::StoreDamage& damage : damages) {
    out.push_back({{"kind", damage.kind()}, {"name", damage.name()}, {"reason", damage.reason()}});
  }
  return out;
}

template <typename Damages>
std::string DamageText(const Damages& damages, int64_t all) {
  std::string out;
  for (const v1::StoreDamage& damage : damages) {
    out += StrCat(damage.kind(), " ", damage.name(), ": ", damage.reason(), "\n");
  }
  if (all > damages.size()) out += StrCat("and ", all - damages.size(), " more\n");
  return out;
}

Json StatsJson(const v1::GetStoreStatsResponse& stats) {
  Json tiers = Json::array();
  for (const v1::StoreTier& t : stats.tiers()) {
    tiers.push_back({{"name", t.name()},
                     {"plans", t.plans()},
                     {"kernels", t.kernels()},
                     {"bytes", t.bytes()},
                     {"limit_bytes", t.limit_bytes()},
                     {"disk_bytes", t.disk_bytes()},
                     {"pinned_plans", t.pinned_plans()},
                     {"pinned_bytes", t.pinned_bytes()},
                     {"evicted", t.evicted()},
                     {"dropped", t.dropped()},
                     {"write_failures", t.write_failures()},
                     {"unwritten_plans", t.unwritten_plans()},
                     {"writable", t.writable()},
                     {"not_writable", t.not_writable()}});
  }
  Json tenants = Json::object();
  for (const auto& [tenant, bytes] :
       std::map<std::string, int64_t>(stats.tenant_bytes().begin(), stats.tenant_bytes().end())) {
    tenants[tenant] = bytes;
  }
  return {{"tiers", tiers},
          {"directory", stats.directory()},
          {"free_bytes", stats.free_bytes()},
          {"min_free_bytes", stats.min_free_bytes()},
          {"schema_version", stats.schema_version()},
          {"started_empty", stats.started_empty()},
          {"set_aside", stats.set_aside()},
          {"set_aside_bytes", stats.set_aside_bytes()},
          {"tenant_bytes", tenants}};
}

std::string StatsText(const v1::GetStoreStatsResponse& stats) {
  Table table({{"tier"},
               {"plans", Table::kRight},
               {"kernels", Table::kRight},
               {"bytes", Table::kRight},
               {"of", Table::kRight},
               {"on disk", Table::kRight},
               {"pinned", Table::kRight},
               {"evicted", Table::kRight, /*spare=*/2},
               {"dropped", Table::kRight, /*spare=*/1},
               {"not written", Table::kRight, /*spare=*/3}});
  std::string refusals;
  for (const v1::StoreTier& t : stats.tiers()) {
    const bool disk = t.disk_bytes() > 0;
    table.Add({t.name(), StrCat(t.plans()), StrCat(t.kernels()), HumanBytes(t.bytes()),
               t.limit_bytes() == INT64_MAX ? "-" : HumanBytes(t.limit_bytes()),
               disk ? HumanBytes(t.disk_bytes()) : "-",
               disk ? StrCat(t.pinned_plans(), ", ", HumanBytes(t.pinned_bytes())) : "-",
               StrCat(t.evicted()), StrCat(t.dropped()), StrCat(t.write_failures())});
    if (!t.writable()) {
      refusals += StrCat("nothing is written (", t.name(), "): ", t.not_writable(), "\n");
    }
    if (t.unwritten_plans() > 0) {
      refusals +=
          StrCat(t.unwritten_plans(), " plans are in memory alone until they can be written\n");
    }
  }
  std::string out = table.ToString();
  if (stats.directory().empty()) return StrCat(out, "\nnothing is kept on disk\n", refusals);
  out += StrCat("\ndirectory:  ", stats.directory(), ", schema version ", stats.schema_version(),
                "\nfree:       ", HumanBytes(stats.free_bytes()), "; nothing is written below ",
                HumanBytes(stats.min_free_bytes()), "\n");
  for (const auto& [tenant, bytes] :
       std::map<std::string, int64_t>(stats.tenant_bytes().begin(), stats.tenant_bytes().end())) {
    out +=
        StrCat("tenant:     ", tenant.empty() ? "(none)" : tenant, ", ", HumanBytes(bytes), "\n");
  }
  if (stats.started_empty()) {
    out +=
        StrCat("a damaged store was put aside when the server started: ", stats.set_aside(), "\n");
  }
  if (stats.set_aside_bytes() > 0) {
    out += StrCat("put aside:  ", HumanBytes(stats.set_aside_bytes()), " beside ",
                  stats.directory(), "; delete it when nobody needs it\n");
  }
  return out + refusals;
}

absl::StatusOr<ExitCode> Stats(const Arguments& a, const AdminClient& admin, Progress* progress) {
  ASSIGN_OR_RETURN(v1::GetStoreStatsResponse stats, admin.GetStoreStats());
  progress->Clear();
  a.json ? PrintJson(StatsJson(stats)) : Print(StatsText(stats));
  return kExitOk;
}

absl::StatusOr<ExitCode> Verify(const Arguments& a, const AdminClient& admin, Progress* progress) {
  progress->Show("reading the store");
  ASSIGN_OR_RETURN(v1::VerifyStoreResponse found, admin.VerifyStore());
  progress->Clear();
  if (a.json) {
    PrintJson(Json{{"plans", found.plans()},
                   {"kernels", found.kernels()},
                   {"bytes", found.bytes()},
                   {"files", found.files()},
                   {"damaged", found.damaged()},
                   {"damage", DamageJson(found.damage())},
                   {"missing_kernels", found.missing_kernels()}});
  } else {
    Print(StrCat(DamageText(found.damage(), found.damaged()), found.plans(), " plans, ",
                 found.kernels(), " kernels (", HumanBytes(found.bytes()), ") and ", found.files(),
                 " files read, ", found.damaged(), " damaged",
                 found.missing_kernels() > 0
                     ? StrCat("; ", found.missing_kernels(), " kernels of plans are not stored")
                     : std::string(),
                 "\n"));
  }
  return found.damaged() > 0 ? kExitMismatch : kExitOk;
}

absl::StatusOr<ExitCode> Compact(const Arguments& a, const AdminClient& admin, Progress* progress) {
  progress->Show("compacting the store");
  ASSIGN_OR_RETURN(v1::CompactStoreResponse sizes, admin.CompactStore());
  progress->Clear();
  if (a.json) {
    PrintJson(Json{{"disk_bytes_before", sizes.disk_bytes_before()},
                   {"disk_bytes_after", sizes.disk_bytes_after()}});
  } else {
    Print(StrCat(HumanBytes(sizes.disk_bytes_before()), " on disk before, ",
                 HumanBytes(sizes.disk_bytes_after()), " after\n"));
  }
  return kExitOk;
}

absl::StatusOr<ExitCode> SetPinned(const Arguments& a, const Client& client,
                                   const AdminClient& admin, Progress* progress) {
  const bool pin = a.action == StoreAction::kPin;
  ASSIGN_OR_RETURN(std::vector<Digest> plans, PlansOf(a, client));
  ASSIGN_OR_RETURN(v1::SetPinnedResponse now, admin.SetPinned(plans, pin));
  progress->Clear();
  if (a.json) {
    PrintJson(Json{{"changed", now.changed()},
                   {"pinned_plans", now.pinned_plans()},
                   {"pinned_bytes", now.pinned_bytes()},
                   {"missing_kernels", now.missing_kernels()},
                   {"not_written", now.not_written()}});
  } else {
    Print(StrCat(now.changed(), pin ? " pinned" : " unpinned", "; ", now.pinned_plans(),
                 " plans are pinned, ", HumanBytes(now.pinned_bytes()), " with their kernels\n"));
    if (now.missing_kernels() > 0) {
      Print(StrCat(now.missing_kernels(), " of their kernels are not stored; ",
                   now.not_written().empty()
                       ? std::string("plan the model again to have them made")
                       : StrCat("those in memory could not be written: ", now.not_written()),
                   "\n"));
    }
  }
  return kExitOk;
}

absl::StatusOr<ExitCode> Invalidate(const Arguments& a, const Client& client,
                                    const AdminClient& admin, Progress* progress) {
  ASSIGN_OR_RETURN(std::vector<Digest> plans, PlansOf(a, client));
  std::vector<Digest> kernels;
  for (const std::string& word : a.kernel_keys) {
    ASSIGN_OR_RETURN(Digest kernel, FindKernel(word, client));
    kernels.push_back(kernel);
  }
  ASSIGN_OR_RETURN(v1::InvalidateResponse gone, a.all ? admin.InvalidateAll(a.reason)
                                                      : admin.Invalidate(plans, kernels, a.reason));
  progress->Clear();
  if (a.json) {
    PrintJson(
        Json{{"plans", gone.plans()}, {"kernels", gone.kernels()}, {"failures", gone.failures()}});
  } else {
    Print(StrCat(gone.plans(), " plans, ", gone.kernels(), " kernels and ", gone.failures(),
                 " failures forgotten\n"));
  }
  return kExitOk;
}

absl::StatusOr<ExitCode> Export(const Arguments& a, const Client& client, const AdminClient& admin,
                                Progress* progress) {
  ASSIGN_OR_RETURN(std::vector<Digest> plans, PlansOf(a, client));
  // Written under another name until it is complete.
  const std::string part = a.out + ".part";
  RETURN_IF_ERROR(Annotate(CheckReplacesFile(part), StrCat("--out: file ", Quote(part))));
  File file(std::fopen(part.c_str(), "wb"));
  if (file == nullptr) return FileError("--out", part);
  int64_t bytes = 0;
  absl::Status done = admin.ExportStore(plans, [&](std::string_view chunk) -> absl::Status {
    if (std::fwrite(chunk.data(), 1, chunk.size(), file.get()) != chunk.size()) {
      return FileError("--out", part);
    }
    bytes += static_cast<int64_t>(chunk.size());
    progress->Show(StrCat("exporting: ", HumanBytes(bytes)));
    return absl::OkStatus();
  });
  if (std::fclose(file.release()) != 0 && done.ok()) done = FileError("--out", part);
  std::error_code error;
  if (done.ok()) std::filesystem::rename(part, a.out, error);
  if (error) {
    done = WithWriteError(InvalidArgument("--out ", Quote(a.out), ": ", error.message()),
                          error.value());
  }
  if (!done.ok()) std::filesystem::remove(part, error);
  RETURN_IF_ERROR(done);
  progress->Clear();
  if (a.json) {
    PrintJson(Json{{"file", a.out}, {"bytes", bytes}});
  } else {
    Print(StrCat(HumanBytes(bytes), " written to ", a.out, "\n"));
  }
  return kExitOk;
}

absl::StatusOr<ExitCode> Import(const Arguments& a, const AdminClient& admin, Progress* progress) {
  const std::string what = StrCat("--from ", Quote(a.from));
  absl::StatusOr<RegularFile> file = OpenRegularFile(a.from);
  if (!file.ok()) return BadInput(Annotate(file.status(), what));
  const ByteSource source = BytesOf(*file);
  int64_t bytes = 0;
  absl::StatusOr<v1::ImportStoreResponse> taken =
      admin.ImportStore([&]() -> absl::StatusOr<std::string> {
        std::string block(kBlockBytes, '\0');
        absl::StatusOr<size_t> read = source.ReadFully(block.data(), block.size());
        if (!read.ok()) return BadInput(Annotate(read.status(), what));
        block.resize(*read);
        bytes += static_cast<int64_t>(block.size());
        progress->Show(StrCat("importing: ", HumanBytes(bytes)));
        return block;
      });
  progress->Clear();
  // A damaged file, or one of another version, is bad input.
  if (absl::IsDataLoss(taken.status()) ||
      (absl::IsFailedPrecondition(taken.status()) && !IsOfServerState(taken.status()))) {
    return InvalidArgument(what, ": ", Message(taken.status()));
  }
  RETURN_IF_ERROR(taken.status());
  if (a.json) {
    PrintJson(Json{{"plans", taken->plans()},
                   {"kernels", taken->kernels()},
                   {"known", taken->known()},
                   {"remade", taken->remade()},
                   {"refused_plans", taken->refused_plans()},
                   {"refused", DamageJson(taken->refused())}});
  } else {
    Print(StrCat(DamageText(taken->refused(), taken->refused_plans()), taken->plans(),
                 " plans and ", taken->kernels(), " kernels taken",
                 taken->remade() > 0 ? StrCat(" (", taken->remade(), " plans made again here)")
                                     : std::string(),
                 ", ", taken->known(), " plans were there already, ", taken->refused_plans(),
                 " refused\n"));
  }
  return taken->refused_plans() > 0 ? kExitMismatch : kExitOk;
}

}  // namespace

absl::StatusOr<ExitCode> RunStore(const Arguments& a, Progress* progress) {
  return WithService(a, progress, [&](const Client& client) -> absl::StatusOr<ExitCode> {
    AdminClient admin(client);
    switch (a.action) {
      case StoreAction::kStats:
        return Stats(a, admin, progress);
      case StoreAction::kVerify:
        return Verify(a, admin, progress);
      case StoreAction::kCompact:
        return Compact(a, admin, progress);
      case StoreAction::kPin:
      case StoreAction::kUnpin:
        return SetPinned(a, client, admin, progress);
      case StoreAction::kInvalidate:
        return Invalidate(a, client, admin, progress);
      case StoreAction::kExport:
        return Export(a, client, admin, progress);
      case StoreAction::kImport:
        return Import(a, admin, progress);
    }
    return kExitUsage;
  });
}

}  // namespace fusion
