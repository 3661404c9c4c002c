#include "server/rpc/request_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/wire/basics/scalars.h"
#include "core/wire/plan.h"
#include "core/wire/stored_texts.h"
#include "fusion/v1/fusion_service.pb.h"
#include "server/admission/object_count.h"
#include "tests/support/sample_bundle.h"

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

v1::PlanFusionRequest SampleRequest() {
  v1::PlanFusionRequest wire;
  wire.mutable_op_graph()->set_name("g");
  wire.mutable_target()->set_isa("avx2");
  wire.mutable_target()->set_threads(3);
  wire.set_mode(v1::PLAN_MODE_BY_DEADLINE);
  wire.set_ready_within_ms(250);
  wire.mutable_hints()->set_batch_size(4);
  wire.mutable_options()->add_keep_outputs("t");
  wire.add_dumps(v1::DUMP_KIND_SMG);
  wire.add_dumps(v1::DUMP_KIND_SOURCE);
  wire.set_request_id("r-1");
  wire.set_allow_fused(true);
  return wire;
}

TEST(RequestCodecTest, EveryFieldOfARequestArrives) {
  auto decoded = DecodePlanRequest(SampleRequest().SerializeAsString());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const PlanRequest& request = (*decoded)->request();
  EXPECT_EQ((*decoded)->request_id(), "r-1");
  EXPECT_EQ(request.source.op_graph->name(), "g");
  EXPECT_EQ(request.source.onnx_model, "");
  EXPECT_EQ(request.target.isa, "avx2");
  EXPECT_EQ(request.target.threads, 3);
  EXPECT_EQ(request.mode, PlanMode::kByDeadline);
  EXPECT_EQ(request.ready_within, std::chrono::milliseconds(250));
  EXPECT_EQ(request.options.hints.batch_size, 4);
  EXPECT_THAT(request.options.keep_outputs, ElementsAre("t"));
  EXPECT_THAT(request.dumps, ElementsAre(DumpKind::kSmg, DumpKind::kSource));
  EXPECT_TRUE(request.allow_fused);
}

TEST(RequestCodecTest, ModelBytesAreTheCallers) {
  v1::PlanFusionRequest wire = SampleRequest();
  wire.set_onnx_model(std::string("\0bytes", 6));
  auto decoded = DecodePlanRequest(wire.SerializeAsString());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ((*decoded)->request().source.onnx_model, std::string("\0bytes", 6));
  EXPECT_EQ((*decoded)->request().source.op_graph, nullptr);
}

