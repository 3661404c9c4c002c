#include "client/admin_client.h"

#include <grpcpp/grpcpp.h>

#include "client/calls/rpc_status.h"
#include "client/rpc_context.h"
#include "core/wire/basics/scalars.h"
#include "fusion/v1/fusion_admin.grpc.pb.h"

namespace fusion {
namespace {

// Of one message of an import; the service takes no more.
constexpr size_t kChunkBytes = 1 << 20;

using Stub = v1::FusionAdmin::Stub;

void Begin(const AdminConnection& to, grpc::ClientContext* context) {
  context->set_deadline(After(to.deadline));
  Introduce(to.options, context);
}

template <typename Request, typename Response>
absl::StatusOr<Response> Call(const AdminConnection& to,
                              grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                           Response*),
                              const Request& request) {
  Stub stub(to.channel);
  grpc::ClientContext context;
  Begin(to, &context);
  Response response;
  RETURN_IF_ERROR(FromGrpc((stub.*method)(&context, request, &response), context, to.address));
  return response;
}

}  // namespace

AdminClient::AdminClient(const Client& client, Nanoseconds deadline)
    : to_{client.address(), client.options(), client.channel(), deadline} {}

absl::StatusOr<v1::GetStoreStatsResponse> AdminClient::GetStoreStats() const {
  return Call(to_, &Stub::GetStoreStats, v1::GetStoreStatsRequest());
}

absl::StatusOr<v1::VerifyStoreResponse> AdminClient::VerifyStore() const {
  return Call(to_, &Stub::VerifyStore, v1::VerifyStoreRequest());
}

absl::StatusOr<v1::CompactStoreResponse> AdminClient::CompactStore() const {
  return Call(to_, &Stub::CompactStore, v1::CompactStoreRequest());
}

absl::StatusOr<v1::SetPinnedResponse> AdminClient::SetPinned(const std::vector<Digest>& plans,
                                                             bool pinned) const {
  v1::SetPinnedRequest request;
  for (const Digest& plan : plans) request.add_plan_keys(DigestToWire(plan));
  request.set_pinned(pinned);
  return Call(to_, &Stub::SetPinned, request);
}

absl::StatusOr<v1::InvalidateResponse> AdminClient::Invalidate(const std::vector<Digest>& plans,
                                                               const std::vector<Digest>& kernels,
                                                               const std::string& reason) const {
  v1::InvalidateRequest request;
  for (const Digest& plan : plans) request.add_plan_keys(DigestToWire(plan));
  for (const Digest& kernel : kernels) request.add_kernel_keys(DigestToWire(kernel));
  request.set_reason(TextToWire(reason));
  return Call(to_, &Stub::Invalidate, request);
}

absl::StatusOr<v1::InvalidateResponse> AdminClient::InvalidateAll(const std::string& reason) const {
  v1::InvalidateRequest request;
  request.set_all(true);
  request.set_reason(TextToWire(reason));
  return Call(to_, &Stub::Invalidate, request);
}

absl::StatusOr<v1::SteerEpochsResponse> AdminClient::TrainEpochs(const std::string& reason) const {
  v1::SteerEpochsRequest request;
  request.set_train(true);
  request.set_reason(TextToWire(reason));
  return Call(to_, &Stub::SteerEpochs, request);
}

absl::StatusOr<v1::SteerEpochsResponse> AdminClient::RollBackEpoch(
    int64_t number, const std::string& reason) const {
  v1::SteerEpochsRequest request;
  request.set_roll_back(number);
  request.set_reason(TextToWire(reason));
  return Call(to_, &Stub::SteerEpochs, request);
}

absl::StatusOr<v1::GetServerStatusResponse> AdminClient::GetServerStatus() const {
  return Call(to_, &Stub::GetServerStatus, v1::GetServerStatusRequest());
}

absl::Status AdminClient::ExportStore(
    const std::vector<Digest>& plans,
    const std::function<absl::Status(std::string_view bytes)>& sink) const {
  Stub stub(to_.channel);
  grpc::ClientContext context;
  Begin(to_, &context);
  v1::ExportStoreRequest request;
  for (const Digest& plan : plans) request.add_plan_keys(DigestToWire(plan));
  std::unique_ptr<grpc::ClientReader<v1::StoreChunk>> reader = stub.ExportStore(&context, request);
  v1::StoreChunk chunk;
  while (reader->Read(&chunk)) {
    absl::Status written = sink(chunk.data());
    if (written.ok()) continue;
    context.TryCancel();
    reader->Finish();
    return written;
  }
  return FromGrpc(reader->Finish(), context, to_.address);
}

absl::StatusOr<v1::ImportStoreResponse> AdminClient::ImportStore(
    const std::function<absl::StatusOr<std::string>()>& source) const {
  Stub stub(to_.channel);
  grpc::ClientContext context;
  Begin(to_, &context);
  v1::ImportStoreResponse response;
  std::unique_ptr<grpc::ClientWriter<v1::StoreChunk>> writer =
      stub.ImportStore(&context, &response);
  bool open = true;
  while (open) {
    absl::StatusOr<std::string> part = source();
    if (!part.ok()) {
      context.TryCancel();
      writer->Finish();
      return part.status();
    }
    if (part->empty()) break;
    for (size_t at = 0; open && at < part->size(); at += kChunkBytes) {
      v1::StoreChunk chunk;
      chunk.set_data(part->substr(at, kChunkBytes));
      open = writer->Write(chunk);  // else the service has answered already
    }
  }
  writer->WritesDone();
  RETURN_IF_ERROR(FromGrpc(writer->Finish(), context, to_.address));
  return response;
}

}  // namespace fusion
