package bus

import (
	"fmt"
	"math"

	"viad/drivers/feetech"
	"viad/drivers/geom"
	"viad/drivers/hello"
	"viad/drivers/robot"
)

// The table of units. Sources, of hello-robot/stretch4_body: robot/robot_params_SE4.py (gears, ranges, ids, currents),
// subsystem/{lift,arm,omnibase}.py, core/hello_utils.py (the wheels' matrix), core/feetech/feetech_SM_hello.py (ticks),
// utils/tool_metadata.py (grippers).
//
// Assumed, as nothing that was read says it or it was never seen on a robot:
//   - +y of the wheels' matrix is to the left (their azimuths agree with that, comments in the source do not);
//   - the motors' positive turn lifts, extends and drives as the matrix has it, the boards' flash having the polarity flips;
//   - the roll joint turns against its servo (its limits in the URDF are those of the servo, mirrored);
//   - the servo's speed register counts ticks per second;
//   - the bits in flash are those in force, as the board cannot be asked for the latter.
const (
	liftPinion, liftPitch             = 22.0, 0.005                  // teeth, m of belt per tooth
	armSprocket, armPitch, armGear    = 15.0, 0.009525, 2.33333      // teeth, m of chain per tooth, turns of the motor per turn of the sprocket
	wheelRadius, baseRadius           = 0.100, 0.174                 // m
	wheelGear                         = 6.0                          // turns of the motor per turn of the wheel
	wristGear, gripGear               = 2.0, 1.0                     // turns of the servo per turn of the joint
	wristFrom, wristTo                = -65.0, 245.0                 // degrees of all three at the servo, homed at the lower end
	liftTop, armOut                   = 1.20, 0.55                   // m, ends of the boards' own ranges
	crankRod, crankArm, crankPad      = 0.03025, 0.0220, 0.0105      // m, PG4: a slider crank
	crankZero, crankOpen              = 44.0, 116.5                  // degrees of its servo
	compliantFinger, compliantOpening = 0.18205, 0.150               // m, SG4: a chord of the fingers' length
	compliantShut, compliantOpen      = -100.0, 300.0                // degrees of its servo
	liftFloat, toolFloat, armFloat    = 1.7, 0.3, 0.0                // A that carry the lift, the tool on it, the arm
	contactCurrent, contactSense      = 2.0, 0.5                     // A (p7) and sensitivity (p8) at which guarded motors stop
	degree                            = math.Pi / 180                //
	wheelMost                         = 36.0                         // rad/s^2 of a wheel's motor: 0.25 m/s^2 and 2 rad/s^2 of the base together
	pg4Opening, pg4ID, sg4ID          = 0.080, byte(24), byte(23)    //
	yawID, pitchID, rollID            = byte(20), byte(21), byte(22) //
)

// The axes, in the order in which boards are numbered here. Lift and arm have the places of the Model.
const (
	liftAxis = iota
	armAxis
	omni0
	omni1
	omni2
	axes
)

// axisUnits is what one stepper is in the robot.
type axisUnits struct {
	name     string  // "lift"
	port     string  // the name of its port
	motor    int     // what the board says it was made for
	metre    float64 // m per rad of the motor; 0 for a wheel
	lo, hi   float64 // m, the board's own range
	carrying float64 // A that hold its weight
}

func axisTable() [axes]axisUnits {
	return [axes]axisUnits{
		{"lift", "hello-motor-lift", hello.MotorLift, liftPinion * liftPitch / (2 * math.Pi), 0, liftTop, liftFloat + toolFloat},
		{"arm", "hello-motor-arm", hello.MotorArm, armPitch * armSprocket / armGear / (2 * math.Pi), 0, armOut, armFloat},
		{"wheel omni-0", "hello-motor-omni-0", hello.MotorOmni0, 0, 0, 0, 0},
		{"wheel omni-1", "hello-motor-omni-1", hello.MotorOmni1, 0, 0, 0, 0},
		{"wheel omni-2", "hello-motor-omni-2", hello.MotorOmni2, 0, 0, 0, 0},
	}
}

// wheelAngle is where on the base a wheel is, from x to the left.
func wheelAngle(wheel int) float64 { return (30 + 120*float64(wheel)) * degree }

// wheels are the speeds of the wheels' motors (rad/s) for a twist of the base (m/s, rad/s): also radians for a step.
func wheels(v geom.SE2) (motor [3]float64) {
	for i := range motor {
		sin, cos := math.Sincos(wheelAngle(i))
		motor[i] = wheelGear / wheelRadius * (sin*v.X - cos*v.Y - baseRadius*v.Yaw)
	}
	return motor
}

