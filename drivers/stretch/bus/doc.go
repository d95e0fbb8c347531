// Package bus drives a Stretch 4 over its serial ports: five stepper boards (lift, arm, three omni wheels), the power board
// and the Feetech servos of wrist and gripper. It takes the place of the robot's own body server, which must not run.
//
// Joints are those of stretch.Model, in its order; the base frame is base_footprint, x forward, y left; the odometry frame
// begins where the wheels were first read, and is their motors' positions summed up. What the wires' numbers are in these
// units is one table, in units.go, with what in it is assumed.
//
// # Motion
//
// A plan is followed in short steps: lift and arm are sent to where the plan is in 0.4 s, by the boards' own trapezoidal
// profile and no faster than the plan needs, servos likewise, wheels by a velocity that is corrected by odometry, 12 times a
// second. Steppers in sync mode wait for the power board's motor sync, which is sent after each step and no more often than
// the board stands. So the robot halts when this process dies: lift, arm and wrist at their last goal, the base by the
// wheels' own watchdog, which takes a second; without that watchdog the base is not moved.
//
// A port that falls silent or is unplugged, a servo's fault, a contact that stops a motor, a runstop: each ends the motion,
// everything that can still be reached holds where it is, and the words name what it was. Ports are opened again, with
// everything asked anew, until the robot is complete. Nothing that a person has to decide is done by itself.
//
// At a runstop the steppers let go (the lift floats). The wrist holds where it is: the robot's own body makes it limp, and
// drops what it carries.
//
// # What this driver does not do
//
// It does not home. The robot's own homing of lift and arm rewrites the boards' gains on its way (guarded mode on, sync mode
// off, another stiffness), and that of the servos drives them by PWM against their stops and writes their offset: a bridge
// that dies in the middle of either leaves the robot changed. Home with the robot's own tool while this daemon is stopped; the
// homed state outlasts that, until the robot is switched off.
//
// The velocity watchdog of Dynamixel servos, which has to be cleared before goals are taken again (field fault 15), has no
// counterpart: these servos have no working watchdog, and no velocities are sent to them.
package bus
