#include "core/cache/store_archive.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/files/access_limits.h"
#include "core/base/kernel_abi.h"
#include "core/bundle/signed_bytes.h"
#include "core/wire/kernel.h"
#include "core/wire/plan.h"
#include "core/wire/signature.h"

namespace fusion {
namespace {

constexpr std::string_view kArchiveMark = "fusion-store-archive\n";
constexpr size_t kDigestBytes = 32;
constexpr size_t kRecordHeadBytes = 1 + 8 + kDigestBytes;
constexpr std::string_view kTypes = "HKPST";
// Servers without support for signatures read it too.
constexpr uint64_t kUnsignedVersion = 1;

std::string Number(uint64_t value) {
  std::string out(8, '\0');
  std::memcpy(out.data(), &value, 8);
  return out;
}

// Reads values from the front of a payload.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  bool Number(uint64_t* out) {
    if (bytes_.size() < 8) return false;
    std::memcpy(out, bytes_.data(), 8);
    bytes_.remove_prefix(8);
    return true;
  }
  bool Bytes(uint64_t n, std::string_view* out) {
    if (bytes_.size() < n) return false;
    *out = bytes_.substr(0, n);
    bytes_.remove_prefix(n);
    return true;
  }
  std::string_view rest() const { return bytes_; }

 private:
  std::string_view bytes_;
};

Digest DigestFrom(std::string_view bytes) {
  Digest digest;
  std::memcpy(digest.bytes.data(), bytes.data(), kDigestBytes);
  return digest;
}

struct PlanFrame {
  std::vector<Digest> kernels;
  std::string tenant;
  std::string_view plan;
};

bool ReadPlanFrame(std::string_view payload, PlanFrame* out) {
  Reader reader(payload);
  uint64_t count = 0, length = 0;
  std::string_view bytes;
  if (!reader.Number(&count) || count > payload.size() / kDigestBytes) return false;
  for (uint64_t i = 0; i < count; ++i) {
    if (!reader.Bytes(kDigestBytes, &bytes)) return false;
    out->kernels.push_back(DigestFrom(bytes));
  }
  if (!reader.Number(&length) || length > kMaxTenantBytes || !reader.Bytes(length, &bytes)) {
    return false;
  }
  out->tenant = bytes;
  out->plan = reader.rest();
  return true;
}

}  // namespace

ArchiveWriter::ArchiveWriter(Store& store, std::vector<Digest> plans, Sign sign)
    : store_(store), keys_(std::move(plans)), sign_(std::move(sign)) {}

std::string ArchiveWriter::Emit(char type, std::string_view payload) {
  Digest digest = Sha256(payload);
  digests_.Add(BytesOf(digest));
  return StrCat(std::string(1, type), Number(payload.size()), BytesOf(digest), payload);
}

// The frame of an entry, preceded by that of its signature.
std::string ArchiveWriter::EmitEntry(char type, std::string_view payload) {
  if (!sign_) return Emit(type, payload);
  std::string signature =
      Emit('S', SignatureToBytes(sign_(SignedEntryBytes(type, Sha256(payload)))));
  return signature + Emit(type, payload);
}

std::string ArchiveWriter::EmitPlan(const StoredPlan& plan, const std::string& tenant) {
  std::string frames, keys;
  uint64_t count = 0;
  std::set<Digest> mine;
  for (const PlanKernel& kernel : plan.plan.kernels) {
    if (!mine.insert(kernel.key).second) continue;
    if (!written_.contains(kernel.key)) {
      std::shared_ptr<const KernelArtifact> artifact = store_.PeekKernel(kernel.key);
      if (artifact == nullptr) continue;
      frames += EmitEntry('K', EncodeArtifact(*artifact));
      written_.insert(kernel.key);
    }
    keys.append(BytesOf(kernel.key));
    ++count;
  }
  ++plan_count_;
  return frames + EmitEntry('P', StrCat(Number(count), keys, Number(tenant.size()), tenant,
                                        EncodeStoredPlan(plan)));
}

