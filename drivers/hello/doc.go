// Package hello speaks with the boards of a Hello Robot Stretch 4 over their USB serial ports: stepper boards (lift, arm,
// three wheels) and the power board.
//
// A call is one remote procedure: a request in chunks, each a COBS frame with a CRC-16 and a zero byte at its end, and a
// reply in chunks. A board is opened in the old way of chunking (V0), says its firmware, and is spoken to in the new way
// (V1) from firmware v0.4 on. A protocol that is not known is refused.
//
// Numbers here are the boards' own: radians at the motor's shaft, amperes, volts, degrees for the power board's tilt. What
// they are of a robot is the caller's business. Gains and flash are never written, only read; of the triggers a few are
// sent, the others are refused.
//
// Source of ids, layouts and bits: hello-robot/stretch4_body, core/stepper.py, subsystem/power_periph.py and core/transport;
// hello-robot/stretch_firmware for what a stepper does with a command.
package hello
