// Services and one action, correlated as rmw_cyclonedds_cpp does it: by 16 bytes in front of the fields, which the server
// gives back, and by ids in the user data that tell which halves belong together.
#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {  // how each half of a service begins
  uint64_t client;
  int64_t seq;
} header_t;

typedef struct {
  dds_entity_t requests, replies;
  uint64_t id;      // of a client
  int64_t seq;      // of a client's last request
} service_t;

static char *identity(const char *kind, uint64_t *id) {
  static uint64_t counter;
  uint8_t b[16];
  uint64_t words[2] = {(uint64_t)nanoseconds(), ++counter << 32 | (uint64_t)(uintptr_t)&counter};
  memcpy(b, words, 16);
  *id = words[0] ^ words[1];
  char *out = need(calloc(1, 80));
  int at = snprintf(out, 80, "%s=", kind);
  for (int i = 0; i < 16; i++) at += snprintf(out + at, (size_t)(80 - at), "%s%02x", i > 0 ? "." : "", b[i]);
  snprintf(out + at, (size_t)(80 - at), ";");
  return out;
}

static service_t server(const dds_topic_descriptor_t *q, const dds_topic_descriptor_t *a, const char *name) {
  service_t s = {0};
  char *id = identity("serviceid", &s.id);
  s.requests = reader(q, services, id, "rq/%sRequest", name);
  s.replies = writer(a, services, id, "rr/%sReply", name);
  free(id);
  return s;
}

static service_t client(const dds_topic_descriptor_t *q, const dds_topic_descriptor_t *a, const char *name) {
  service_t s = {0};
  char *id = identity("clientid", &s.id);
  s.requests = writer(q, services, id, "rq/%sRequest", name);
  s.replies = reader(a, services, id, "rr/%sReply", name);
  free(id);
  return s;
}

// valueOf copies the value of key from user data "key=value;..." and is false when it is not there.
static bool valueOf(const dds_qos_t *q, const char *key, char *to, size_t room) {
  void *data = NULL;
  size_t n = 0;
  if (q == NULL || !dds_qget_userdata(q, &data, &n) || data == NULL) return false;
  bool found = false;
  for (char *at = data; at != NULL && *at != 0 && !found; at = strchr(at, ';'), at = at == NULL ? NULL : at + 1) {
    size_t k = strlen(key), v = strcspn(at, ";");
    if (strncmp(at, key, k) != 0 || at[k] != '=') continue;
    snprintf(to, room, "%.*s", (int)(v - k - 1), at + k + 1);
    found = true;
  }
  dds_free(data);
  return found;
}

static bool anyReader(dds_entity_t w, const char *key, const char *value) {
  dds_instance_handle_t all[64];
  int n = dds_get_matched_subscriptions(w, all, 64);
  bool found = false;
  for (int i = 0; i < n && i < 64 && !found; i++) {
    dds_builtintopic_endpoint_t *e = dds_get_matched_subscription_data(w, all[i]);
    if (e == NULL) continue;
    char v[80];
    found = valueOf(e->qos, key, v, sizeof v) && strcmp(v, value) == 0;
    dds_builtintopic_free_endpoint(e);
  }
  return found;
}

// available: a server whose two halves are both matched; halves without ids are taken for one server's.
static bool available(service_t *c) {
  dds_instance_handle_t all[64];
  int n = dds_get_matched_publications(c->replies, all, 64);
  bool found = false;
  for (int i = 0; i < n && i < 64 && !found; i++) {
    dds_builtintopic_endpoint_t *e = dds_get_matched_publication_data(c->replies, all[i]);
    if (e == NULL) continue;
    char id[80];
    if (valueOf(e->qos, "serviceid", id, sizeof id)) found = anyReader(c->requests, "serviceid", id);
    else found = matchedReaders(c->requests) > 0;
    dds_builtintopic_free_endpoint(e);
  }
  return found;
}

static bool waitFor(service_t *c) {
  while (!ended && !available(c)) pauseMs(1);
  return !ended;
}