std::string ArchiveWriter::Next() {
  if (!begun_) {
    begun_ = true;
    const uint64_t version = sign_ ? kArchiveVersion : kUnsignedVersion;
    return Emit('H', StrCat(kArchiveMark, Number(version), Number(kPlanVersion),
                            Number(FUSION_KERNEL_ABI_VERSION)));
  }
  while (next_ < keys_.size()) {
    std::shared_ptr<const StoredPlan> plan = store_.PeekPlan(keys_[next_++]);
    if (plan != nullptr) return EmitPlan(*plan, store_.TenantOf(plan->key));
  }
  if (ended_) return "";
  ended_ = true;
  return Emit('T',
              StrCat(Number(static_cast<uint64_t>(plan_count_)),
                     Number(static_cast<uint64_t>(written_.size())), BytesOf(digests_.Finish())));
}

absl::Status ArchiveImport::Add(std::string_view bytes) {
  pending_.append(bytes);
  size_t at = 0;
  while (pending_.size() - at >= kRecordHeadBytes) {
    if (ended_) break;
    const std::string_view rest = std::string_view(pending_).substr(at);
    uint64_t length = 0;
    std::memcpy(&length, rest.data() + 1, 8);
    if (kTypes.find(rest[0]) == std::string_view::npos || (!begun_ && rest[0] != 'H')) {
      return InvalidArgument(begun_ ? "archive: a frame of no known type; is it damaged?"
                                    : "this is no archive of a store");
    }
    if (length > kMaxArchivePayload) {
      return InvalidArgument("archive: a frame of ", length, " bytes, behind ", plan_frames_,
                             " plans; expected at most ", HumanBytes(kMaxArchivePayload));
    }
    if (rest.size() - kRecordHeadBytes < length) break;
    const Digest digest = DigestFrom(rest.substr(9));
    const std::string_view payload = rest.substr(kRecordHeadBytes, length);
    if (Sha256(payload) != digest) {
      return DataLoss("archive: a frame of ", length, " bytes is not what its digest says, behind ",
                      plan_frames_, " plans");
    }
    RETURN_IF_ERROR(TakeFrame(rest[0], payload, digest));
    at += kRecordHeadBytes + length;
  }
  pending_.erase(0, at);
  if (ended_ && !pending_.empty()) {
    return InvalidArgument("archive: ", pending_.size(), " bytes behind its end");
  }
  return absl::OkStatus();
}

absl::Status ArchiveImport::TakeFrame(char type, std::string_view payload, const Digest& digest) {
  if (type == 'H' && begun_) return InvalidArgument("archive: a second header");
  if (signature_.has_value() && type != 'K' && type != 'P') {
    return InvalidArgument("archive: a signature of neither a kernel nor a plan");
  }
  const absl::StatusOr<bool> vouched = TakeVouched(type, digest);
  absl::Status taken;
  if (type == 'H') {
    taken = TakeHeader(payload);
  } else if (type == 'S') {
    taken = TakeSignature(payload);
  } else if (type == 'K') {
    taken = TakeKernel(payload, vouched);
  } else if (type == 'P') {
    taken = TakePlan(payload, vouched);
  } else {
    taken = TakeTrailer(payload);
  }
  digests_.Add(BytesOf(digest));
  return taken;
}

// True if a trusted key signed the frame. DataLoss if a signature with the id of a trusted key is
// wrong.
absl::StatusOr<bool> ArchiveImport::TakeVouched(char type, const Digest& digest) {
  const std::optional<Signature> signature = std::exchange(signature_, std::nullopt);
  if (!signature.has_value()) return false;
  for (const SigningKey& key : trust_.keys) {
    if (key.id() != signature->key_id) continue;
    RETURN_IF_ERROR(key.Verify(SignedEntryBytes(type, digest), *signature));
    return true;
  }
  return false;
}

