// Against a real server (tests/postgresql_server.py).
#include "collage/fleet/job_queue.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace collage {
namespace {

using Backends = std::vector<std::pair<std::string, std::string>>;

class JobQueueTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(std::getenv("COLLAGE_TEST_POSTGRESQL"), nullptr) << "run by tests/postgresql_server.py";
    ASSERT_TRUE(OpenCacheDatabase(Url(), true).value()->Execute("DROP SCHEMA IF EXISTS collage CASCADE"));
    compile_.emplace(Url());
  }
  static std::string Url() { return std::getenv("COLLAGE_TEST_POSTGRESQL"); }

  /// A process with a connection of its own.
  struct Process {
    explicit Process(const std::string& url) : cache(MeasurementCache::Open(url).value()), queue(JobQueue::Open(cache).value()) {}
    int64_t Register(int threads = 2, const Backends& backends = {{"dnnl", "2.6"}}) {
      return queue.Register("cpu", threads, "host", backends).value();
    }
    MeasurementCache cache;
    JobQueue queue;
  };

  static QueuedJob Job(uint64_t hash, const std::string& version = "2.6", const std::string& device = "cpu/evicting 4 MiB") {
    return {0, {hash, "dnnl", version, "direct", device, 2}, "job " + std::to_string(hash)};
  }
  std::optional<Process> compile_;
};

TEST_F(JobQueueTest, JobsAreTakenOnceInTheirOrderAndAnswered) {
  const std::vector<int64_t> numbers = compile_->queue.Put(std::vector{Job(1), Job(2), Job(3)}).value();
  // What is there is not put again.
  EXPECT_EQ(compile_->queue.Put(std::vector{Job(2)}).value(), std::vector{numbers[1]});
  Process a(Url());
  Process b(Url());
  const int64_t worker_a = a.Register();
  const int64_t worker_b = b.Register();
  const QueuedJob first = a.queue.Take(worker_a).value().value();
  const QueuedJob second = b.queue.Take(worker_b).value().value();
  EXPECT_EQ(first.message, "job 1");
  EXPECT_EQ(first.key, Job(1).key);
  EXPECT_EQ(first.attempts, 1);
  EXPECT_EQ(second.message, "job 2");
  EXPECT_EQ(compile_->queue.Withdraw(numbers).value(), std::vector{numbers[2]});
  EXPECT_FALSE(a.queue.Take(worker_a).value().has_value());
  ASSERT_TRUE(b.queue.Finish(worker_b, second, {{1e-3}, ""}));
  EXPECT_EQ(compile_->queue.StillOpen(numbers).value(), std::vector{numbers[0]});
  EXPECT_EQ(compile_->cache.Find(second.key).value()->samples, std::vector{1e-3});
  EXPECT_FALSE(compile_->cache.Find(first.key).value().has_value());
}

TEST_F(JobQueueTest, AWorkerTakesWhatSuitsIt) {
  ASSERT_TRUE(compile_->queue.Put(std::vector{Job(1, "2.7"), Job(2, "2.6", "cpu#2/evicting 4 MiB"), Job(3)}));
  Process few(Url());
  EXPECT_FALSE(few.queue.Take(few.Register(/*threads=*/1)).value().has_value());
  Process other(Url());
  EXPECT_FALSE(other.queue.Take(other.Register(2, {{"openvino", "2.6"}})).value().has_value());
  Process right(Url());
  EXPECT_EQ(right.queue.Take(right.Register()).value()->message, "job 3");
  EXPECT_EQ(compile_->queue.WorkersOf("cpu", 2).value().count, 2u);
  EXPECT_EQ(compile_->queue.WorkersOf("cpu", 1).value().count, 3u);
  EXPECT_EQ(compile_->queue.WorkersOf("cpu#2", 1).value().count, 0u);
}

TEST_F(JobQueueTest, WhatADeadWorkerHeldIsFree) {
  const std::vector<int64_t> numbers = compile_->queue.Put(std::vector{Job(1), Job(2)}).value();
  std::optional<Process> dead(Url());
  const QueuedJob lost = dead->queue.Take(dead->Register()).value().value();
  Process alive(Url());
  const int64_t worker = alive.Register();
  dead.reset();
  // The server notices the end of a connection in a moment.
  for (int i = 0; i < 1000 && compile_->queue.WorkersOf("cpu", 1).value().count > 1; ++i) ::usleep(1000);
  const QueuedJob again = alive.queue.Take(worker).value().value();
  EXPECT_EQ(again.number, lost.number);
  EXPECT_EQ(again.attempts, 2);
  EXPECT_EQ(alive.queue.Take(worker).value()->attempts, 1);
}

TEST_F(JobQueueTest, WhoHasLostAJobCannotAnswerIt) {
  ASSERT_TRUE(compile_->queue.Put(std::vector{Job(1)}));
  Process a(Url());
  const int64_t worker = a.Register();
  const QueuedJob job = a.queue.Take(worker).value().value();
  // As if its connection had been lost, and another worker had it now.
  ASSERT_TRUE(compile_->cache.database().Execute("UPDATE job SET worker=1000"));
  ASSERT_TRUE(a.queue.Finish(worker, job, {{1e-3}, ""}));
  EXPECT_FALSE(compile_->cache.Find(job.key).value().has_value());
  EXPECT_EQ(compile_->queue.StillOpen(std::vector{job.number}).value().size(), 1u);
}

TEST(JobQueueFileTest, AFileIsNoFleet) {
  MeasurementCache cache = MeasurementCache::Open({}).value();
  const Result<JobQueue> queue = JobQueue::Open(cache);
  ASSERT_FALSE(queue.has_value());
  EXPECT_NE(queue.error().message.find("a fleet needs the URL of a PostgreSQL database"), std::string::npos);
}

}  // namespace
}  // namespace collage
