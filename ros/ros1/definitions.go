package ros1

import (
	"reflect"
	"slices"

	rosmsg "github.com/bluenviron/goroslib/v2/pkg/msg"
	"github.com/bluenviron/goroslib/v2/pkg/msgs/actionlib_msgs"
	"github.com/bluenviron/goroslib/v2/pkg/msgs/control_msgs"
	"github.com/bluenviron/goroslib/v2/pkg/msgs/diagnostic_msgs"
	"github.com/bluenviron/goroslib/v2/pkg/msgs/geometry_msgs"
	"github.com/bluenviron/goroslib/v2/pkg/msgs/nav_msgs"
	"github.com/bluenviron/goroslib/v2/pkg/msgs/rosgraph_msgs"
	"github.com/bluenviron/goroslib/v2/pkg/msgs/sensor_msgs"
	"github.com/bluenviron/goroslib/v2/pkg/msgs/std_msgs"
	"github.com/bluenviron/goroslib/v2/pkg/msgs/std_srvs"
	"github.com/bluenviron/goroslib/v2/pkg/msgs/tf2_msgs"
	"github.com/bluenviron/goroslib/v2/pkg/msgs/trajectory_msgs"
)

// This file lists the types that are spoken, and spells out where ROS 1 and ROS 2 differ.

func typ[T any]() reflect.Type { return reflect.TypeFor[T]() }