absl::Status ArchiveImport::TakeSignature(std::string_view payload) {
  absl::StatusOr<Signature> signature = SignatureFromBytes(payload);
  if (!signature.ok()) return InvalidArgument("archive: ", Message(signature.status()));
  signature_ = *std::move(signature);
  return absl::OkStatus();
}

absl::Status ArchiveImport::TakeHeader(std::string_view payload) {
  begun_ = true;
  Reader reader(payload);
  ArchiveHeader header;
  std::string_view mark;
  if (!reader.Bytes(kArchiveMark.size(), &mark) || mark != kArchiveMark ||
      !reader.Number(&header.archive_version)) {
    return InvalidArgument("this is no archive of a store");
  }
  if (header.archive_version < 1 || header.archive_version > kArchiveVersion) {
    return FailedPrecondition("archive of version ", header.archive_version,
                              "; this server reads 1 to ", kArchiveVersion);
  }
  if (!reader.Number(&header.plan_version) || !reader.Number(&header.kernel_abi_version)) {
    return InvalidArgument("archive: its header is too short");
  }
  if (header.plan_version > kPlanVersion) {
    return FailedPrecondition("archive of plans of version ", header.plan_version,
                              "; this server reads up to ", kPlanVersion);
  }
  if (header.kernel_abi_version != FUSION_KERNEL_ABI_VERSION) {
    return FailedPrecondition("archive of kernels of ABI version ", header.kernel_abi_version,
                              "; this server has ", FUSION_KERNEL_ABI_VERSION);
  }
  return absl::OkStatus();
}

absl::Status ArchiveImport::TakeKernel(std::string_view payload,
                                       const absl::StatusOr<bool>& vouched) {
  ++kernel_frames_;
  absl::StatusOr<KernelArtifact> kernel = DecodeArtifact(payload);
  absl::Status sound = kernel.ok() ? vouched.status() : kernel.status();
  if (!sound.ok()) {
    bad_kernel_ = Message(sound);
    return absl::OkStatus();
  }
  claims_[kernel->key] = kernel->content;
  if (!*vouched) return absl::OkStatus();
  waiting_bytes_ += ChargedBytes(*kernel);
  kernels_.push_back(std::make_shared<const KernelArtifact>(*std::move(kernel)));
  return waiting_bytes_ <= kMaxWaitingKernels ? absl::OkStatus() : Put({});
}

// Stores the bundle with the waiting kernels that are not stored yet.
absl::Status ArchiveImport::Put(Bundle bundle) {
  for (auto& kernel : kernels_) {
    if (store_.PeekKernel(kernel->key) == nullptr) bundle.kernels.push_back(std::move(kernel));
  }
  kernels_.clear();
  waiting_bytes_ = 0;
  if (bundle.plan == nullptr && bundle.kernels.empty()) return absl::OkStatus();
  absl::Status stored = store_.PutBundle(bundle);
  if (!stored.ok()) {
    return Annotate(stored, StrCat("after ", outcome_.plans, " plans were taken"));
  }
  outcome_.plans += bundle.plan != nullptr;
  outcome_.kernels += static_cast<int64_t>(bundle.kernels.size());
  return absl::OkStatus();
}

void ArchiveImport::Refuse(std::string name, std::string reason) {
  ++outcome_.refused_plans;
  if (outcome_.refused.size() < kMaxNamedDamage) {
    outcome_.refused.push_back({"plan", std::move(name), std::move(reason)});
  }
}

// The first kernel that is neither in the file nor stored, as a reason; empty if there is none.
std::string ArchiveImport::WhyIncomplete(const std::vector<Digest>& kernels) {
  for (const Digest& key : kernels) {
    if (claims_.contains(key) || store_.PeekKernel(key) != nullptr) continue;
    return StrCat("its kernel ", key.ToHex(), " is not in the archive",
                  bad_kernel_.empty() ? "" : StrCat("; one was refused: ", bad_kernel_));
  }
  return "";
}

