package launch

import "testing"

// TestTheFirstSceneOfAnEpisodeIsNotBlind: a reset moves every camera in no time, and one that moved is not fused.
func TestTheFirstSceneOfAnEpisodeIsNotBlind(t *testing.T) {
	for file, move := range map[string]func(*agent){
		"twin-stretch4.yaml": func(a *agent) { a.must("ee_robot_centric_translate", map[string]any{"dz_m": -0.3}) },
		"twin-franka.yaml": func(a *agent) {
			a.must("gripper_translate", map[string]any{"d_x": 0.1, "d_y": 0.1, "d_z": -0.1})
		},
	} {
		t.Run(file, func(t *testing.T) {
			d := start(t, file, nil)
			a := connect(t, d.MCP(), d.Token())
			move(a)
			a.must("execute_waypoint", nil)
			a.must("end_episode", nil)
			sc := d.stage.Snapshot().Scene
			if sc == nil || sc.Blind() || len(sc.Missing) > 0 {
				t.Errorf("the scene after end_episode: %+v", sc.Missing)
			}
		})
	}
}
