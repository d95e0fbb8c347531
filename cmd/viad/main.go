// Command viad is the daemon that lets an AI agent drive a robot.
package main

import (
	"os"

	"viad/launch"
)

func main() { os.Exit(launch.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