// answer sends a reply to the request whose header and info these are; as rmw does, it waits a little for the reader of the
// same client, and drops the answer without it.
static void answer(service_t *s, const void *request, const dds_sample_info_t *info, void *reply) {
  *(header_t *)reply = *(const header_t *)request;
  dds_builtintopic_endpoint_t *from = dds_get_matched_publication_data(s->requests, info->publication_handle);
  if (from == NULL) {
    say("{\"ev\":\"fault\",\"why\":\"the client is gone: no answer\"}");
    return;
  }
  char id[80];
  if (valueOf(from->qos, "clientid", id, sizeof id)) {
    int tries = 0;
    while (!anyReader(s->replies, "clientid", id) && tries++ < 100) pauseMs(1);
    if (tries > 100) say("{\"ev\":\"fault\",\"why\":\"the client's reader is not known: no answer\"}");
    if (tries <= 100) dds_write(s->replies, reply);
  } else {
    dds_write(s->replies, reply);
  }
  dds_builtintopic_free_endpoint(from);
}

static void send(service_t *c, void *request) {
  header_t *h = request;
  h->client = c->id;
  h->seq = ++c->seq;
  dds_write(c->requests, request);
}

// answered looks for the reply to the last request.
static bool answered(service_t *c, void *reply) {
  dds_sample_info_t info;
  const header_t *h = reply;
  while (takeOne(c->replies, reply, &info))
    if (h->client == c->id && h->seq == c->seq) return true;
  return false;
}

#define SERVER(type, name) server(&type##_Request__desc, &type##_Response__desc, name)
#define CLIENT(type, name) client(&type##_Request__desc, &type##_Response__desc, name)
#define NAME(buffer, format, ...) snprintf(buffer, sizeof buffer, format, __VA_ARGS__)

int serve(void) {
  char t[128], b[128];
  NAME(t, "%s/trigger", text("service", "peer"));
  NAME(b, "%s/set", text("service", "peer"));
  service_t trigger = SERVER(std_srvs_srv_dds__Trigger, t), set = SERVER(std_srvs_srv_dds__SetBool, b);
  announce();
  say("{\"ev\":\"ready\"}");
  int n = 0;
  dds_sample_info_t info;
  while (!ended) {
    std_srvs_srv_dds__Trigger_Request_ tq;
    while (takeOne(trigger.requests, &tq, &info)) {
      char m[32];
      NAME(m, "stopped %d", ++n);
      std_srvs_srv_dds__Trigger_Response_ a = {.success = true, .message = m};
      answer(&trigger, &tq, &info, &a);
    }
    std_srvs_srv_dds__SetBool_Request_ sq;
    while (takeOne(set.requests, &sq, &info)) {
      std_srvs_srv_dds__SetBool_Response_ a = {.success = sq.data, .message = sq.data ? "on" : "off"};
      answer(&set, &sq, &info, &a);
    }
    readGraph();
    pauseMs(1);
  }
  return 0;
}

static const char *flag(bool b) { return b ? "true" : "false"; }

static bool ask(service_t *c, void *request, void *reply) {
  int64_t began = nanoseconds();
  send(c, request);
  bool ok = false;
  while (!ended && !(ok = answered(c, reply)) && nanoseconds() - began < 5000000000ll) pauseMs(.1);
  return ok;
}

int call(void) {
  char t[128], b[128];
  NAME(t, "%s/trigger", text("service", "peer"));
  NAME(b, "%s/set", text("service", "peer"));
  service_t trigger = CLIENT(std_srvs_srv_dds__Trigger, t), set = CLIENT(std_srvs_srv_dds__SetBool, b);
  announce();
  say("{\"ev\":\"ready\"}");
  if (!waitFor(&trigger) || !waitFor(&set)) return 0;
  int count = (int)number("count", 3), got = 0;
  for (int i = 0; i < count && !ended; i++) {
    std_srvs_srv_dds__Trigger_Request_ tq = {0};
    static std_srvs_srv_dds__Trigger_Response_ ta;
    int64_t began = nanoseconds();
    bool ok = ask(&trigger, &tq, &ta);
    say("{\"ev\":\"answer\",\"ok\":%s,\"success\":%s,\"message\":\"%s\",\"ms\":%.3f}", flag(ok), flag(ta.success), ta.message == NULL ? "" : ta.message, (double)(nanoseconds() - began) / 1e6);
    got += ok;
    std_srvs_srv_dds__SetBool_Request_ sq = {.data = i % 2 == 0};
    static std_srvs_srv_dds__SetBool_Response_ sa;
    began = nanoseconds();
    ok = ask(&set, &sq, &sa);
    say("{\"ev\":\"answer\",\"ok\":%s,\"success\":%s,\"message\":\"%s\",\"ms\":%.3f}", flag(ok), flag(sa.success), sa.message == NULL ? "" : sa.message, (double)(nanoseconds() - began) / 1e6);
    got += ok;
  }
  say("{\"ev\":\"called\",\"n\":%d,\"answered\":%d}", 2 * count, got);
  while (!ended) pauseMs(5);
  return 0;
}

