// A ROS node's half of the wire on Cyclone DDS, as rmw_cyclonedds_cpp of Humble behaves: peer MODE key=value ...
// It prints lines of JSON and ends when standard input is closed.
#include "peer.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

atomic_bool ended;
const qos_t services = {true, false, 10, 0}, latched = {true, true, 1, 0};

static char **options;
static int optionCount;
static dds_entity_t participant;
static dds_entity_t ownWriters[32], ownReaders[32];
static int ownWriterCount, ownReaderCount;
static dds_entity_t graphWriter, graphReader;
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;

const char *text(const char *key, const char *otherwise) {
  size_t n = strlen(key);
  for (int i = 0; i < optionCount; i++)
    if (strncmp(options[i], key, n) == 0 && options[i][n] == '=') return options[i] + n + 1;
  return otherwise;
}

double number(const char *key, double otherwise) {
  const char *t = text(key, NULL);
  return t == NULL ? otherwise : atof(t);
}

void say(const char *format, ...) {
  va_list args;
  pthread_mutex_lock(&output);
  va_start(args, format);
  vprintf(format, args);
  va_end(args);
  putchar('\n');
  fflush(stdout);
  pthread_mutex_unlock(&output);
}

const char *hex(const uint8_t *bytes, size_t n) {
  static char out[65];
  for (size_t i = 0; i < n && i < 32; i++) snprintf(out + 2 * i, 3, "%02x", bytes[i]);
  return out;
}

int64_t nanoseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

