package kill

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"viad/launch"
)

var (
	matrix  = flag.String("matrix", "short", `which cells: short, all, or names joined by commas: "franka-dds", or with the kill "franka-dds/daemon killed"`)
	pics    = flag.Duration("pictures", 250*time.Millisecond, "period of the cameras on the wire")
	verbose = flag.Bool("daemonlog", false, "print the daemon's log")
)

// asViad makes this test binary the daemon itself.
const asViad = "VIAD_KILL_AS_VIAD"

func TestMain(m *testing.M) {
	if os.Getenv(asViad) != "" {
		os.Exit(launch.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// short are the cases that run without the flag.
func short() []string {
	return []string{"franka-dds/" + daemonKilled, "franka-dds/" + daemonStopped, "stretch-dds-a/" + daemonKilled}
}

// wanted says whether a case is asked for.
func wanted(cell, kill string) bool {
	list := strings.Split(*matrix, ",")
	switch *matrix {
	case "all":
		return true
	case "short":
		list = short()
	}
	return slices.ContainsFunc(list, func(s string) bool { return s == cell || s == cell+"/"+kill })
}
