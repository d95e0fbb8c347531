// Services and one action, correlated as rmw_fastrtps_cpp does it: by the identity of the request's sample, which comes
// and goes in inline QoS.
#include "peer.hpp"

#include <cstring>
#include <functional>
#include <memory>

namespace {

using SampleIdentity = eprosima::fastrtps::rtps::SampleIdentity;
using namespace control_msgs::action::dds_;
using action_msgs::msg::dds_::GoalInfo_;
using action_msgs::msg::dds_::GoalStatus_;
using action_msgs::msg::dds_::GoalStatusArray_;
using action_msgs::srv::dds_::CancelGoal_Request_;
using action_msgs::srv::dds_::CancelGoal_Response_;
using UUID = std::array<uint8_t, 16>;

// Foreign drops what it cannot read. All clients of a service share a topic, and an answer to a client of another vendor has
// another layout; rmw looks at whose it is before it reads the fields, generated code reads them first and throws.
template <class Base>
class Foreign : public Base {
 public:
  bool deserialize(eprosima::fastrtps::rtps::SerializedPayload_t* payload, void* data) override {
    try {
      return Base::deserialize(payload, data);
    } catch (const std::exception&) {
      return false;
    }
  }
};

template <class Q, class QS, class A, class AS>
class Server {
 public:
  Server(Peer& p, const std::string& name) : peer(p) {
    requests = p.reader(fdds::TypeSupport(new QS()), "rq/" + name + "Request", QoS());
    replies = p.writer(fdds::TypeSupport(new AS()), "rr/" + name + "Reply", QoS());
  }
  // take gives each waiting request to f with the identity to answer to.
  void take(const std::function<void(const Q&, const SampleIdentity&)>& f) {
    Q q;
    fdds::SampleInfo info;
    while (requests->take_next_sample(&q, &info) == ReturnCode_t::RETCODE_OK) {
      if (!info.valid_data) continue;
      SampleIdentity id = info.sample_identity;
      if (info.related_sample_identity.writer_guid() != GUID::unknown()) id.writer_guid(info.related_sample_identity.writer_guid());
      f(q, id);
    }
  }
  // answer sends a; as rmw does, it waits a little for the reader that the client named, and drops the answer without it.
  void answer(const SampleIdentity& to, A a) {
    bool reader = (to.writer_guid().entityId.value[3] & 0x04) != 0;
    for (int i = 0; reader && i < 100 && !peer.has(replies, to.writer_guid()); i++) pause(1);
    if (reader && !peer.has(replies, to.writer_guid())) {
      say("{\"ev\":\"fault\",\"why\":\"the client's reader is not known: no answer\"}");
      return;
    }
    eprosima::fastrtps::rtps::WriteParams params;
    params.related_sample_identity(to);
    replies->write(&a, params);
  }

 private:
  Peer& peer;
  fdds::DataReader* requests;
  fdds::DataWriter* replies;
};

template <class Q, class QS, class A, class AS>
class Client {
 public:
  Client(Peer& p, const std::string& name) : peer(p) {
    requests = p.writer(fdds::TypeSupport(new QS()), "rq/" + name + "Request", QoS());
    replies = p.reader(fdds::TypeSupport(new Foreign<AS>()), "rr/" + name + "Reply", QoS());
  }
  bool available() { return peer.matched(requests) > 0 && peer.matched(replies) > 0; }
  int64_t send(Q q) {
    eprosima::fastrtps::rtps::WriteParams params;
    params.related_sample_identity().writer_guid(replies->guid());
    requests->write(&q, params);
    return params.sample_identity().sequence_number().to64long();
  }
  // take looks for the answer to request seq.
  bool take(int64_t seq, A& a) {
    fdds::SampleInfo info;
    while (replies->take_next_sample(&a, &info) == ReturnCode_t::RETCODE_OK) {
      if (!info.valid_data) continue;
      auto& id = info.related_sample_identity;
      bool ours = id.writer_guid() == replies->guid() || id.writer_guid() == requests->guid();
      if (ours && (int64_t)id.sequence_number().to64long() == seq) return true;
    }
    return false;
  }

 private:
  Peer& peer;
  fdds::DataWriter* requests;
  fdds::DataReader* replies;
};

template <class C>
bool wait(C& c) {
  while (!ended && !c.available()) pause(1);
  return !ended;
}

#define SERVICE(kind, pkg, name) kind<pkg::name##_Request_, pkg::name##_Request_PubSubType, pkg::name##_Response_, pkg::name##_Response_PubSubType>
namespace srvs = std_srvs::srv::dds_;

}  // namespace