double cpuSeconds(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

void pauseMs(double milliseconds) {
  struct timespec t = {(time_t)(milliseconds / 1000), (long)((milliseconds - 1000 * (double)(long)(milliseconds / 1000)) * 1e6)};
  nanosleep(&t, NULL);
}

static void fault(const char *why) {
  say("{\"ev\":\"fault\",\"why\":\"%s\"}", why);
  exit(1);
}

void *need(void *p) {
  if (p == NULL) fault("no memory");
  return p;
}

void setText(char **field, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *t = NULL;
  if (vasprintf(&t, format, args) < 0) fault("no memory");
  va_end(args);
  free(*field);
  *field = t;
}

qos_t qosOfOptions(void) {
  qos_t q = {number("reliable", 1) != 0, number("transient", 0) != 0, (int)number("depth", 10), number("deadline", 0)};
  return q;
}

static dds_qos_t *policies(qos_t q, const char *userData) {
  dds_qos_t *p = dds_create_qos();
  dds_history_kind_t kind = q.depth == 0 ? DDS_HISTORY_KEEP_ALL : DDS_HISTORY_KEEP_LAST;
  int depth = q.depth == 0 ? DDS_LENGTH_UNLIMITED : q.depth;
  dds_qset_reliability(p, q.reliable ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT, DDS_INFINITY);
  dds_qset_durability(p, q.transient ? DDS_DURABILITY_TRANSIENT_LOCAL : DDS_DURABILITY_VOLATILE);
  if (q.transient) dds_qset_durability_service(p, 0, kind, depth, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
  dds_qset_history(p, kind, depth);
  if (q.deadline > 0) dds_qset_deadline(p, (dds_duration_t)(q.deadline * 1e9));
  dds_qset_writer_data_lifecycle(p, false);
  if (userData != NULL) dds_qset_userdata(p, userData, strlen(userData));
  return p;
}

static void onWriterMatched(dds_entity_t w, const dds_publication_matched_status_t s, void *topic) {
  (void)w;
  say("{\"ev\":\"matched\",\"topic\":\"%s\",\"count\":%u}", (char *)topic, s.current_count);
}

static void onReaderMatched(dds_entity_t r, const dds_subscription_matched_status_t s, void *topic) {
  (void)r;
  say("{\"ev\":\"matched\",\"topic\":\"%s\",\"count\":%u}", (char *)topic, s.current_count);
}

static void onOffered(dds_entity_t w, const dds_offered_incompatible_qos_status_t s, void *topic) {
  (void)w;
  say("{\"ev\":\"mismatch\",\"topic\":\"%s\",\"policy\":%u}", (char *)topic, s.last_policy_id);
}

static void onRequested(dds_entity_t r, const dds_requested_incompatible_qos_status_t s, void *topic) {
  (void)r;
  say("{\"ev\":\"mismatch\",\"topic\":\"%s\",\"policy\":%u}", (char *)topic, s.last_policy_id);
}

// create makes a writer or a reader and its topic; the name lives as long as the process, for the listeners.
static dds_entity_t create(bool writes, const dds_topic_descriptor_t *type, qos_t q, const char *userData, char *name) {
  dds_entity_t topic = dds_create_topic(participant, type, name, NULL, NULL);
  if (topic < 0) fault("no topic");
  dds_listener_t *l = dds_create_listener(NULL);
  dds_lset_publication_matched_arg(l, onWriterMatched, name, true);
  dds_lset_subscription_matched_arg(l, onReaderMatched, name, true);
  dds_lset_offered_incompatible_qos_arg(l, onOffered, name, true);
  dds_lset_requested_incompatible_qos_arg(l, onRequested, name, true);
  dds_qos_t *p = policies(q, userData);
  dds_entity_t e = writes ? dds_create_writer(participant, topic, p, l) : dds_create_reader(participant, topic, p, l);
  dds_delete_qos(p);
  dds_delete_listener(l);
  if (e < 0) fault("no endpoint");
  return e;
}

static char *formatName(const char *format, va_list args) {
  char *name = NULL;
  if (vasprintf(&name, format, args) < 0) fault("no memory");
  return name;
}

dds_entity_t writer(const dds_topic_descriptor_t *type, qos_t q, const char *userData, const char *topic, ...) {
  va_list args;
  va_start(args, topic);
  dds_entity_t e = create(true, type, q, userData, formatName(topic, args));
  va_end(args);
  return ownWriters[ownWriterCount++] = e;
}

dds_entity_t reader(const dds_topic_descriptor_t *type, qos_t q, const char *userData, const char *topic, ...) {
  va_list args;
  va_start(args, topic);
  dds_entity_t e = create(false, type, q, userData, formatName(topic, args));
  va_end(args);
  return ownReaders[ownReaderCount++] = e;
}

int matchedReaders(dds_entity_t w) {
  dds_publication_matched_status_t s;
  return dds_get_publication_matched_status(w, &s) == 0 ? (int)s.current_count : 0;
}

int matchedWriters(dds_entity_t r) {
  dds_subscription_matched_status_t s;
  return dds_get_subscription_matched_status(r, &s) == 0 ? (int)s.current_count : 0;
}

bool takeOne(dds_entity_t r, void *sample, dds_sample_info_t *info) {
  void *samples[] = {sample};
  while (dds_take(r, samples, info, 1, 1) == 1)
    if (info->valid_data) return true;
  return false;
}

// The graph: under the type's real name, whichever the form.
static dds_topic_descriptor_t graphType(void) {
  dds_topic_descriptor_t d = number("gid", 0) == 24 ? humble_ParticipantEntitiesInfo__desc : iron_ParticipantEntitiesInfo__desc;
  d.m_typename = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_";
  return d;
}

static void gid(dds_entity_t e, uint8_t *to) {
  dds_guid_t g;
  if (dds_get_guid(e, &g) != 0) fault("no guid");
  memcpy(to, g.v, 16);
}

// WRITE_GRAPH fills the message in one of the two forms and writes it.
#define WRITE_GRAPH(form)                                                                                             \
  do {                                                                                                                \
    form##_Gid_ readers[32] = {0}, writers[32] = {0};                                                                 \
    form##_NodeEntitiesInfo_ node = {0};                                                                              \
    form##_ParticipantEntitiesInfo_ info = {0};                                                                       \
    for (int i = 0; i < ownReaderCount; i++) gid(ownReaders[i], readers[i].data);                                     \
    for (int i = 0; i < ownWriterCount; i++) gid(ownWriters[i], writers[i].data);                                     \
    gid(participant, info.gid.data);                                                                                  \
    snprintf(node.node_namespace, sizeof node.node_namespace, "/");                                                   \
    snprintf(node.node_name, sizeof node.node_name, "%s", text("node", "peer"));                                      \
    node.reader_gid_seq._length = node.reader_gid_seq._maximum = (uint32_t)ownReaderCount;                            \
    node.reader_gid_seq._buffer = readers;                                                                            \
    node.writer_gid_seq._length = node.writer_gid_seq._maximum = (uint32_t)ownWriterCount;                            \
    node.writer_gid_seq._buffer = writers;                                                                            \
    info.node_entities_info_seq._length = info.node_entities_info_seq._maximum = 1;                                   \
    info.node_entities_info_seq._buffer = &node;                                                                      \
    dds_write(graphWriter, &info);                                                                                    \
  } while (0)

void announce(void) {
  if (number("gid", 0) != 24 && number("gid", 0) != 16) return;
  if (graphWriter == 0) {
    static dds_topic_descriptor_t *type;  // kept: endpoints may look at it later
    dds_topic_descriptor_t d = graphType();
    type = need(malloc(sizeof d));
    memcpy((void *)type, &d, sizeof d);
    qos_t keepAll = latched;
    keepAll.depth = 0;
    int w = ownWriterCount, r = ownReaderCount;
    graphWriter = writer(type, latched, NULL, "ros_discovery_info");
    graphReader = reader(type, keepAll, NULL, "ros_discovery_info");
    ownWriterCount = w;
    ownReaderCount = r;
  }
  if (number("silent", 0) != 0) return;
  if (number("gid", 0) == 24) WRITE_GRAPH(humble);
  else WRITE_GRAPH(iron);
}

#define READ_GRAPH(form)                                                                                              \
  do {                                                                                                                \
    static form##_ParticipantEntitiesInfo_ m;                                                                         \
    dds_sample_info_t info;                                                                                           \
    while (takeOne(graphReader, &m, &info)) {                                                                         \
      char nodes[4096] = "";                                                                                          \
      for (uint32_t i = 0; i < m.node_entities_info_seq._length; i++) {                                               \
        form##_NodeEntitiesInfo_ *n = &m.node_entities_info_seq._buffer[i];                                           \
        if (n->node_name[0] == 0 || n->node_namespace[0] == 0) say("{\"ev\":\"fault\",\"why\":\"empty node name returned by the RMW layer\"}"); \
        size_t at = strlen(nodes);                                                                                    \
        snprintf(nodes + at, sizeof nodes - at, "%s{\"name\":\"%s\",\"ns\":\"%s\",\"readers\":%u,\"writers\":%u}", at > 0 ? "," : "", n->node_name, n->node_namespace, n->reader_gid_seq._length, n->writer_gid_seq._length); \
      }                                                                                                               \
      say("{\"ev\":\"graph\",\"from\":\"%s\",\"nodes\":[%s]}", hex(m.gid.data, 16), nodes);                           \
    }                                                                                                                 \
  } while (0)

void readGraph(void) {
  if (graphReader == 0) return;
  if (number("gid", 0) == 24) READ_GRAPH(humble);
  else READ_GRAPH(iron);
}

static int graph(void) {
  writer(&std_msgs_msg_dds__String__desc, qosOfOptions(), NULL, "rt/peer_chatter");
  announce();
  say("{\"ev\":\"ready\"}");
  while (!ended) {
    readGraph();
    pauseMs(10);
  }
  return 0;
}

static void *watchInput(void *unused) {
  char b[64];
  while (read(0, b, sizeof b) > 0) {
  }
  ended = true;
  return unused;
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    int (*run)(void);
  } modes[] = {{"publish", publish}, {"subscribe", subscribe}, {"serve", serve}, {"call", call}, {"serve-action", serveAction}, {"send-goal", sendGoal}, {"graph", graph}};
  options = argv + 2;
  optionCount = argc - 2;
  for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++) {
    if (strcmp(argv[1], modes[i].name) != 0) continue;
    pthread_t t;
    pthread_create(&t, NULL, watchInput, NULL);
    dds_qos_t *q = dds_create_qos();
    dds_qset_userdata(q, "enclave=/;", 10);
    participant = dds_create_participant((dds_domainid_t)number("domain", 0), q, NULL);
    if (participant < 0) fault("no participant");
    dds_delete_qos(q);
    int rc = modes[i].run();
    dds_delete(participant);
    return rc;
  }
  fprintf(stderr, "usage: peer publish|subscribe|serve|call|serve-action|send-goal|graph key=value ...\n");
  return 2;
}
