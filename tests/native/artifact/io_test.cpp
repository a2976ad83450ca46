// Artifacts survive the trip through bytes, and nothing else does.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "artifact/layout.h"
#include "artifact/sample.h"

namespace cuvil::artifact {
namespace {

std::vector<uint8_t> reseal(std::vector<uint8_t> bytes) {
  Hash checksum = hash128(std::span(bytes).subspan(sizeof(FileHeader)), kChecksumSeed);
  std::memcpy(bytes.data() + offsetof(FileHeader, checksum), checksum.data(), checksum.size());
  return bytes;
}

TEST(ArtifactIo, RoundTripKeepsEveryTable) {
  Artifact a = sample();
  std::vector<uint8_t> bytes = write_artifact(a);
  Result<Artifact> read = read_artifact(bytes);
  ASSERT_TRUE(read.ok()) << read.error().found;
  EXPECT_EQ(read->key, a.key);
  EXPECT_EQ(read->target, a.target);
  EXPECT_TRUE(read->memory_only && read->releases_gil);
  EXPECT_EQ(read->call_shape, a.call_shape);
  EXPECT_EQ(read->arguments[0].array, a.arguments[0].array);
  EXPECT_EQ(read->arguments[2].value, a.arguments[2].value);
  EXPECT_EQ(read->sources[3].key, a.sources[3].key);
  EXPECT_EQ(read->guards[1].hash, a.guards[1].hash);
  EXPECT_EQ(read->sites[1].results[0].slot, 2u);
  EXPECT_EQ(read->device_image, a.device_image);
  EXPECT_TRUE(read->blob.empty());
  auto blob = blob_of(bytes);
  EXPECT_EQ(std::vector(blob.begin(), blob.end()), a.blob);
  EXPECT_EQ((blob.data() - bytes.data()) % kBlobAlignment, 0u);
  // Whatever this test does not name is in the bytes as well: writing again gives them back.
  read->blob = a.blob;
  EXPECT_EQ(write_artifact(*read), bytes);
}

TEST(ArtifactIo, EveryTruncationIsRejected) {
  std::vector<uint8_t> bytes = write_artifact(sample());
  for (size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(read_artifact(std::span(bytes).first(n)).ok()) << n;
  bytes.push_back(0);
  EXPECT_FALSE(read_artifact(bytes).ok());
}

TEST(ArtifactIo, EveryFlippedBitIsRejected) {
  std::vector<uint8_t> bytes = write_artifact(sample());
  for (size_t i = 0; i < bytes.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      bytes[i] ^= static_cast<uint8_t>(1 << bit);
      EXPECT_FALSE(read_artifact(bytes).ok()) << "byte " << i << " bit " << bit;
      bytes[i] ^= static_cast<uint8_t>(1 << bit);
    }
  EXPECT_TRUE(read_artifact(bytes).ok());
}

// A forger who recomputes the checksum gets an artifact or an error, never a crash, and what is
// accepted can be written and walked.
TEST(ArtifactIo, ResealedDamageNeverCrashes) {
  const std::vector<uint8_t> good = write_artifact(sample());
  for (size_t i = sizeof(FileHeader); i < good.size(); ++i)
    for (uint8_t value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      std::vector<uint8_t> bytes = good;
      bytes[i] = value;
      Result<Artifact> read = read_artifact(reseal(bytes));
      if (read.ok()) write_artifact(*read);
      for (size_t k = 0; k < 4 && i + k < bytes.size(); ++k)
        bytes[i + k] = value;  // counts are u32
      read = read_artifact(reseal(bytes));
      if (read.ok()) write_artifact(*read);
    }
}

TEST(ArtifactIo, RangesAreChecked) {
  struct Row {
    const char* what;
    std::function<void(Artifact&)> damage;
  };
  const Row rows[] = {
      {"argument rank", [](Artifact& a) { a.arguments[0].array.rank = 17; }},
      {"argument dims", [](Artifact& a) { a.arguments[0].shape.pop_back(); }},
      {"argument order",
       [](Artifact& a) {
         a.arguments[0].array.order = {0, 0};
       }},
      {"symbol slot", [](Artifact& a) { a.symbols[0].array = 3; }},
      {"symbol axis", [](Artifact& a) { a.symbols[0].axis = 2; }},
      {"scalar slot", [](Artifact& a) { a.symbols[2].array = 1; }},
      {"bound after internal", [](Artifact& a) { std::swap(a.symbols[0], a.symbols[3]); }},
      {"predicate over an unbound symbol", [](Artifact& a) { a.predicates[0].rhs = symbol(3); }},
      {"empty expression", [](Artifact& a) { a.predicates[0].lhs.clear(); }},
      {"operator without operands",
       [](Artifact& a) {
         a.exprs[0] = {{ExprNode::Op::kAdd, 0}};
       }},
      {"two values left",
       [](Artifact& a) {
         a.exprs[0].push_back({ExprNode::Op::kConst, 1});
       }},
      {"source after its parent", [](Artifact& a) { a.sources[1].parent = 1; }},
      {"attribute of nothing", [](Artifact& a) { a.sources[1].parent = -1; }},
      {"argument source", [](Artifact& a) { a.sources[0].index = 4; }},
      {"guard source", [](Artifact& a) { a.guards[0].source = 4; }},
      {"guard slot taken", [](Artifact& a) { a.guards[0].slot = 0; }},
      {"identity on disk", [](Artifact& a) { a.memory_only = false; }},
      {"alias slot", [](Artifact& a) { a.aliases[0].b = 2; }},
      {"result order",
       [](Artifact& a) {
         a.results[0].order = {2, 0};
       }},
      {"scalar result with a rank", [](Artifact& a) { a.results[1].rank = 1; }},
      {"tree: result", [](Artifact& a) { a.tree[1].index = 2; }},
      {"tree: keys", [](Artifact& a) { a.tree[0].index = 1; }},
      {"tree: more children than nodes", [](Artifact& a) { a.tree[2].count = 3; }},
      {"tree: left over", [](Artifact& a) { a.tree[2].count = 1; }},
      {"tree: none", [](Artifact& a) { a.tree.clear(); }},
      {"tree: same as a later node",
       [](Artifact& a) {
         a.tree[3] = {TreeNode::Kind::kSame, 4, 0};
       }},
      {"tree: same as a node that holds it",
       [](Artifact& a) {
         a.tree[3] = {TreeNode::Kind::kSame, 2, 0};
       }},
      {"tree: same as no container",
       [](Artifact& a) {
         a.tree[3] = {TreeNode::Kind::kSame, 1, 0};
       }},
      {"functions", [](Artifact& a) { a.functions[1] = 4; }},
      {"no function", [](Artifact& a) { a.functions.clear(); }},
      {"site function", [](Artifact& a) { a.sites[0].loc.function = 2; }},
      {"host callable", [](Artifact& a) { a.sites[1].callable = -1; }},
      {"host result slot", [](Artifact& a) { a.sites[1].results[0].slot = 0; }},
      {"host result rank", [](Artifact& a) { a.sites[1].results[0].rank = 2; }},
      {"arena", [](Artifact& a) { a.arena_bytes = -1; }},
      {"entry", [](Artifact& a) { a.entry_offset = a.blob.size(); }},
      {"array slots", [](Artifact& a) { a.array_slots = 0x7fffffff; }},
  };
  for (const Row& row : rows) {
    Artifact a = sample();
    row.damage(a);
    EXPECT_FALSE(read_artifact(write_artifact(a)).ok()) << row.what;
  }
}

TEST(ArtifactIo, OneListInTwoPlaces) {
  Artifact a = sample();
  a.tree = {
      {TreeNode::Kind::kTuple, 0, 2}, {TreeNode::Kind::kList, 0, 0}, {TreeNode::Kind::kSame, 1, 0}};
  Result<Artifact> read = read_artifact(write_artifact(a));
  ASSERT_TRUE(read.ok()) << read.error().found;
  EXPECT_EQ(read->tree[2].index, 1u);
}

TEST(ArtifactIo, EveryClassOfErrorIsAccepted) {
  for (ErrorClass c : {
#define CUVIL_ERROR(id, python) ErrorClass::id,
#include "support/errors.def"
#undef CUVIL_ERROR
       }) {
    Artifact a = sample();
    a.sites[0].cls = c;
    EXPECT_TRUE(read_artifact(write_artifact(a)).ok()) << python_class_name(c);
  }
}

TEST(ArtifactIo, NestingIsBounded) {
  Artifact a = sample();
  Const deep = int_const(1);
  for (int i = 0; i < 100; ++i) {
    Const outer;
    outer.kind = Const::Kind::kTuple;
    outer.items.push_back(std::move(deep));
    deep = std::move(outer);
  }
  a.constants.push_back(deep);
  EXPECT_FALSE(read_artifact(write_artifact(a)).ok());
}

TEST(Expr, Evaluates) {
  using Op = ExprNode::Op;
  auto binary = [](int64_t l, int64_t r, Op op) {
    return evaluate({{Op::kConst, l}, {Op::kConst, r}, {op, 0}}, {});
  };
  EXPECT_EQ(binary(2, 3, Op::kAdd), 5);
  EXPECT_EQ(binary(INT64_MAX, 1, Op::kAdd), INT64_MIN);
  EXPECT_EQ(binary(-7, 2, Op::kFloorDiv), -4);
  EXPECT_EQ(binary(7, -2, Op::kFloorDiv), -4);
  EXPECT_EQ(binary(-7, 2, Op::kMod), 1);
  EXPECT_EQ(binary(7, -2, Op::kMod), -1);
  EXPECT_EQ(binary(1, 0, Op::kFloorDiv), 0);
  EXPECT_EQ(binary(1, 0, Op::kMod), 0);
  EXPECT_EQ(binary(INT64_MIN, -1, Op::kFloorDiv), INT64_MIN);
  EXPECT_EQ(binary(INT64_MIN, -1, Op::kMod), 0);
  EXPECT_EQ(binary(4, 9, Op::kMin), 4);
  EXPECT_EQ(binary(4, 9, Op::kMax), 9);
  int64_t symbols[] = {10, 20};
  EXPECT_EQ(evaluate(symbol(1), symbols), 20);
  EXPECT_EQ(evaluate(symbol(2), symbols), 0);
  EXPECT_EQ(evaluate({{Op::kAdd, 0}}, {}), 0);
}

TEST(Const, EqualByTypeAndBits) {
  Const zero, minus, one = int_const(1), yes;
  zero.kind = minus.kind = Const::Kind::kFloat;
  minus.real = -0.0;
  yes.kind = Const::Kind::kBool;
  yes.integer = 1;
  EXPECT_FALSE(zero == minus);
  EXPECT_FALSE(one == yes);
  zero.real = minus.real = __builtin_nan("");
  EXPECT_TRUE(zero == minus);
}

}  // namespace
}  // namespace cuvil::artifact