int serve(Peer& p, const Options& o) {
  SERVICE(Server, srvs, Trigger) trigger(p, o.text("service", "peer") + "/trigger");
  SERVICE(Server, srvs, SetBool) set(p, o.text("service", "peer") + "/set");
  p.announce();
  say("{\"ev\":\"ready\"}");
  int n = 0;
  while (!ended) {
    trigger.take([&](const srvs::Trigger_Request_&, const SampleIdentity& id) {
      srvs::Trigger_Response_ a;
      a.success(true);
      a.message("stopped " + std::to_string(++n));
      trigger.answer(id, a);
    });
    set.take([&](const srvs::SetBool_Request_& q, const SampleIdentity& id) {
      srvs::SetBool_Response_ a;
      a.success(q.data());
      a.message(q.data() ? "on" : "off");
      set.answer(id, a);
    });
    p.readGraph();
    pause(1);
  }
  return 0;
}

int call(Peer& p, const Options& o) {
  SERVICE(Client, srvs, Trigger) trigger(p, o.text("service", "peer") + "/trigger");
  SERVICE(Client, srvs, SetBool) set(p, o.text("service", "peer") + "/set");
  p.announce();
  say("{\"ev\":\"ready\"}");
  if (!wait(trigger) || !wait(set)) return 0;
  int count = (int)o.number("count", 3), answered = 0;
  for (int i = 0; i < count && !ended; i++) {
    auto began = nanoseconds();
    int64_t seq = trigger.send({});
    srvs::Trigger_Response_ t;
    bool ok = false;
    while (!ended && !(ok = trigger.take(seq, t)) && nanoseconds() - began < 5000000000ll) pause(0.1);
    say("{\"ev\":\"answer\",\"ok\":%s,\"success\":%s,\"message\":%s,\"ms\":%.3f}", ok ? "true" : "false", t.success() ? "true" : "false", json(t.message()).c_str(), (double)(nanoseconds() - began) / 1e6);
    answered += ok;
    srvs::SetBool_Request_ q;
    q.data(i % 2 == 0);
    began = nanoseconds();
    seq = set.send(q);
    srvs::SetBool_Response_ s;
    ok = false;
    while (!ended && !(ok = set.take(seq, s)) && nanoseconds() - began < 5000000000ll) pause(0.1);
    say("{\"ev\":\"answer\",\"ok\":%s,\"success\":%s,\"message\":%s,\"ms\":%.3f}", ok ? "true" : "false", s.success() ? "true" : "false", json(s.message()).c_str(), (double)(nanoseconds() - began) / 1e6);
    answered += ok;
  }
  say("{\"ev\":\"called\",\"n\":%d,\"answered\":%d}", 2 * count, answered);
  while (!ended) pause(5);
  return 0;
}

namespace {

const char* flag(bool b) { return b ? "true" : "false"; }

double sum(const FollowJointTrajectory_Goal_& g) {
  double s = 0;
  for (auto& p : g.trajectory().points())
    for (double x : p.positions()) s += x;
  return s;
}

builtin_interfaces::msg::dds_::Time_ stampNow() {
  builtin_interfaces::msg::dds_::Time_ t;
  int64_t now = nanoseconds();
  t.sec((int32_t)(now / 1000000000));
  t.nanosec((uint32_t)(now % 1000000000));
  return t;
}

struct Goal {
  UUID id;
  FollowJointTrajectory_Goal_ goal;
  builtin_interfaces::msg::dds_::Time_ stamp;
  char status = 2;
  int steps = 0;
  int64_t next = 0;
  FollowJointTrajectory_Result_ result;
  std::vector<SampleIdentity> waiting;
};

class ActionServer {
 public:
  ActionServer(Peer& p, const Options& o)
      : name(o.text("action", "follow_joint_trajectory")), sendGoal(p, name + "/_action/send_goal"), getResult(p, name + "/_action/get_result"), cancel(p, name + "/_action/cancel_goal"), steps((int)o.number("steps", 5)), period((int64_t)(o.number("period", 20) * 1e6)) {
    feedback = p.writer(fdds::TypeSupport(new FollowJointTrajectory_FeedbackMessage_PubSubType()), "rt/" + name + "/_action/feedback", QoS());
    QoS latched;
    latched.transient = true;
    latched.depth = 1;
    status = p.writer(fdds::TypeSupport(new action_msgs::msg::dds_::GoalStatusArray_PubSubType()), "rt/" + name + "/_action/status", latched);
  }