// messages are ROS 1's layouts. std_msgs/ByteMultiArray is not among them: goroslib gives it a wrong checksum.
func messages() []reflect.Type {
	return slices.Concat([]reflect.Type{
		typ[std_msgs.Bool](), typ[std_msgs.Byte](), typ[std_msgs.Char](), typ[std_msgs.ColorRGBA](), typ[std_msgs.Empty](),
		typ[std_msgs.Float32](), typ[std_msgs.Float64](), typ[std_msgs.Header](), typ[std_msgs.Int8](), typ[std_msgs.Int16](),
		typ[std_msgs.Int32](), typ[std_msgs.Int64](), typ[std_msgs.UInt8](), typ[std_msgs.UInt16](), typ[std_msgs.UInt32](),
		typ[std_msgs.UInt64](), typ[std_msgs.String](), typ[std_msgs.MultiArrayDimension](), typ[std_msgs.MultiArrayLayout](),
		typ[std_msgs.Float32MultiArray](), typ[std_msgs.Float64MultiArray](), typ[std_msgs.Int8MultiArray](),
		typ[std_msgs.Int16MultiArray](), typ[std_msgs.Int32MultiArray](), typ[std_msgs.Int64MultiArray](),
		typ[std_msgs.UInt8MultiArray](), typ[std_msgs.UInt16MultiArray](), typ[std_msgs.UInt32MultiArray](),
		typ[std_msgs.UInt64MultiArray](),

		typ[geometry_msgs.Accel](), typ[geometry_msgs.AccelStamped](), typ[geometry_msgs.AccelWithCovariance](),
		typ[geometry_msgs.AccelWithCovarianceStamped](), typ[geometry_msgs.Inertia](), typ[geometry_msgs.InertiaStamped](),
		typ[geometry_msgs.Point](), typ[geometry_msgs.Point32](), typ[geometry_msgs.PointStamped](), typ[geometry_msgs.Polygon](),
		typ[geometry_msgs.PolygonStamped](), typ[geometry_msgs.Pose](), typ[geometry_msgs.Pose2D](), typ[geometry_msgs.PoseArray](),
		typ[geometry_msgs.PoseStamped](), typ[geometry_msgs.PoseWithCovariance](), typ[geometry_msgs.PoseWithCovarianceStamped](),
		typ[geometry_msgs.Quaternion](), typ[geometry_msgs.QuaternionStamped](), typ[geometry_msgs.Transform](),
		typ[geometry_msgs.TransformStamped](), typ[geometry_msgs.Twist](), typ[geometry_msgs.TwistStamped](),
		typ[geometry_msgs.TwistWithCovariance](), typ[geometry_msgs.TwistWithCovarianceStamped](), typ[geometry_msgs.Vector3](),
		typ[geometry_msgs.Vector3Stamped](), typ[geometry_msgs.Wrench](), typ[geometry_msgs.WrenchStamped](),

		typ[sensor_msgs.BatteryState](), typ[sensor_msgs.CameraInfo](), typ[sensor_msgs.ChannelFloat32](),
		typ[sensor_msgs.CompressedImage](), typ[sensor_msgs.FluidPressure](), typ[sensor_msgs.Illuminance](),
		typ[sensor_msgs.Image](), typ[sensor_msgs.Imu](), typ[sensor_msgs.JointState](), typ[sensor_msgs.Joy](),
		typ[sensor_msgs.JoyFeedback](), typ[sensor_msgs.JoyFeedbackArray](), typ[sensor_msgs.LaserEcho](),
		typ[sensor_msgs.LaserScan](), typ[sensor_msgs.MagneticField](), typ[sensor_msgs.MultiDOFJointState](),
		typ[sensor_msgs.MultiEchoLaserScan](), typ[sensor_msgs.NavSatFix](), typ[sensor_msgs.NavSatStatus](),
		typ[sensor_msgs.PointCloud](), typ[sensor_msgs.PointCloud2](), typ[sensor_msgs.PointField](), typ[sensor_msgs.Range](),
		typ[sensor_msgs.RegionOfInterest](), typ[sensor_msgs.RelativeHumidity](), typ[sensor_msgs.Temperature](),
		typ[sensor_msgs.TimeReference](),

		typ[nav_msgs.GridCells](), typ[nav_msgs.MapMetaData](), typ[nav_msgs.OccupancyGrid](), typ[nav_msgs.Odometry](),
		typ[nav_msgs.Path](), typ[tf2_msgs.TF2Error](), typ[tf2_msgs.TFMessage](),
		typ[trajectory_msgs.JointTrajectory](), typ[trajectory_msgs.JointTrajectoryPoint](),
		typ[trajectory_msgs.MultiDOFJointTrajectory](), typ[trajectory_msgs.MultiDOFJointTrajectoryPoint](),
		typ[control_msgs.GripperCommand](), typ[control_msgs.JointControllerState](), typ[control_msgs.JointJog](),
		typ[control_msgs.JointTolerance](), typ[control_msgs.JointTrajectoryControllerState](), typ[control_msgs.PidState](),
		typ[diagnostic_msgs.DiagnosticArray](), typ[diagnostic_msgs.DiagnosticStatus](), typ[diagnostic_msgs.KeyValue](),
		typ[rosgraph_msgs.Clock](),
		typ[actionlib_msgs.GoalID](), typ[actionlib_msgs.GoalStatus](), typ[actionlib_msgs.GoalStatusArray](),
	}, frankaMessages())
}

func services() []reflect.Type {
	return slices.Concat([]reflect.Type{
		typ[std_srvs.Empty](), typ[std_srvs.SetBool](), typ[std_srvs.Trigger](),
		typ[diagnostic_msgs.SelfTest](), typ[nav_msgs.GetMap](), typ[nav_msgs.GetPlan](), typ[sensor_msgs.SetCameraInfo](),
		typ[control_msgs.QueryCalibrationState](), typ[control_msgs.QueryTrajectoryState](),
		typ[SwitchController](), typ[ListControllers](),
	}, frankaServices())
}

func actions() []reflect.Type {
	return slices.Concat([]reflect.Type{
		typ[control_msgs.FollowJointTrajectoryAction](), typ[control_msgs.GripperCommandAction](), typ[control_msgs.PointHeadAction](),
		typ[control_msgs.SingleJointPositionAction](), typ[tf2_msgs.LookupTransformAction](),
		typ[TestAction](),
	}, frankaActions())
}