// True if each kernel is stored, or signed and waiting.
bool ArchiveImport::AreThere(const std::vector<Digest>& kernels) {
  std::set<Digest> here;
  for (const auto& kernel : kernels_) here.insert(kernel->key);
  return std::all_of(kernels.begin(), kernels.end(), [&](const Digest& key) {
    return here.contains(key) || store_.PeekKernel(key) != nullptr;
  });
}

absl::Status ArchiveImport::TakePlan(std::string_view payload,
                                     const absl::StatusOr<bool>& vouched) {
  ++plan_frames_;
  PlanFrame frame;
  Bundle bundle;
  std::string name = StrCat("number ", plan_frames_);
  std::string reason;
  if (!ReadPlanFrame(payload, &frame)) {
    reason = "its frame is malformed";
  } else if (absl::StatusOr<StoredPlan> plan = DecodeStoredPlan(frame.plan); !plan.ok()) {
    reason = Message(plan.status());
  } else {
    name = plan->key.ToHex();
    reason = vouched.ok() ? WhyIncomplete(frame.kernels) : std::string(Message(vouched.status()));
    bundle.plan = std::make_shared<const StoredPlan>(*std::move(plan));
  }
  bad_kernel_.clear();
  bundle.tenant = std::move(frame.tenant);
  std::optional<ClaimedPlan> claimed;
  if (!reason.empty()) {
    Refuse(std::move(name), std::move(reason));
    bundle.plan = nullptr;  // other plans may need the signed kernels
  } else if (store_.PeekPlan(bundle.plan->key) != nullptr) {
    ++outcome_.known;
    bundle.plan = nullptr;
  } else if (!*vouched || !AreThere(frame.kernels)) {
    claimed = {.plan = *bundle.plan, .kernels = {}, .tenant = bundle.tenant};
    bundle.plan = nullptr;
  }
  RETURN_IF_ERROR(Put(std::move(bundle)));
  return claimed.has_value() ? TakeClaimed(*std::move(claimed), frame.kernels) : absl::OkStatus();
}

// Handles a plan without a trusted signature: remakes or rejects it.
absl::Status ArchiveImport::TakeClaimed(ClaimedPlan claimed, const std::vector<Digest>& kernels) {
  for (const Digest& key : kernels) {
    auto claim = claims_.find(key);
    if (claim != claims_.end()) claimed.kernels.insert(*claim);
  }
  RemadePlan made{.kernels = 0, .refused = StrCat(kUnverified, "no trusted key signed it")};
  if (trust_.remake) {
    ASSIGN_OR_RETURN(made, trust_.remake(claimed));
  }
  outcome_.kernels += made.kernels;
  if (!made.refused.empty()) {
    Refuse(claimed.plan.key.ToHex(), std::move(made.refused));
    return absl::OkStatus();
  }
  ++outcome_.plans;
  ++outcome_.remade;
  return absl::OkStatus();
}

absl::Status ArchiveImport::TakeTrailer(std::string_view payload) {
  ended_ = true;
  Reader reader(payload);
  uint64_t plans = 0, kernels = 0;
  if (!reader.Number(&plans) || !reader.Number(&kernels) ||
      plans != static_cast<uint64_t>(plan_frames_) ||
      kernels != static_cast<uint64_t>(kernel_frames_) ||
      reader.rest() != BytesOf(digests_.Finish())) {
    return DataLoss("archive: ", plan_frames_, " plans and ", kernel_frames_,
                    " kernels are not what its end says; frames are missing or out of order");
  }
  return absl::OkStatus();
}

absl::StatusOr<ImportOutcome> ArchiveImport::Finish() {
  if (ended_) return outcome_;
  if (!begun_) return InvalidArgument("this is no archive of a store: ", pending_.size(), " bytes");
  return DataLoss("archive: it is cut off behind ", plan_frames_, " plans; ", outcome_.plans,
                  " were taken");
}

}  // namespace fusion