  void turn() {
    sendGoal.take([&](const FollowJointTrajectory_SendGoal_Request_& q, const SampleIdentity& id) {
      FollowJointTrajectory_SendGoal_Response_ a;
      auto& t = q.goal().trajectory();
      a.accepted(!t.points().empty());
      a.stamp(stampNow());
      say("{\"ev\":\"goal\",\"id\":\"%s\",\"accepted\":%s,\"joints\":%zu,\"points\":%zu,\"sum\":%.6f,\"tolerance\":%zu}", hex(q.goal_id().uuid().data(), 16).c_str(), flag(a.accepted()), t.joint_names().size(), t.points().size(), sum(q.goal()), q.goal().goal_tolerance().size());
      if (a.accepted()) {
        auto g = std::make_unique<Goal>();
        g->id = q.goal_id().uuid();
        g->goal = q.goal();
        g->stamp = a.stamp();
        g->next = nanoseconds() + period;
        goals.push_back(std::move(g));
      }
      sendGoal.answer(id, a);
      if (a.accepted()) publishStatus();
    });
    cancel.take([&](const CancelGoal_Request_& q, const SampleIdentity& id) {
      CancelGoal_Response_ a;
      a.return_code(1);
      static const UUID all{};
      for (auto& g : goals) {
        if (g->status > 2 || (q.goal_info().goal_id().uuid() != all && q.goal_info().goal_id().uuid() != g->id)) continue;
        g->status = 3;
        GoalInfo_ info;
        info.goal_id().uuid(g->id);
        info.stamp(g->stamp);
        a.goals_canceling().push_back(info);
        a.return_code(0);
      }
      say("{\"ev\":\"cancel\",\"goals\":%zu}", a.goals_canceling().size());
      cancel.answer(id, a);
      publishStatus();
    });
    getResult.take([&](const FollowJointTrajectory_GetResult_Request_& q, const SampleIdentity& id) {
      for (auto& g : goals)
        if (g->id == q.goal_id().uuid()) {
          g->waiting.push_back(id);
          return;
        }
      FollowJointTrajectory_GetResult_Response_ a;
      a.status(0);
      getResult.answer(id, a);
    });
    for (auto& g : goals) step(*g);
  }

 private:
  void step(Goal& g) {
    if (g.status == 2 && g.steps < steps && nanoseconds() >= g.next) {
      g.next += period;
      g.steps++;
      FollowJointTrajectory_FeedbackMessage_ m;
      m.goal_id().uuid(g.id);
      m.feedback().joint_names(g.goal.trajectory().joint_names());
      m.feedback().desired(g.goal.trajectory().points().back());
      m.feedback().actual().positions().push_back(g.steps);
      feedback->write(&m);
      return;
    }
    if (g.status == 3) {
      g.status = 5;
      g.result.error_string("canceled after " + std::to_string(g.steps));
      publishStatus();
    } else if (g.status == 2 && g.steps == steps && nanoseconds() >= g.next) {
      g.status = 4;
      g.result.error_code(0);
      g.result.error_string("done " + std::to_string(g.steps));
      publishStatus();
    }
    if (g.status < 4) return;
    for (auto& id : g.waiting) {
      FollowJointTrajectory_GetResult_Response_ a;
      a.status(g.status);
      a.result(g.result);
      getResult.answer(id, a);
    }
    g.waiting.clear();
  }

  void publishStatus() {
    GoalStatusArray_ all;
    for (auto& g : goals) {
      GoalStatus_ s;
      s.goal_info().goal_id().uuid(g->id);
      s.goal_info().stamp(g->stamp);
      s.status(g->status);
      all.status_list().push_back(s);
    }
    status->write(&all);
  }

  std::string name;
  SERVICE(Server, control_msgs::action::dds_, FollowJointTrajectory_SendGoal) sendGoal;
  SERVICE(Server, control_msgs::action::dds_, FollowJointTrajectory_GetResult) getResult;
  SERVICE(Server, action_msgs::srv::dds_, CancelGoal) cancel;
  fdds::DataWriter *feedback, *status;
  int steps;
  int64_t period;
  std::vector<std::unique_ptr<Goal>> goals;
};

}  // namespace

int serveAction(Peer& p, const Options& o) {
  ActionServer s(p, o);
  p.announce();
  say("{\"ev\":\"ready\"}");
  while (!ended) {
    s.turn();
    p.readGraph();
    pause(1);
  }
  return 0;
}

