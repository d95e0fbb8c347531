// A ROS node's half of the wire on Fast DDS, as rmw_fastrtps_cpp of Humble behaves: peer MODE key=value ...
// It prints lines of JSON and ends when standard input is closed.
#include "peer.hpp"

#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/log/Log.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>

#include <sys/resource.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

std::atomic<bool> ended{false};

std::string Options::text(const std::string& key, const std::string& otherwise) const {
  auto i = values.find(key);
  return i == values.end() ? otherwise : i->second;
}

double Options::number(const std::string& key, double otherwise) const {
  auto i = values.find(key);
  return i == values.end() ? otherwise : std::atof(i->second.c_str());
}

void say(const char* format, ...) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  va_list args;
  va_start(args, format);
  vprintf(format, args);
  va_end(args);
  putchar('\n');
  fflush(stdout);
}

std::string json(const std::string& s) {
  std::string out = "\"";
  for (unsigned char c : s) {
    char b[8];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += (char)c;
    } else if (c < 0x20) {
      snprintf(b, sizeof b, "\\u%04x", c);
      out += b;
    } else {
      out += (char)c;
    }
  }
  return out + "\"";
}

std::string hex(const unsigned char* bytes, size_t n) {
  std::string out;
  char b[3];
  for (size_t i = 0; i < n; i++) {
    snprintf(b, sizeof b, "%02x", bytes[i]);
    out += b;
  }
  return out;
}

int64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double cpuSeconds() {
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

void pause(double milliseconds) { std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds)); }

QoS QoS::of(const Options& o) {
  QoS q;
  q.reliable = o.number("reliable", 1) != 0;
  q.transient = o.number("transient", 0) != 0;
  q.depth = (int)o.number("depth", 10);
  q.deadline = o.number("deadline", 0);
  return q;
}

template <class T>
static void fill(T& to, const QoS& q) {
  to.reliability().kind = q.reliable ? fdds::RELIABLE_RELIABILITY_QOS : fdds::BEST_EFFORT_RELIABILITY_QOS;
  to.durability().kind = q.transient ? fdds::TRANSIENT_LOCAL_DURABILITY_QOS : fdds::VOLATILE_DURABILITY_QOS;
  to.history().kind = q.depth == 0 ? fdds::KEEP_ALL_HISTORY_QOS : fdds::KEEP_LAST_HISTORY_QOS;
  if (q.depth > 0) to.history().depth = q.depth;
  if (q.deadline > 0) to.deadline().period = eprosima::fastrtps::Duration_t((long double)(q.deadline));
  to.endpoint().history_memory_policy = eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  to.data_sharing().off();
}

Peer::Peer(const Options& o) : options(o) {
  fdds::DomainParticipantQos q;
  q.name("/");
  std::string enclave = "enclave=/;";
  q.user_data().setValue(std::vector<unsigned char>(enclave.c_str(), enclave.c_str() + enclave.size() + 1));
  if (o.text("net", "lo") == "lo") {  // this host alone, over UDP: nothing is left in /dev/shm when it is killed
    auto udp = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
    udp->interfaceWhiteList.push_back("127.0.0.1");
    udp->sendBufferSize = udp->receiveBufferSize = 4 << 20;
    q.transport().use_builtin_transports = false;
    q.transport().user_transports.push_back(udp);
    eprosima::fastrtps::rtps::Locator_t self;
    eprosima::fastrtps::rtps::IPLocator::setIPv4(self, 127, 0, 0, 1);
    q.wire_protocol().builtin.initialPeersList.push_back(self);
  }
  if (o.number("lease", 0) > 0) {
    q.wire_protocol().builtin.discovery_config.leaseDuration = eprosima::fastrtps::Duration_t((long double)o.number("lease", 20));
    q.wire_protocol().builtin.discovery_config.leaseDuration_announcementperiod = eprosima::fastrtps::Duration_t((long double)(o.number("lease", 20) / 4));
  }
  participant = fdds::DomainParticipantFactory::get_instance()->create_participant((uint32_t)o.number("domain", 0), q);
  if (participant == nullptr) {
    say("{\"ev\":\"fault\",\"why\":\"no participant\"}");
    exit(1);
  }
  publisher = participant->create_publisher(fdds::PUBLISHER_QOS_DEFAULT);
  subscriber = participant->create_subscriber(fdds::SUBSCRIBER_QOS_DEFAULT);
}

Peer::~Peer() {
  participant->delete_contained_entities();
  fdds::DomainParticipantFactory::get_instance()->delete_participant(participant);
}