// twist is the other way round: the three angles are even, so the matrix's inverse is its transpose but for scale.
func twist(motor [3]float64) (v geom.SE2) {
	for i, u := range motor {
		u *= wheelRadius / wheelGear
		sin, cos := math.Sincos(wheelAngle(i))
		v.X += 2.0 / 3 * sin * u
		v.Y -= 2.0 / 3 * cos * u
		v.Yaw -= u / (3 * baseRadius)
	}
	return v
}

// advance is the base after its wheels' motors turned by step (rad), on an arc.
func advance(base geom.SE2, step [3]float64) geom.SE2 {
	d := twist(step)
	sin, cos := math.Sincos(base.Yaw + d.Yaw/2)
	return geom.SE2{X: base.X + cos*d.X - sin*d.Y, Y: base.Y + sin*d.X + cos*d.Y, Yaw: base.Yaw + d.Yaw}
}

// Servos by their places here; the first three have those of the Model's joints after the arm.
const (
	yawServo = iota
	pitchServo
	rollServo
	gripServo
	servos
	firstTurn = armAxis + 1 // the Model's place of the yaw joint
	joints    = firstTurn + gripServo
)

// turn is the sign of a joint of the wrist against its servo.
func turn(servo int) float64 {
	if servo == rollServo {
		return -1
	}
	return 1
}

// wristJoint is a servo of the wrist with the Model's limits, which are its own to half a milliradian.
func wristJoint(servo int, m *robot.Model) feetech.Joint {
	j := m.Joints[firstTurn+servo]
	s := feetech.Joint{ID: [...]byte{yawID, pitchID, rollID}[servo], Name: j.Name, Gear: wristGear, Reversed: servo != rollServo}
	s = s.Range(wristFrom*degree, wristTo*degree)
	s.Min, s.Max = math.Min(turn(servo)*j.Min, turn(servo)*j.Max), math.Max(turn(servo)*j.Min, turn(servo)*j.Max)
	return s
}

// gripper is a gripper's servo, and what its angle (rad) is as an aperture (m).
type gripper struct {
	tool     string
	joint    feetech.Joint
	aperture func(rad float64) float64
	angle    func(aperture float64) float64
}

// gripperOf knows the tools "pg4" and "sg4".
func gripperOf(tool string) (gripper, error) {
	switch tool {
	case toolPG4:
		j := feetech.Joint{ID: pg4ID, Name: "gripper", Gear: gripGear, Reversed: true}
		return gripper{tool, j.Range(0, crankOpen*degree), crankAperture, crankAngle}, nil
	case toolSG4:
		j := feetech.Joint{ID: sg4ID, Name: "gripper", Gear: gripGear}
		return gripper{tool, j.Range(compliantShut*degree, compliantOpen*degree), chordAperture, chordAngle}, nil
	}
	return gripper{}, fmt.Errorf("stretch/bus: tool is %q, must be %q or %q", tool, toolPG4, toolSG4)
}

// Tools.
const (
	toolPG4 = "pg4"
	toolSG4 = "sg4"
)

// crankAperture is the opening of PG4: the servo's arm turns, a rod pushes the finger along its slide, both fingers alike.
func crankAperture(rad float64) float64 {
	sin, cos := math.Sincos(crankZero*degree - rad)
	along := crankArm*sin - math.Sqrt(crankRod*crankRod-crankArm*crankArm*cos*cos)
	return 2 * (-along - crankPad)
}

// crankAngle is its inverse.
func crankAngle(aperture float64) float64 {
	a := -(aperture/2 + crankPad)
	sin := (a*a + crankArm*crankArm - crankRod*crankRod) / (2 * a * crankArm)
	return crankZero*degree - math.Asin(math.Max(-1, math.Min(1, sin)))
}

// chordAperture is the opening of SG4: the angle between its fingers is linear in the servo's.
func chordAperture(rad float64) float64 {
	whole := 2 * math.Asin(compliantOpening/(2*compliantFinger))
	part := (rad/degree - compliantShut) / (compliantOpen - compliantShut)
	return 2 * compliantFinger * math.Sin(part*whole/2)
}

// chordAngle is its inverse.
func chordAngle(aperture float64) float64 {
	whole := 2 * math.Asin(compliantOpening/(2*compliantFinger))
	part := 2 * math.Asin(math.Max(-1, math.Min(1, aperture/(2*compliantFinger)))) / whole
	return (compliantShut + part*(compliantOpen-compliantShut)) * degree
}
