package stretch

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"viad/ros"
)

// setModes brings the driver into the modes that a motion needs, and looks whether it is in them. Nothing is taken from
// a person who drives.
func (r *Robot) setModes(ctx context.Context, base bool) error {
	r.mu.Lock()
	gen, mode, arm := r.known.generation, r.status.mode.v, r.armMode
	r.mu.Unlock()
	if gen == GenB {
		if mode != modeActive && mode != modePosition && mode != modeNavigation {
			if err := r.setMode(ctx, modeActive); err != nil {
				return err
			}
		}
		return r.setJointModes(ctx)
	}
	switch {
	case base && mode != modeNavigation:
		return r.setMode(ctx, modeNavigation)
	case !base && arm == modePosition && mode != modePosition:
		return r.setMode(ctx, modePosition)
	case !base && mode != modeNavigation && mode != modePosition:
		return r.setMode(ctx, modeNavigation)
	}
	return nil
}

// setMode sets the driver's mode by its parameter, and waits until the driver says so.
func (r *Robot) setMode(ctx context.Context, mode string) error {
	within, cancel := r.within(ctx, callTime)
	defer cancel()
	if err := r.params.Set(within, ros.P("mode", mode)); err != nil {
		return fmt.Errorf("the robot's mode cannot be set to %s: %w", mode, err)
	}
	ok := r.until(ctx, callTime, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.status.mode.v == mode
	})
	if !ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		return fmt.Errorf("the robot took the mode %s and still says %q: look at stretch_driver", mode, r.status.mode.v)
	}
	return nil
}

// setJointModes sets every joint of the arm to position; a joint in velocity mode would go on with its last speed.
func (r *Robot) setJointModes(ctx context.Context) error {
	r.mu.Lock()
	model, all := r.known.model, r.known.params
	r.mu.Unlock()
	var wanted []string
	for _, j := range model.Joints {
		for _, p := range []string{"joint_mode." + j.Name, "joint_mode." + strings.TrimSuffix(j.Name, "_joint")} {
			if slices.Contains(all, p) {
				wanted = append(wanted, p)
			}
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	ctx, cancel := r.within(ctx, callTime)
	defer cancel()
	wrong, err := r.notPosition(ctx, wanted)
	if err != nil || len(wrong) == 0 {
		return err
	}
	set := make([]ros.Param, len(wrong))
	for i, p := range wrong {
		set[i] = ros.P(p, modePosition)
	}
	if err := r.params.Set(ctx, set...); err != nil {
		return fmt.Errorf("joints cannot be set to position mode: %w", err)
	}
	if wrong, err = r.notPosition(ctx, wanted); err == nil && len(wrong) > 0 {
		return fmt.Errorf("%s took the mode %s and did not keep it: look at stretch_driver", strings.Join(wrong, ", "), modePosition)
	}
	return err
}

func (r *Robot) notPosition(ctx context.Context, names []string) (wrong []string, err error) {
	got, err := r.params.Get(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("the joints' modes cannot be read: %w", err)
	}
	for _, p := range got {
		if v, err := ros.As[string](p); err != nil || v != modePosition {
			wrong = append(wrong, p.Name)
		}
	}
	return wrong, nil
}