fdds::Topic* Peer::topic(fdds::TypeSupport type, const std::string& name, const std::string& typeName) {
  std::string n = typeName.empty() ? type.get_type_name() : typeName;
  type.register_type(participant, n);
  if (auto* known = participant->lookup_topicdescription(name)) return static_cast<fdds::Topic*>(known);
  return participant->create_topic(name, n, fdds::TOPIC_QOS_DEFAULT);
}

fdds::DataWriter* Peer::writer(fdds::TypeSupport type, const std::string& name, const QoS& qos, const std::string& typeName) {
  fdds::DataWriterQos q;
  fill(q, qos);
  q.publish_mode().kind = options.number("async", 0) != 0 ? fdds::ASYNCHRONOUS_PUBLISH_MODE : fdds::SYNCHRONOUS_PUBLISH_MODE;
  auto* w = publisher->create_datawriter(topic(type, name, typeName), q, this);
  if (w == nullptr) {
    say("{\"ev\":\"fault\",\"why\":%s}", json("no writer for " + name).c_str());
    exit(1);
  }
  ownWriters.push_back(w->guid());
  return w;
}

fdds::DataReader* Peer::reader(fdds::TypeSupport type, const std::string& name, const QoS& qos, const std::string& typeName) {
  fdds::DataReaderQos q;
  fill(q, qos);
  auto* r = subscriber->create_datareader(topic(type, name, typeName), q, this);
  if (r == nullptr) {
    say("{\"ev\":\"fault\",\"why\":%s}", json("no reader for " + name).c_str());
    exit(1);
  }
  ownReaders.push_back(r->guid());
  return r;
}

int Peer::matched(fdds::DataWriter* w) {
  std::lock_guard<std::mutex> lock(mutex);
  return (int)readers[w].size();
}

int Peer::matched(fdds::DataReader* r) {
  std::lock_guard<std::mutex> lock(mutex);
  return (int)writers[r].size();
}

bool Peer::has(fdds::DataWriter* w, const GUID& reader) {
  std::lock_guard<std::mutex> lock(mutex);
  return readers[w].count(reader) != 0;
}

void Peer::on_publication_matched(fdds::DataWriter* w, const fdds::PublicationMatchedStatus& s) {
  GUID other = eprosima::fastrtps::rtps::iHandle2GUID(s.last_subscription_handle);
  std::lock_guard<std::mutex> lock(mutex);
  if (s.current_count_change > 0) readers[w].insert(other);
  else readers[w].erase(other);
  say("{\"ev\":\"matched\",\"topic\":%s,\"count\":%zu}", json(w->get_topic()->get_name()).c_str(), readers[w].size());
}

void Peer::on_subscription_matched(fdds::DataReader* r, const fdds::SubscriptionMatchedStatus& s) {
  GUID other = eprosima::fastrtps::rtps::iHandle2GUID(s.last_publication_handle);
  std::lock_guard<std::mutex> lock(mutex);
  if (s.current_count_change > 0) writers[r].insert(other);
  else writers[r].erase(other);
  say("{\"ev\":\"matched\",\"topic\":%s,\"count\":%zu}", json(r->get_topicdescription()->get_name()).c_str(), writers[r].size());
}

void Peer::on_offered_incompatible_qos(fdds::DataWriter*, const fdds::OfferedIncompatibleQosStatus& s) {
  say("{\"ev\":\"mismatch\",\"policy\":%u}", (unsigned)s.last_policy_id);
}

void Peer::on_requested_incompatible_qos(fdds::DataReader*, const fdds::RequestedIncompatibleQosStatus& s) {
  say("{\"ev\":\"mismatch\",\"policy\":%u}", (unsigned)s.last_policy_id);
}

