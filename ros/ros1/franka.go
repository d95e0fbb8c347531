package ros1

import (
	"reflect"

	rosmsg "github.com/bluenviron/goroslib/v2/pkg/msg"
	"github.com/bluenviron/goroslib/v2/pkg/msgs/std_msgs"
)

// The types of franka_ros 0.10, which drives a Panda. The names and the order of the fields make the checksum.

func frankaMessages() []reflect.Type {
	return []reflect.Type{typ[FrankaState](), typ[FrankaErrors](), typ[GraspEpsilon]()}
}

func frankaServices() []reflect.Type {
	return []reflect.Type{typ[SetLoad](), typ[SetFullCollisionBehavior](), typ[SetForceTorqueCollisionBehavior]()}
}

func frankaActions() []reflect.Type {
	return []reflect.Type{typ[ErrorRecoveryAction](), typ[GraspAction](), typ[MoveAction](), typ[HomingAction](), typ[StopAction]()}
}

// FrankaErrors is franka_msgs/Errors.
type FrankaErrors struct {
	rosmsg.Package                                         `ros:"franka_msgs"`
	rosmsg.Name                                            `ros:"Errors"`
	JointPositionLimitsViolation                           bool
	CartesianPositionLimitsViolation                       bool
	SelfCollisionAvoidanceViolation                        bool
	JointVelocityViolation                                 bool
	CartesianVelocityViolation                             bool
	ForceControlSafetyViolation                            bool
	JointReflex                                            bool
	CartesianReflex                                        bool
	MaxGoalPoseDeviationViolation                          bool
	MaxPathPoseDeviationViolation                          bool
	CartesianVelocityProfileSafetyViolation                bool
	JointPositionMotionGeneratorStartPoseInvalid           bool
	JointMotionGeneratorPositionLimitsViolation            bool
	JointMotionGeneratorVelocityLimitsViolation            bool
	JointMotionGeneratorVelocityDiscontinuity              bool
	JointMotionGeneratorAccelerationDiscontinuity          bool
	CartesianPositionMotionGeneratorStartPoseInvalid       bool
	CartesianMotionGeneratorElbowLimitViolation            bool
	CartesianMotionGeneratorVelocityLimitsViolation        bool
	CartesianMotionGeneratorVelocityDiscontinuity          bool
	CartesianMotionGeneratorAccelerationDiscontinuity      bool
	CartesianMotionGeneratorElbowSignInconsistent          bool
	CartesianMotionGeneratorStartElbowInvalid              bool
	CartesianMotionGeneratorJointPositionLimitsViolation   bool
	CartesianMotionGeneratorJointVelocityLimitsViolation   bool
	CartesianMotionGeneratorJointVelocityDiscontinuity     bool
	CartesianMotionGeneratorJointAccelerationDiscontinuity bool
	CartesianPositionMotionGeneratorInvalidFrame           bool
	ForceControllerDesiredForceToleranceViolation          bool
	ControllerTorqueDiscontinuity                          bool
	StartElbowSignInconsistent                             bool
	CommunicationConstraintsViolation                      bool
	PowerLimitViolation                                    bool
	JointP2pInsufficientTorqueForPlanning                  bool
	TauJRangeViolation                                     bool
	InstabilityDetected                                    bool
	JointMoveInWrongDirection                              bool
	CartesianSplineMotionGeneratorViolation                bool
	JointViaMotionGeneratorPlanningJointLimitViolation     bool
	BaseAccelerationInitializationTimeout                  bool
	BaseAccelerationInvalidReading                         bool
}