// The action: names are long, so shorter ones here.
#define FJT(part) control_msgs_action_dds__FollowJointTrajectory_##part
typedef action_msgs_srv_dds__CancelGoal_Request_ cancel_q;
typedef action_msgs_srv_dds__CancelGoal_Response_ cancel_a;
typedef action_msgs_msg_dds__GoalStatusArray_ statuses_t;

typedef struct {
  uint8_t id[16];
  builtin_interfaces_msg_dds__Time_ stamp;
  int8_t status;
  int steps;
  int64_t next;
  char words[64];
  FJT(GetResult_Request_) asked;  // who waits for the result
  dds_sample_info_t askedInfo;
  bool waits;
} goal_t;

#define GOALS 64
static goal_t goals[GOALS];
static int goalCount;
static service_t sendService, resultService, cancelService;
static dds_entity_t feedbackWriter, statusWriter;

static builtin_interfaces_msg_dds__Time_ stampNow(void) {
  int64_t now = nanoseconds();
  builtin_interfaces_msg_dds__Time_ t = {(int32_t)(now / 1000000000), (uint32_t)(now % 1000000000)};
  return t;
}

static void publishStatus(void) {
  action_msgs_msg_dds__GoalStatus_ list[GOALS];
  memset(list, 0, sizeof list);
  for (int i = 0; i < goalCount; i++) {
    memcpy(list[i].goal_info.goal_id.uuid, goals[i].id, 16);
    list[i].goal_info.stamp = goals[i].stamp;
    list[i].status = (char)goals[i].status;
  }
  statuses_t all = {.status_list = {._length = (uint32_t)goalCount, ._maximum = GOALS, ._buffer = list}};
  dds_write(statusWriter, &all);
}

static void takeGoals(void) {
  static FJT(SendGoal_Request_) q;
  dds_sample_info_t info;
  while (takeOne(sendService.requests, &q, &info)) {
    trajectory_msgs_msg_dds__JointTrajectory_ *t = &q.goal.trajectory;
    double sum = 0;
    for (uint32_t i = 0; i < t->points._length; i++)
      for (uint32_t j = 0; j < t->points._buffer[i].positions._length; j++) sum += t->points._buffer[i].positions._buffer[j];
    FJT(SendGoal_Response_) a = {.accepted = t->points._length > 0 && goalCount < GOALS, .stamp = stampNow()};
    say("{\"ev\":\"goal\",\"id\":\"%s\",\"accepted\":%s,\"joints\":%u,\"points\":%u,\"sum\":%.6f,\"tolerance\":%u}", hex(q.goal_id.uuid, 16), flag(a.accepted), t->joint_names._length, t->points._length, sum, q.goal.goal_tolerance._length);
    if (a.accepted) {
      goal_t *g = &goals[goalCount++];
      memcpy(g->id, q.goal_id.uuid, 16);
      g->stamp = a.stamp;
      g->status = 2;
      g->next = nanoseconds() + (int64_t)(number("period", 20) * 1e6);
    }
    answer(&sendService, &q, &info, &a);
    if (a.accepted) publishStatus();
  }
}

static void takeCancels(void) {
  static cancel_q q;
  static const uint8_t all[16];
  dds_sample_info_t info;
  while (takeOne(cancelService.requests, &q, &info)) {
    action_msgs_msg_dds__GoalInfo_ list[GOALS];
    memset(list, 0, sizeof list);
    cancel_a a = {.return_code = 1, .goals_canceling = {._maximum = GOALS, ._buffer = list}};
    for (int i = 0; i < goalCount; i++) {
      bool meant = memcmp(q.goal_info.goal_id.uuid, all, 16) == 0 || memcmp(q.goal_info.goal_id.uuid, goals[i].id, 16) == 0;
      if (!meant || goals[i].status > 2) continue;
      goals[i].status = 3;
      action_msgs_msg_dds__GoalInfo_ *entry = &list[a.goals_canceling._length++];
      memcpy(entry->goal_id.uuid, goals[i].id, 16);
      entry->stamp = goals[i].stamp;
      a.return_code = 0;
    }
    say("{\"ev\":\"cancel\",\"goals\":%u}", a.goals_canceling._length);
    answer(&cancelService, &q, &info, &a);
    publishStatus();
  }
}

