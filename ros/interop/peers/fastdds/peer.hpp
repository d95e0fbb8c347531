// What the modes of the peer share: options, lines of JSON, the participant and endpoints with rmw's settings.
#pragma once
#include "rosPubSubTypes.h"

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantListener.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace fdds = eprosima::fastdds::dds;
using GUID = eprosima::fastrtps::rtps::GUID_t;

struct Options {
  std::map<std::string, std::string> values;
  std::string text(const std::string& key, const std::string& otherwise) const;
  double number(const std::string& key, double otherwise) const;
};

// say prints one line of JSON; printf's arguments.
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
// quoted is a JSON string.
std::string json(const std::string& s);
std::string hex(const unsigned char* bytes, size_t n);

int64_t nanoseconds();  // since the epoch
double cpuSeconds();    // of this process, user and system
void pause(double milliseconds);

// ended is true when standard input is closed, which ends the peer.
extern std::atomic<bool> ended;

struct QoS {
  bool reliable = true, transient = false;
  int depth = 10;  // 0 keeps all
  double deadline = 0;
  static QoS of(const Options& o);
};

// Peer is the participant; it counts what is matched to each endpoint and reports mismatches.
class Peer : public fdds::DataWriterListener, public fdds::DataReaderListener {
 public:
  explicit Peer(const Options& o);
  ~Peer() override;
  fdds::DataWriter* writer(fdds::TypeSupport type, const std::string& topic, const QoS& qos, const std::string& typeName = "");
  fdds::DataReader* reader(fdds::TypeSupport type, const std::string& topic, const QoS& qos, const std::string& typeName = "");
  int matched(fdds::DataWriter* w);
  int matched(fdds::DataReader* r);
  bool has(fdds::DataWriter* w, const GUID& reader);  // this reader is matched to w
  // announce publishes the graph of this process, when the options give the form of the gid.
  void announce();
  void readGraph();

 private:
  void on_publication_matched(fdds::DataWriter* w, const fdds::PublicationMatchedStatus& s) override;
  void on_subscription_matched(fdds::DataReader* r, const fdds::SubscriptionMatchedStatus& s) override;
  void on_offered_incompatible_qos(fdds::DataWriter* w, const fdds::OfferedIncompatibleQosStatus& s) override;
  void on_requested_incompatible_qos(fdds::DataReader* r, const fdds::RequestedIncompatibleQosStatus& s) override;
  fdds::Topic* topic(fdds::TypeSupport type, const std::string& name, const std::string& typeName);

  const Options& options;
  fdds::DomainParticipant* participant = nullptr;
  fdds::Publisher* publisher = nullptr;
  fdds::Subscriber* subscriber = nullptr;
  std::mutex mutex;
  std::map<fdds::DataWriter*, std::set<GUID>> readers;
  std::map<fdds::DataReader*, std::set<GUID>> writers;
  std::vector<GUID> ownReaders, ownWriters;
  fdds::DataWriter* graphWriter = nullptr;
  fdds::DataReader* graphReader = nullptr;
};

int publish(Peer& p, const Options& o);
int subscribe(Peer& p, const Options& o);
int serve(Peer& p, const Options& o);
int call(Peer& p, const Options& o);
int serveAction(Peer& p, const Options& o);
int sendGoal(Peer& p, const Options& o);