// moved are the types that another package has in ROS 2. franka_ros1_msgs holds what only ROS 1's Franka has: its Errors
// count other flags than those of the same name in ROS 2.
func moved() map[string]string {
	return map[string]string{
		"franka_gripper/GraspAction":  "franka_msgs/action/Grasp",
		"franka_gripper/HomingAction": "franka_msgs/action/Homing",
		"franka_gripper/MoveAction":   "franka_msgs/action/Move",
		"franka_gripper/GraspEpsilon": "franka_msgs/msg/GraspEpsilon",
		"franka_msgs/FrankaState":     "franka_ros1_msgs/msg/FrankaState",
		"franka_msgs/Errors":          "franka_ros1_msgs/msg/Errors",
	}
}

// counterpart is ROS 2's name of a field of ROS 1.
func counterpart(one reflect.Type, field string) string {
	switch rosName(one) + "." + field {
	case "control_msgs/JointTrajectoryControllerState.Desired":
		return "Reference"
	case "control_msgs/JointTrajectoryControllerState.Actual":
		return "Feedback"
	case "controller_manager_msgs/SwitchControllerReq.StartControllers":
		return "ActivateControllers"
	case "controller_manager_msgs/SwitchControllerReq.StopControllers":
		return "DeactivateControllers"
	case "controller_manager_msgs/SwitchControllerReq.StartAsap":
		return "ActivateAsap"
	case "franka_msgs/SetLoadReq.FXCenterLoad":
		return "CenterOfMass"
	default:
		return field
	}
}

// dropped says that a field of ROS 1 has no place in ROS 2: it is zero when sent and passed over when read.
func dropped(one reflect.Type, field string) bool {
	switch rosName(one) + "." + field {
	case "std_msgs/Header.Seq":
		return true
	default:
		return false
	}
}

// SwitchController is controller_manager_msgs of ros_control 0.18 and later.
type SwitchController struct {
	rosmsg.Package `ros:"controller_manager_msgs"`
	SwitchControllerReq
	SwitchControllerRes
}

// SwitchControllerReq is its request.
type SwitchControllerReq struct {
	rosmsg.Package     `ros:"controller_manager_msgs"`
	rosmsg.Definitions `ros:"int32 BEST_EFFORT=1,int32 STRICT=2"`
	StartControllers   []string
	StopControllers    []string
	Strictness         int32
	StartAsap          bool
	Timeout            float64
}

// SwitchControllerRes is its response.
type SwitchControllerRes struct {
	rosmsg.Package `ros:"controller_manager_msgs"`
	Ok             bool
}

// ListControllers is controller_manager_msgs/ListControllers.
type ListControllers struct {
	rosmsg.Package `ros:"controller_manager_msgs"`
	ListControllersReq
	ListControllersRes
}

// ListControllersReq is its request.
type ListControllersReq struct {
	rosmsg.Package `ros:"controller_manager_msgs"`
}

// ListControllersRes is its response.
type ListControllersRes struct {
	rosmsg.Package `ros:"controller_manager_msgs"`
	Controller     []ControllerState
}

// ControllerState is one controller of the list.
type ControllerState struct {
	rosmsg.Package   `ros:"controller_manager_msgs"`
	Name             string
	State            string
	Type             string
	ClaimedResources []HardwareInterfaceResources
}

// HardwareInterfaceResources are what a controller claims.
type HardwareInterfaceResources struct {
	rosmsg.Package    `ros:"controller_manager_msgs"`
	HardwareInterface string
	Resources         []string
}

// TestAction is actionlib/TestAction, which goroslib has under another name in ROS 2's eyes.
type TestAction struct {
	rosmsg.Package `ros:"actionlib"`
	TestGoal
	TestResult
	TestFeedback
}

// TestGoal is its goal.
type TestGoal struct {
	rosmsg.Package `ros:"actionlib"`
	Goal           int32
}

// TestResult is its result.
type TestResult struct {
	rosmsg.Package `ros:"actionlib"`
	Result         int32
}

// TestFeedback is its feedback.
type TestFeedback struct {
	rosmsg.Package `ros:"actionlib"`
	Feedback       int32
}