static void takeResultRequests(void) {
  FJT(GetResult_Request_) q;
  dds_sample_info_t info;
  while (takeOne(resultService.requests, &q, &info)) {
    bool known = false;
    for (int i = 0; i < goalCount; i++) {
      if (memcmp(q.goal_id.uuid, goals[i].id, 16) != 0) continue;
      goals[i].asked = q;
      goals[i].askedInfo = info;
      goals[i].waits = known = true;
    }
    FJT(GetResult_Response_) a = {.status = 0, .result = {.error_string = ""}};
    if (!known) answer(&resultService, &q, &info, &a);
  }
}

static void step(goal_t *g) {
  int steps = (int)number("steps", 5);
  if (g->status == 2 && g->steps < steps && nanoseconds() >= g->next) {
    g->next += (int64_t)(number("period", 20) * 1e6);
    g->steps++;
    double actual = g->steps;
    char *names[] = {"fr3_joint1", "fr3_joint2"};
    FJT(FeedbackMessage_) m;
    memset(&m, 0, sizeof m);
    memcpy(m.goal_id.uuid, g->id, 16);
    m.feedback.header.frame_id = "";
    m.feedback.joint_names._length = m.feedback.joint_names._maximum = 2;
    m.feedback.joint_names._buffer = names;
    m.feedback.actual.positions._length = m.feedback.actual.positions._maximum = 1;
    m.feedback.actual.positions._buffer = &actual;
    dds_write(feedbackWriter, &m);
    return;
  }
  if (g->status == 3) {
    g->status = 5;
    NAME(g->words, "canceled after %d", g->steps);
    publishStatus();
  } else if (g->status == 2 && g->steps == steps && nanoseconds() >= g->next) {
    g->status = 4;
    NAME(g->words, "done %d", g->steps);
    publishStatus();
  }
  if (g->status < 4 || !g->waits) return;
  g->waits = false;
  FJT(GetResult_Response_) a = {.status = (char)g->status, .result = {.error_string = g->words}};
  answer(&resultService, &g->asked, &g->askedInfo, &a);
}

int serveAction(void) {
  const char *name = text("action", "follow_joint_trajectory");
  char b[160];
  NAME(b, "%s/_action/send_goal", name);
  sendService = SERVER(control_msgs_action_dds__FollowJointTrajectory_SendGoal, b);
  NAME(b, "%s/_action/get_result", name);
  resultService = SERVER(control_msgs_action_dds__FollowJointTrajectory_GetResult, b);
  NAME(b, "%s/_action/cancel_goal", name);
  cancelService = SERVER(action_msgs_srv_dds__CancelGoal, b);
  feedbackWriter = writer(&FJT(FeedbackMessage__desc), services, NULL, "rt/%s/_action/feedback", name);
  statusWriter = writer(&action_msgs_msg_dds__GoalStatusArray__desc, latched, NULL, "rt/%s/_action/status", name);
  announce();
  say("{\"ev\":\"ready\"}");
  while (!ended) {
    takeGoals();
    takeCancels();
    takeResultRequests();
    for (int i = 0; i < goalCount; i++) step(&goals[i]);
    readGraph();
    pauseMs(1);
  }
  return 0;
}

// request fills a goal of two joints.
static void request(FJT(SendGoal_Request_) *q) {
  static char *names[] = {"fr3_joint1", "fr3_joint2"};
  static control_msgs_msg_dds__JointTolerance_ tolerance = {.name = "fr3_joint1", .position = 0.01};
  memset(q, 0, sizeof *q);
  for (int i = 0; i < 16; i++) q->goal_id.uuid[i] = (uint8_t)(i * 13 + nanoseconds());
  trajectory_msgs_msg_dds__JointTrajectory_ *t = &q->goal.trajectory;
  t->header.frame_id = q->goal.multi_dof_trajectory.header.frame_id = "";
  t->joint_names._length = t->joint_names._maximum = 2;
  t->joint_names._buffer = names;
  uint32_t n = (uint32_t)number("points", 3);
  t->points._length = t->points._maximum = n;
  t->points._buffer = need(calloc(n + 1, sizeof *t->points._buffer));
  for (uint32_t i = 0; i < n; i++) {
    dds_sequence_double *p = &t->points._buffer[i].positions;
    p->_length = p->_maximum = 2;
    p->_buffer = need(calloc(2, sizeof(double)));
    p->_buffer[0] = 0.5 * i;
    p->_buffer[1] = -0.25 * i;
    t->points._buffer[i].time_from_start.sec = (int32_t)i;
  }
  q->goal.goal_tolerance._length = q->goal.goal_tolerance._maximum = 1;
  q->goal.goal_tolerance._buffer = &tolerance;
}