namespace {

// Strict refuses what does not use up the payload, as a message of the other form of the gid may not.
template <class Base, class T>
class Strict : public Base {
 public:
  bool deserialize(eprosima::fastrtps::rtps::SerializedPayload_t* payload, void* data) override {
    uint32_t length = payload->length;
    if (!Base::deserialize(payload, data)) {
      say("{\"ev\":\"fault\",\"why\":\"graph: the message cannot be read\"}");
      return false;
    }
    uint32_t want = this->getSerializedSizeProvider(data)();
    if (length < want || length > want + 3) {
      say("{\"ev\":\"fault\",\"why\":\"graph: %u bytes came, %u are read\"}", length, want);
      return false;
    }
    return true;
  }
};

const char graphType[] = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_";

template <class Gid>
Gid gid(const GUID& g) {
  Gid out;
  out.data().fill(0);
  memcpy(out.data().data(), g.guidPrefix.value, 12);
  memcpy(out.data().data() + 12, g.entityId.value, 4);
  return out;
}

template <class Info, class Node, class Gid>
void writeGraph(fdds::DataWriter* w, const GUID& self, const Options& o, const std::vector<GUID>& readers, const std::vector<GUID>& writers) {
  Info info;
  info.gid(gid<Gid>(self));
  Node node;
  node.node_namespace("/");
  node.node_name(o.text("node", "peer"));
  for (auto& g : readers) node.reader_gid_seq().push_back(gid<Gid>(g));
  for (auto& g : writers) node.writer_gid_seq().push_back(gid<Gid>(g));
  info.node_entities_info_seq().push_back(node);
  w->write(&info);
}

template <class Info>
void takeGraph(fdds::DataReader* r) {
  Info info;
  fdds::SampleInfo si;
  while (r->take_next_sample(&info, &si) == ReturnCode_t::RETCODE_OK) {
    if (!si.valid_data) continue;
    std::string nodes;
    for (auto& n : info.node_entities_info_seq()) {
      std::string name = n.node_name().c_str(), space = n.node_namespace().c_str();
      if (name.empty() || space.empty()) say("{\"ev\":\"fault\",\"why\":\"empty node name returned by the RMW layer\"}");
      if (!nodes.empty()) nodes += ",";
      nodes += "{\"name\":" + json(name) + ",\"ns\":" + json(space) + ",\"readers\":" + std::to_string(n.reader_gid_seq().size()) + ",\"writers\":" + std::to_string(n.writer_gid_seq().size()) + "}";
    }
    say("{\"ev\":\"graph\",\"from\":\"%s\",\"nodes\":[%s]}", hex(info.gid().data().data(), 16).c_str(), nodes.c_str());
  }
}

}  // namespace

void Peer::announce() {
  bool humbleForm = options.number("gid", 0) == 24, ironForm = options.number("gid", 0) == 16;
  if (!humbleForm && !ironForm) return;
  if (graphWriter == nullptr) {
    QoS q;
    q.transient = true;
    q.depth = 1;
    auto readers = ownReaders, writers = ownWriters;
    fdds::TypeSupport type(humbleForm ? (fdds::TopicDataType*)new Strict<humble::ParticipantEntitiesInfo_PubSubType, humble::ParticipantEntitiesInfo_>() : (fdds::TopicDataType*)new Strict<iron::ParticipantEntitiesInfo_PubSubType, iron::ParticipantEntitiesInfo_>());
    graphWriter = writer(type, "ros_discovery_info", q, graphType);
    q.depth = 0;
    graphReader = reader(type, "ros_discovery_info", q, graphType);
    ownReaders = readers;
    ownWriters = writers;
  }
  if (options.number("silent", 0) != 0) return;
  if (humbleForm) writeGraph<humble::ParticipantEntitiesInfo_, humble::NodeEntitiesInfo_, humble::Gid_>(graphWriter, participant->guid(), options, ownReaders, ownWriters);
  else writeGraph<iron::ParticipantEntitiesInfo_, iron::NodeEntitiesInfo_, iron::Gid_>(graphWriter, participant->guid(), options, ownReaders, ownWriters);
}

void Peer::readGraph() {
  if (graphReader == nullptr) return;
  if (options.number("gid", 0) == 24) takeGraph<humble::ParticipantEntitiesInfo_>(graphReader);
  else takeGraph<iron::ParticipantEntitiesInfo_>(graphReader);
}

static int graph(Peer& p, const Options& o) {
  p.writer(fdds::TypeSupport(new std_msgs::msg::dds_::String_PubSubType()), "rt/peer_chatter", QoS::of(o));
  p.announce();
  say("{\"ev\":\"ready\"}");
  while (!ended) {
    p.readGraph();
    pause(10);
  }
  return 0;
}

int main(int argc, char** argv) {
  fdds::Log::SetVerbosity(fdds::Log::Error);
  Options o;
  for (int i = 2; i < argc; i++) {
    char* eq = strchr(argv[i], '=');
    if (eq == nullptr) {
      fprintf(stderr, "not key=value: %s\n", argv[i]);
      return 2;
    }
    o.values[std::string(argv[i], eq)] = eq + 1;
  }
  std::thread([] {
    char b[64];
    while (read(0, b, sizeof b) > 0) {
    }
    ended = true;
  }).detach();
  const std::map<std::string, int (*)(Peer&, const Options&)> modes = {
      {"publish", publish}, {"subscribe", subscribe}, {"serve", serve}, {"call", call}, {"serve-action", serveAction}, {"send-goal", sendGoal}, {"graph", graph}};
  auto mode = modes.find(argc > 1 ? argv[1] : "");
  if (mode == modes.end()) {
    fprintf(stderr, "usage: peer publish|subscribe|serve|call|serve-action|send-goal|graph key=value ...\n");
    return 2;
  }
  Peer p(o);
  return mode->second(p, o);
}
