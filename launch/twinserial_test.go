package launch

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"viad/drivers/feetech"
	"viad/drivers/serial"
	simwire "viad/sim/wire"
)

// viad twin stretch4 --serial: ports with the robot's names, with servos behind one of them, faults and a runstop.
func TestTwinOnSerialPorts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ports")
	r := twinRuns(t, "stretch4", "--serial", dir)
	for _, name := range simwire.SerialPorts() {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	path := filepath.Join(dir, simwire.PortServos)
	port, err := serial.Open(serial.Config{Path: path, Baud: 1000000})
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	yaw := feetech.Joint{ID: 20, Name: "wrist yaw", Gear: 2, Reversed: true}.Range(-65*math.Pi/180, 245*math.Pi/180)
	servo := feetech.NewServo(feetech.NewBus(port, feetech.Config{Timeout: 2 * time.Second}), yaw)
	got, err := servo.Read(ctx)
	if truth := r.truth().Q[2]; err != nil || math.Abs(got.Position-truth) > 0.01 {
		t.Errorf("the wrist is at %v, %v; in truth at %v", got.Position, err, truth)
	}

	r.ask("fault", "unplugged-wrist", "on")
	var gone *serial.Unplugged
	if _, err := servo.Read(ctx); !errors.As(err, &gone) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the port's name is there without its cable")
	}
	r.ask("fault", "unplugged-wrist", "off")
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	r.ask("runstop", "on")
	for _, wrong := range []string{"ignore-cancel", "unhomed"} { // of its ROS face; from the start alone
		if said, code := r.tell("fault", wrong, "on"); code == ExitOK || !strings.Contains(said, wrong) {
			t.Errorf("%s: %d, %s", wrong, code, said)
		}
	}
}