// sendGoal sends one goal, cancels it after so many feedbacks when asked, and reports how it ended.
int sendGoal(void) {
  const char *name = text("action", "follow_joint_trajectory");
  char b[160];
  NAME(b, "%s/_action/send_goal", name);
  sendService = CLIENT(control_msgs_action_dds__FollowJointTrajectory_SendGoal, b);
  NAME(b, "%s/_action/get_result", name);
  resultService = CLIENT(control_msgs_action_dds__FollowJointTrajectory_GetResult, b);
  NAME(b, "%s/_action/cancel_goal", name);
  cancelService = CLIENT(action_msgs_srv_dds__CancelGoal, b);
  dds_entity_t feedback = reader(&FJT(FeedbackMessage__desc), services, NULL, "rt/%s/_action/feedback", name);
  dds_entity_t status = reader(&action_msgs_msg_dds__GoalStatusArray__desc, latched, NULL, "rt/%s/_action/status", name);
  announce();
  say("{\"ev\":\"ready\"}");
  if (!waitFor(&sendService) || !waitFor(&resultService) || !waitFor(&cancelService)) return 0;
  while (!ended && matchedWriters(feedback) == 0) pauseMs(1);

  FJT(SendGoal_Request_) q;
  request(&q);
  send(&sendService, &q);
  FJT(SendGoal_Response_) accepted = {0};
  while (!ended && !answered(&sendService, &accepted)) pauseMs(.2);
  say("{\"ev\":\"accepted\",\"accepted\":%s}", flag(accepted.accepted));
  FJT(GetResult_Request_) get = {0};
  memcpy(get.goal_id.uuid, q.goal_id.uuid, 16);
  if (accepted.accepted) send(&resultService, &get);
  int heard = 0, after = (int)number("cancel", 0);
  bool asked = false;
  static FJT(GetResult_Response_) result;
  static FJT(FeedbackMessage_) f;
  static statuses_t s;
  static cancel_a canceling;
  dds_sample_info_t info;
  while (!ended && accepted.accepted) {
    while (takeOne(feedback, &f, &info)) {
      if (memcmp(f.goal_id.uuid, q.goal_id.uuid, 16) != 0) continue;
      dds_sequence_double *p = &f.feedback.actual.positions;
      say("{\"ev\":\"feedback\",\"n\":%d,\"actual\":%.3f}", ++heard, p->_length == 0 ? -1.0 : p->_buffer[0]);
    }
    while (takeOne(status, &s, &info))
      for (uint32_t i = 0; i < s.status_list._length; i++)
        if (memcmp(s.status_list._buffer[i].goal_info.goal_id.uuid, q.goal_id.uuid, 16) == 0) say("{\"ev\":\"status\",\"status\":%d}", s.status_list._buffer[i].status);
    if (after > 0 && heard >= after && !asked) {
      cancel_q c = {0};
      memcpy(c.goal_info.goal_id.uuid, q.goal_id.uuid, 16);
      send(&cancelService, &c);
      asked = true;
    }
    if (asked && answered(&cancelService, &canceling)) say("{\"ev\":\"canceling\",\"code\":%d,\"goals\":%u}", canceling.return_code, canceling.goals_canceling._length);
    if (answered(&resultService, &result)) break;
    pauseMs(.5);
  }
  say("{\"ev\":\"result\",\"status\":%d,\"code\":%d,\"text\":\"%s\",\"feedback\":%d}", result.status, result.result.error_code, result.result.error_string == NULL ? "" : result.result.error_string, heard);
  while (!ended) pauseMs(5);
  return 0;
}