// sendGoal sends one goal, cancels it after so many feedbacks when asked, and reports how it ended.
int sendGoal(Peer& p, const Options& o) {
  auto name = o.text("action", "follow_joint_trajectory");
  SERVICE(Client, control_msgs::action::dds_, FollowJointTrajectory_SendGoal) send(p, name + "/_action/send_goal");
  SERVICE(Client, control_msgs::action::dds_, FollowJointTrajectory_GetResult) get(p, name + "/_action/get_result");
  SERVICE(Client, action_msgs::srv::dds_, CancelGoal) cancel(p, name + "/_action/cancel_goal");
  auto* feedback = p.reader(fdds::TypeSupport(new FollowJointTrajectory_FeedbackMessage_PubSubType()), "rt/" + name + "/_action/feedback", QoS());
  QoS latched;
  latched.transient = true;
  latched.depth = 1;
  auto* status = p.reader(fdds::TypeSupport(new action_msgs::msg::dds_::GoalStatusArray_PubSubType()), "rt/" + name + "/_action/status", latched);
  p.announce();
  say("{\"ev\":\"ready\"}");
  if (!wait(send) || !wait(get) || !wait(cancel)) return 0;
  while (!ended && p.matched(feedback) == 0) pause(1);

  FollowJointTrajectory_SendGoal_Request_ q;
  for (int i = 0; i < 16; i++) q.goal_id().uuid()[i] = (uint8_t)(i * 13 + nanoseconds());
  auto& t = q.goal().trajectory();
  t.joint_names({"fr3_joint1", "fr3_joint2"});
  for (int i = 0; i < (int)o.number("points", 3); i++) {
    trajectory_msgs::msg::dds_::JointTrajectoryPoint_ point;
    point.positions({0.5 * i, -0.25 * i});
    point.time_from_start().sec(i);
    t.points().push_back(point);
  }
  control_msgs::msg::dds_::JointTolerance_ tolerance;
  tolerance.name("fr3_joint1");
  tolerance.position(0.01);
  q.goal().goal_tolerance().push_back(tolerance);
  int64_t seq = send.send(q);
  FollowJointTrajectory_SendGoal_Response_ accepted;
  while (!ended && !send.take(seq, accepted)) pause(0.2);
  say("{\"ev\":\"accepted\",\"accepted\":%s}", flag(accepted.accepted()));
  FollowJointTrajectory_GetResult_Request_ g;
  g.goal_id(q.goal_id());
  int64_t getSeq = accepted.accepted() ? get.send(g) : 0, cancelSeq = 0;
  int heard = 0, after = (int)o.number("cancel", 0);
  FollowJointTrajectory_GetResult_Response_ result;
  while (!ended && accepted.accepted()) {
    FollowJointTrajectory_FeedbackMessage_ f;
    fdds::SampleInfo info;
    while (feedback->take_next_sample(&f, &info) == ReturnCode_t::RETCODE_OK) {
      if (!info.valid_data || f.goal_id().uuid() != q.goal_id().uuid()) continue;
      heard++;
      say("{\"ev\":\"feedback\",\"n\":%d,\"actual\":%.3f}", heard, f.feedback().actual().positions().empty() ? -1.0 : f.feedback().actual().positions()[0]);
    }
    GoalStatusArray_ s;
    while (status->take_next_sample(&s, &info) == ReturnCode_t::RETCODE_OK) {
      if (!info.valid_data) continue;
      for (auto& one : s.status_list())
        if (one.goal_info().goal_id().uuid() == q.goal_id().uuid()) say("{\"ev\":\"status\",\"status\":%d}", one.status());
    }
    if (after > 0 && heard >= after && cancelSeq == 0) {
      CancelGoal_Request_ c;
      c.goal_info().goal_id(q.goal_id());
      cancelSeq = cancel.send(c);
    }
    CancelGoal_Response_ c;
    if (cancelSeq > 0 && cancel.take(cancelSeq, c)) say("{\"ev\":\"canceling\",\"code\":%d,\"goals\":%zu}", c.return_code(), c.goals_canceling().size());
    if (get.take(getSeq, result)) break;
    pause(0.5);
  }
  say("{\"ev\":\"result\",\"status\":%d,\"code\":%d,\"text\":%s,\"feedback\":%d}", result.status(), result.result().error_code(), json(result.result().error_string()).c_str(), heard);
  while (!ended) pause(5);
  return 0;
}