TEST(RequestCodecTest, ALongRequestIdIsCut) {
  v1::PlanFusionRequest wire = SampleRequest();
  wire.set_request_id(std::string(10'000, 'r'));
  EXPECT_EQ((*DecodePlanRequest(wire.SerializeAsString()))->request_id().size(), 128u);
}

TEST(RequestCodecTest, AReplyArrivesAsTheMessageItStandsFor) {
  PlanReply reply;
  auto stored = std::make_shared<StoredPlan>(MakeStoredPlan("full key", SamplePlan(), 1));
  reply.stored = stored;
  reply.binding.inputs = {"x", "y"};
  reply.binding.outputs = {"z"};
  reply.binding.weights = {"w"};
  reply.binding.nodes = {"n\xff"};
  reply.kernels = {{.key = Sha256("a"),
                    .state = KernelState::kReady,
                    .content = Sha256("b"),
                    .bytes = 77,
                    .check = {.verified = true, .elements = 5},
                    .cached = true,
                    .compile_ms = 1.5},
                   {.key = Sha256("c"), .state = KernelState::kFailed}};
  reply.cache = CacheOutcome::kHitStore;
  reply.stages = {{"decode", std::chrono::microseconds(1500)}};
  reply.dumps = {{DumpKind::kSource, "12ab", "text"}};
  reply.warnings = {"careful"};

  EncodedReply encoded = EncodePlanReply(reply);
  v1::PlanFusionResponse wire;
  ASSERT_TRUE(wire.ParseFromString(StrCat(encoded.head, encoded.plan->plan_bytes, encoded.tail)));
  EXPECT_EQ(wire.plan().SerializeAsString(), stored->plan_bytes);
  EXPECT_EQ(wire.plan_key(), DigestToWire(stored->key));
  EXPECT_THAT(wire.binding().inputs(), ElementsAre("x", "y"));
  EXPECT_THAT(wire.binding().outputs(), ElementsAre("z"));
  EXPECT_THAT(wire.binding().weights(), ElementsAre("w"));
  EXPECT_THAT(wire.binding().nodes(), ElementsAre("n?")) << "still readable for its receiver";
  ASSERT_EQ(wire.kernels_size(), 2);
  EXPECT_EQ(wire.kernels(0).content_sha256(), DigestToWire(Sha256("b")));
  EXPECT_EQ(wire.kernels(0).bytes(), 77);
  EXPECT_TRUE(wire.kernels(0).check().verified());
  EXPECT_TRUE(wire.kernels(0).cached());
  EXPECT_EQ(wire.kernels(0).compile_ms(), 1.5);
  EXPECT_EQ(wire.kernels(1).state(), v1::KERNEL_STATE_FAILED);
  EXPECT_EQ(wire.cache(), v1::CACHE_OUTCOME_HIT_STORE);
  EXPECT_EQ(wire.stages(0).stage(), "decode");
  EXPECT_EQ(wire.stages(0).milliseconds(), 1.5);
  EXPECT_EQ(wire.dumps(0).kind(), v1::DUMP_KIND_SOURCE);
  EXPECT_THAT(wire.warnings(), ElementsAre("careful"));
}

TEST(ObjectCountTest, CountsMessagesAndTextsAtEveryDepth) {
  v1::OpGraph graph;
  graph.set_name("g");  // 1
  for (int i = 0; i < 3; ++i) {
    v1::Node& node = *graph.add_nodes();                   // 1
    node.set_op("Relu");                                   // 1
    node.add_inputs(7);                                    // packed numbers are no objects
    node.add_attributes()->mutable_ints()->add_values(5);  // 2
  }
  std::string bytes = graph.SerializeAsString();
  EXPECT_EQ(CountObjects(*v1::OpGraph::descriptor(), bytes, 1000), 13);
  EXPECT_GT(CountObjects(*v1::OpGraph::descriptor(), bytes, 5), 5) << "stops early";
  EXPECT_LE(CountObjects(*v1::OpGraph::descriptor(), bytes, 5), 9);
  EXPECT_EQ(CountObjects(*v1::OpGraph::descriptor(), "", 5), 0);
}

std::string Repeated(std::string_view piece, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += piece;
  return all;
}

TEST(ObjectCountTest, WhatAParserDoesNotKnowButKeepsCounts) {
  const auto& type = *v1::PlanFusionRequest::descriptor();
  auto count = [&](const std::string& bytes) { return CountObjects(type, bytes, 1000); };
  EXPECT_EQ(count(Repeated(std::string("\x78\x00", 2), 100)), 100) << "varints of field 15";
  EXPECT_EQ(count(Repeated("\x7d\x01\x02\x03\x04", 100)), 100) << "four bytes";
  EXPECT_EQ(count(Repeated(std::string("\x7a\x00", 2), 100)), 100) << "texts";
  EXPECT_EQ(count(Repeated("\x7b\x7c", 100)), 100) << "groups";
  EXPECT_EQ(count(Repeated("\x7b\x7b\x78\x01\x7c\x08\x05\x7c", 100)), 400)
      << "groups of a group of a number, and of a field that is known elsewhere";
  EXPECT_EQ(count(Repeated(std::string("\x10\x00", 2), 100)), 100)
      << "a number where op_graph belongs";
  EXPECT_EQ(count(Repeated("\x13\x14", 100)), 100) << "a group where op_graph belongs";
  EXPECT_GT(CountObjects(type, Repeated("\x7b\x7c", 100), 5), 5);
  EXPECT_LE(CountObjects(type, Repeated("\x7b\x7c", 100), 5), 7) << "stops early";
}

TEST(ObjectCountTest, NumbersCountAsWhatTheyGrowTo) {
  v1::Node node;
  for (int i = 0; i < 800; ++i) node.add_inputs(i % 100);
  EXPECT_EQ(CountObjects(*v1::Node::descriptor(), node.SerializeAsString(), 1000), 100);
  std::string one_by_one = Repeated(std::string("\x18\x00", 2), 800);  // outputs
  EXPECT_EQ(CountObjects(*v1::Node::descriptor(), one_by_one, 1000), 100);
}

TEST(ObjectCountTest, GroupsEndWhereTheyShould) {
  const auto& type = *v1::PlanFusionRequest::descriptor();
  EXPECT_EQ(CountObjects(type, "\x7b", 1000), kNoMessage) << "no end";
  EXPECT_EQ(CountObjects(type, "\x7c", 1000), kNoMessage) << "no begin";
  EXPECT_EQ(CountObjects(type, "\x7b\x74", 1000), kNoMessage) << "the end of another";
  EXPECT_EQ(CountObjects(type, "\x12\x01\x7b\x7c", 1000), kNoMessage)
      << "across the end of a message";
  EXPECT_EQ(CountObjects(type, Repeated("\x7b", 90) + Repeated("\x7c", 90), 1000), 90);
  EXPECT_EQ(CountObjects(type, Repeated("\x7b", 5000) + Repeated("\x7c", 5000), 1000),
            kNestedTooDeep)
      << "parsers refuse what nests so deep";
}

TEST(ObjectCountTest, WhatIsNoMessageIsTold) {
  std::string bytes = SampleRequest().SerializeAsString();
  const auto& type = *v1::PlanFusionRequest::descriptor();
  ASSERT_GT(CountObjects(type, bytes, 1000), 0);
  EXPECT_EQ(CountObjects(type, bytes.substr(0, bytes.size() - 1), 1000), kNoMessage);
  EXPECT_EQ(CountObjects(type, "\xff\xff\xff", 1000), kNoMessage);
  EXPECT_EQ(CountObjects(type, "\x12\x7f", 1000), kNoMessage) << "longer than what is there";
}

TEST(RequestCodecTest, AGraphOfTooManyObjectsIsRefusedBeforeItIsParsed) {
  v1::PlanFusionRequest wire = SampleRequest();
  for (int64_t i = 0; i <= kMaxRequestObjects; ++i) wire.mutable_op_graph()->add_nodes();
  absl::Status status = DecodePlanRequest(wire.SerializeAsString()).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("request has more than"));
}

// A plan as a store has it, without anything else.
PlanReply ReplyOf(const std::string& graph) {
  PlanReply reply;
  reply.stored = std::make_shared<StoredPlan>(MakeStoredPlan(graph, SamplePlan(), 1));
  reply.warnings = {"careful"};
  return reply;
}

TEST(RequestCodecTest, TheEventOfAResponseHoldsTheResponseByteForByte) {
  EncodedReply encoded = EncodePlanReply(ReplyOf("graph"));
  std::string response = StrCat(encoded.head, encoded.plan->plan_bytes, encoded.tail);
  v1::PlanFusionEvent event;
  ASSERT_TRUE(event.ParseFromString(StrCat(EncodeResponseEventHead(encoded), response)));
  ASSERT_TRUE(event.has_response());
  v1::PlanFusionResponse alone;
  ASSERT_TRUE(alone.ParseFromString(response));
  EXPECT_EQ(event.response().SerializeAsString(), alone.SerializeAsString());
  EXPECT_EQ(event.response().warnings(0), "careful");
  ASSERT_TRUE(event.ParseFromString(EncodeProgressEvent({.stage = "plan", .done = 1, .total = 2})));
  EXPECT_EQ(event.progress().stage(), "plan");
  EXPECT_EQ(event.progress().total(), 2);
}

TEST(RequestCodecTest, ThePlaceOfAPageGoesToTheClientAndComesBack) {
  for (int64_t created : {int64_t{0}, int64_t{1'700'000'000'123}, INT64_MAX, int64_t{-5}}) {
    PlanPage page{.plans = {}, .last = PlanPlace{created, Sha256("plan")}};
    v1::ListPlansResponse response;
    ASSERT_TRUE(response.ParseFromString(EncodePlanPage(page)));
    v1::ListPlansRequest request;
    request.set_page_token(response.next_page_token());
    absl::StatusOr<ListQuery> query = DecodeListQuery(request.SerializeAsString());
    ASSERT_TRUE(query.ok()) << query.status();
    EXPECT_EQ(query->after, page.last);
    EXPECT_EQ(query->page_size, kDefaultListedPlans);
  }
  v1::ListPlansRequest request;
  std::string token(80, '0');
  for (const std::string& bad :
       {std::string("x"), token + "0", "-" + token.substr(1), token.substr(1) + "G"}) {
    request.set_page_token(bad);
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeListQuery(request.SerializeAsString()).status()))
        << bad;
  }
}