// FrankaState is franka_msgs/FrankaState; matrices are column major.
type FrankaState struct {
	rosmsg.Package            `ros:"franka_msgs"`
	rosmsg.Definitions        `ros:"uint8 ROBOT_MODE_OTHER=0,uint8 ROBOT_MODE_IDLE=1,uint8 ROBOT_MODE_MOVE=2,uint8 ROBOT_MODE_GUIDING=3,uint8 ROBOT_MODE_REFLEX=4,uint8 ROBOT_MODE_USER_STOPPED=5,uint8 ROBOT_MODE_AUTOMATIC_ERROR_RECOVERY=6"`
	Header                    std_msgs.Header
	CartesianCollision        [6]float64
	CartesianContact          [6]float64
	Q                         [7]float64
	QD                        [7]float64
	Dq                        [7]float64
	DqD                       [7]float64
	DdqD                      [7]float64
	Theta                     [7]float64
	Dtheta                    [7]float64
	TauJ                      [7]float64 `rosname:"tau_J"`
	DtauJ                     [7]float64 `rosname:"dtau_J"`
	TauJD                     [7]float64 `rosname:"tau_J_d"`
	KFExtHatK                 [6]float64 `rosname:"K_F_ext_hat_K"`
	Elbow                     [2]float64
	ElbowD                    [2]float64
	ElbowC                    [2]float64
	DelbowC                   [2]float64
	DdelbowC                  [2]float64
	JointCollision            [7]float64
	JointContact              [7]float64
	OFExtHatK                 [6]float64 `rosname:"O_F_ext_hat_K"`
	ODPEED                    [6]float64 `rosname:"O_dP_EE_d"`
	ODdPO                     [3]float64 `rosname:"O_ddP_O"`
	ODPEEC                    [6]float64 `rosname:"O_dP_EE_c"`
	ODdPEEC                   [6]float64 `rosname:"O_ddP_EE_c"`
	TauExtHatFiltered         [7]float64
	MEe                       float64
	FXCee                     [3]float64 `rosname:"F_x_Cee"`
	IEe                       [9]float64 `rosname:"I_ee"`
	MLoad                     float64
	FXCload                   [3]float64 `rosname:"F_x_Cload"`
	ILoad                     [9]float64 `rosname:"I_load"`
	MTotal                    float64
	FXCtotal                  [3]float64  `rosname:"F_x_Ctotal"`
	ITotal                    [9]float64  `rosname:"I_total"`
	OTEE                      [16]float64 `rosname:"O_T_EE"`
	OTEED                     [16]float64 `rosname:"O_T_EE_d"`
	OTEEC                     [16]float64 `rosname:"O_T_EE_c"`
	FTEE                      [16]float64 `rosname:"F_T_EE"`
	FTNE                      [16]float64 `rosname:"F_T_NE"`
	NETEE                     [16]float64 `rosname:"NE_T_EE"`
	EETK                      [16]float64 `rosname:"EE_T_K"`
	Time                      float64
	ControlCommandSuccessRate float64
	RobotMode                 uint8
	CurrentErrors             FrankaErrors
	LastMotionErrors          FrankaErrors
}

// GraspEpsilon is franka_gripper/GraspEpsilon.
type GraspEpsilon struct {
	rosmsg.Package `ros:"franka_gripper"`
	Inner          float64
	Outer          float64
}

// Empty parts of actions, one for each, so that they have names of their own.
type (
	// ErrorRecoveryGoal has no fields.
	ErrorRecoveryGoal struct {
		rosmsg.Package `ros:"franka_msgs"`
	}
	// ErrorRecoveryResult has no fields.
	ErrorRecoveryResult struct {
		rosmsg.Package `ros:"franka_msgs"`
	}
	// ErrorRecoveryFeedback has no fields.
	ErrorRecoveryFeedback struct {
		rosmsg.Package `ros:"franka_msgs"`
	}
	// GraspFeedback has no fields.
	GraspFeedback struct {
		rosmsg.Package `ros:"franka_gripper"`
	}
	// MoveFeedback has no fields.
	MoveFeedback struct {
		rosmsg.Package `ros:"franka_gripper"`
	}
	// HomingGoal has no fields.
	HomingGoal struct {
		rosmsg.Package `ros:"franka_gripper"`
	}
	// HomingFeedback has no fields.
	HomingFeedback struct {
		rosmsg.Package `ros:"franka_gripper"`
	}
	// StopGoal has no fields.
	StopGoal struct {
		rosmsg.Package `ros:"franka_gripper"`
	}
	// StopFeedback has no fields.
	StopFeedback struct {
		rosmsg.Package `ros:"franka_gripper"`
	}
)

// ErrorRecoveryAction clears a reflex; send it only when robot_mode is 4 or 5.
type ErrorRecoveryAction struct {
	rosmsg.Package `ros:"franka_msgs"`
	ErrorRecoveryGoal
	ErrorRecoveryResult
	ErrorRecoveryFeedback
}

// GraspGoal is width and speed in m and m/s, force in N.
type GraspGoal struct {
	rosmsg.Package `ros:"franka_gripper"`
	Width          float64
	Epsilon        GraspEpsilon
	Speed          float64
	Force          float64
}

