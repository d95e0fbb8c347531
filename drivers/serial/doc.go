// Package serial is a serial port with one owner, deadlines, and an unplug that is told from silence.
//
// The module below it reads a time-out as the end of the file, as it reads an unplug, waits in steps of 100 ms, and does
// not wake a reader when the port is closed. Here one goroutine reads for the life of the port and hands bytes on; who
// waits for them does so under his own context. When nothing came, the device node is looked at: a node that is gone or
// another one than was opened is an unplug.
//
// Only one process may have a port: flock on the node, and a refusal that names who has it.
package serial
