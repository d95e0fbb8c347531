// Package feetech is a bus of Feetech STS servos: packets, transactions and registers.
//
// A packet is FF FF ID LEN INSTRUCTION PARAMETERS CHECKSUM, numbers little-endian, LEN = parameters + 2, checksum = the
// complement of the sum from ID on; a servo answers with its fault bits in place of the instruction. The bus is half duplex:
// who asks waits for the one answer. Nothing in an answer says which question it belongs to, so the bus takes care that
// answers of different questions differ in length (see Bus), and reads anything that is surprising a second time (see Servo).
//
// What can be written is a torque switch and a goal. A goal goes out in one packet with its speed and acceleration, and
// never with a zero in either: to the servo that is "no limit". Nothing here writes a register that outlives a power cut.
package feetech