// MoveGoal is width and speed in m and m/s.
type MoveGoal struct {
	rosmsg.Package `ros:"franka_gripper"`
	Width          float64
	Speed          float64
}

// GraspResult says whether it worked, and why not.
type GraspResult struct {
	rosmsg.Package `ros:"franka_gripper"`
	Success        bool
	Error          string
}

// GraspAction is franka_gripper/GraspAction.
type GraspAction struct {
	rosmsg.Package `ros:"franka_gripper"`
	GraspGoal
	GraspResult
	GraspFeedback
}

// MoveResult says whether it worked, and why not.
type MoveResult struct {
	rosmsg.Package `ros:"franka_gripper"`
	Success        bool
	Error          string
}

// MoveAction is franka_gripper/MoveAction.
type MoveAction struct {
	rosmsg.Package `ros:"franka_gripper"`
	MoveGoal
	MoveResult
	MoveFeedback
}

// HomingResult says whether it worked, and why not.
type HomingResult struct {
	rosmsg.Package `ros:"franka_gripper"`
	Success        bool
	Error          string
}

// HomingAction is franka_gripper/HomingAction.
type HomingAction struct {
	rosmsg.Package `ros:"franka_gripper"`
	HomingGoal
	HomingResult
	HomingFeedback
}

// StopResult says whether it worked, and why not.
type StopResult struct {
	rosmsg.Package `ros:"franka_gripper"`
	Success        bool
	Error          string
}

// StopAction is franka_gripper/StopAction.
type StopAction struct {
	rosmsg.Package `ros:"franka_gripper"`
	StopGoal
	StopResult
	StopFeedback
}

// SetLoad is franka_msgs/SetLoad: kg, m, kg m2.
type SetLoad struct {
	rosmsg.Package `ros:"franka_msgs"`
	SetLoadReq
	SetLoadRes
}

// SetLoadReq is its request.
type SetLoadReq struct {
	rosmsg.Package `ros:"franka_msgs"`
	Mass           float64
	FXCenterLoad   [3]float64 `rosname:"F_x_center_load"`
	LoadInertia    [9]float64
}

// SetLoadRes is its response.
type SetLoadRes struct {
	rosmsg.Package `ros:"franka_msgs"`
	Success        bool
	Error          string
}

// SetFullCollisionBehavior is franka_msgs/SetFullCollisionBehavior.
type SetFullCollisionBehavior struct {
	rosmsg.Package `ros:"franka_msgs"`
	SetFullCollisionBehaviorReq
	SetFullCollisionBehaviorRes
}

// SetFullCollisionBehaviorReq is its request.
type SetFullCollisionBehaviorReq struct {
	rosmsg.Package                    `ros:"franka_msgs"`
	LowerTorqueThresholdsAcceleration [7]float64
	UpperTorqueThresholdsAcceleration [7]float64
	LowerTorqueThresholdsNominal      [7]float64
	UpperTorqueThresholdsNominal      [7]float64
	LowerForceThresholdsAcceleration  [6]float64
	UpperForceThresholdsAcceleration  [6]float64
	LowerForceThresholdsNominal       [6]float64
	UpperForceThresholdsNominal       [6]float64
}

// SetFullCollisionBehaviorRes is its response.
type SetFullCollisionBehaviorRes struct {
	rosmsg.Package `ros:"franka_msgs"`
	Success        bool
	Error          string
}

// SetForceTorqueCollisionBehavior is franka_msgs/SetForceTorqueCollisionBehavior.
type SetForceTorqueCollisionBehavior struct {
	rosmsg.Package `ros:"franka_msgs"`
	SetForceTorqueCollisionBehaviorReq
	SetForceTorqueCollisionBehaviorRes
}

// SetForceTorqueCollisionBehaviorReq is its request.
type SetForceTorqueCollisionBehaviorReq struct {
	rosmsg.Package               `ros:"franka_msgs"`
	LowerTorqueThresholdsNominal [7]float64
	UpperTorqueThresholdsNominal [7]float64
	LowerForceThresholdsNominal  [6]float64
	UpperForceThresholdsNominal  [6]float64
}

// SetForceTorqueCollisionBehaviorRes is its response.
type SetForceTorqueCollisionBehaviorRes struct {
	rosmsg.Package `ros:"franka_msgs"`
	Success        bool
	Error          string
}