TEST(RequestCodecTest, WhatIsStoredIsAskedForByOneKey) {
  const Digest key = Sha256("key");
  v1::GetStoredRequest wire;
  EXPECT_THAT(std::string(Message(DecodeStoredQuery(wire.SerializeAsString()).status())),
              HasSubstr("neither plan nor kernel"));
  wire.set_plan(DigestToWire(key));
  absl::StatusOr<StoredQuery> query = DecodeStoredQuery(wire.SerializeAsString());
  ASSERT_TRUE(query.ok()) << query.status();
  EXPECT_TRUE(query->is_plan);
  EXPECT_EQ(query->key, key);
  wire.set_kernel("short");
  EXPECT_THAT(std::string(Message(DecodeStoredQuery(wire.SerializeAsString()).status())),
              HasSubstr("kernel: a digest of 5"));
}

TEST(RequestCodecTest, AStoredPlanComesWithThePartsOfItsKey) {
  FieldHasher h;
  h.Add("graph", "graph \xff").Add("codegen", int64_t{9});
  const StoredPlan plan = MakeStoredPlan(h.bytes(), SamplePlan(), 0);
  v1::GetStoredResponse wire;
  ASSERT_TRUE(wire.ParseFromString(EncodeStoredTexts(plan)));
  absl::StatusOr<StoredPlanTexts> texts = DecodeStoredTexts(wire);
  ASSERT_TRUE(texts.ok()) << texts.status();
  EXPECT_EQ(StrCat(PlanToBytes(texts->plan), LedgerToBytes(texts->plan)),
            StrCat(plan.plan_bytes, plan.ledger_bytes));
  ASSERT_EQ(texts->fields.size(), 2u);
  EXPECT_EQ(texts->fields[0].name, "graph");
  EXPECT_EQ(texts->fields[0].value, "graph ?");
  EXPECT_EQ(texts->fields[1].value, "9");
}

TEST(RequestCodecTest, PackedAndUnpackedSamplesAreTheSame) {
  v1::ReportLatencyRequest wire;
  wire.set_plan_key(DigestToWire(Sha256("plan")));
  wire.set_threads(1);
  std::string bytes = wire.SerializeAsString();
  std::string one("\0\0\0\0\0\0\xf0\x3f", 8);
  absl::StatusOr<DecodedReport> packed = DecodeLatencyReport(bytes + "\x1a\x10" + one + one);
  absl::StatusOr<DecodedReport> apart = DecodeLatencyReport(bytes + "\x19" + one + "\x19" + one);
  ASSERT_TRUE(packed.ok()) << packed.status();
  ASSERT_TRUE(apart.ok()) << apart.status();
  EXPECT_EQ(packed->report.run_samples_us, apart->report.run_samples_us);
  std::string many;
  for (int64_t i = 0; i < 8 * (kMaxRequestObjects + 10); ++i) many += "\x19" + one;
  EXPECT_EQ(DecodeLatencyReport(bytes + many).status().code(), absl::StatusCode::kResourceExhausted)
      << "counted before it is parsed";
}

}  // namespace
}  // namespace fusion
